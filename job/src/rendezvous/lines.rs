//! Lines of text over a connection, none of which is longer than is allowed.

use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use socket2::{SockRef, TcpKeepalive};

/// The longest line of somebody who has not proved that it belongs to the job, and of a process
/// that has.
const LONGEST: usize = 4096;
const LONGEST_PROVED: usize = 64 << 10;

/// After what time without a sign of the other side's host the connection ends: the host has gone,
/// or the network to it.
const SILENCE: Duration = Duration::from_secs(20);

/// A connection, read line by line.
#[derive(Debug)]
pub struct Lines {
    reader: BufReader<TcpStream>,
    longest: usize,
}

impl Lines {
    pub fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        let probes = TcpKeepalive::new().with_time(SILENCE / 4).with_interval(SILENCE / 4);
        let socket = SockRef::from(&stream);
        socket.set_tcp_keepalive(&probes.with_retries(3))?;
        // The same for what is sent and not acknowledged.
        socket.set_tcp_user_timeout(Some(SILENCE))?;
        Ok(Self { reader: BufReader::new(stream), longest: LONGEST })
    }

    /// Takes longer lines from now on: the other side has proved that it belongs to the job.
    pub fn trust(&mut self) {
        self.longest = LONGEST_PROVED;
    }

    /// The connection, for writing.
    pub fn stream(&self) -> &TcpStream {
        self.reader.get_ref()
    }

    /// Writes a line, by a deadline.
    pub fn write(&mut self, line: &str, deadline: Instant) -> io::Result<()> {
        write(self.stream(), &format!("{line}\n"), deadline)
    }

    /// Reads a line, by a deadline if there is one, however its bytes come.
    ///
    /// # Errors
    /// `UnexpectedEof` when the other side has ended the connection, `InvalidData` when it sends
    /// what is no text or too long, `TimedOut` at the deadline.
    pub fn read(&mut self, deadline: Option<Instant>) -> io::Result<String> {
        let (mut line, longest) = (Vec::new(), self.longest);
        loop {
            let come = self.more(deadline)?;
            if come.is_empty() {
                let what = "the other side has ended the connection";
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, what));
            }
            let end = come.iter().position(|&byte| byte == b'\n');
            let part = &come[..end.unwrap_or(come.len())];
            if line.len() + part.len() >= longest {
                let what = format!("a line is longer than {longest} bytes");
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            }
            line.extend_from_slice(part);
            let used = part.len() + usize::from(end.is_some());
            self.reader.consume(used);
            if end.is_some() {
                break;
            }
        }
        String::from_utf8(line).map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why))
    }

    /// The bytes that have come and are not used yet. If there are none, waits for some, once.
    fn more(&mut self, deadline: Option<Instant>) -> io::Result<&[u8]> {
        while self.reader.buffer().is_empty() {
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.stream().set_read_timeout(deadline.map(left))?;
            match self.reader.fill_buf() {
                Ok([]) => break,
                Ok(_) => {}
                // The deadline says whether it is over.
                Err(why) if is_pause(&why) => {}
                Err(why) => return Err(why),
            }
        }
        Ok(self.reader.buffer())
    }
}

/// Whether an error says no more than that a call is to be made again.
fn is_pause(why: &io::Error) -> bool {
    matches!(why.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock)
}

/// Writes text by a deadline, however slowly the other side reads.
///
/// # Errors
/// When the other side has ended the connection, and `TimedOut` at the deadline.
pub fn write(mut stream: &TcpStream, text: &str, deadline: Instant) -> io::Result<()> {
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        stream.set_write_timeout(Some(left(deadline)))?;
        match stream.write(rest) {
            Ok(written) => rest = &rest[written..],
            Err(why) if is_pause(&why) => {}
            Err(why) => return Err(why),
        }
        if !rest.is_empty() && Instant::now() >= deadline {
            return Err(io::ErrorKind::TimedOut.into());
        }
    }
    Ok(())
}

/// The time until a deadline, at least a millisecond: none at all would stand for for ever.
pub fn left(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    fn pair() -> (Lines, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let other = TcpStream::connect(listener.local_addr().expect("it is bound"));
        let (stream, _) = listener.accept().expect("the other is there");
        (Lines::new(stream).expect("options of TCP"), other.expect("somebody listens"))
    }

    /// Each byte that came began the time anew.
    #[test]
    fn a_line_that_comes_byte_by_byte_is_read_by_the_deadline_or_not_at_all() {
        let (mut lines, mut other) = pair();
        let sends = thread::spawn(move || {
            let mut sent = 0;
            while other.write_all(b"a").is_ok() {
                sent += 1;
                assert!(sent < LONGEST, "the line is read to its longest");
                thread::sleep(Duration::from_millis(10));
            }
        });
        let why = lines.read(Some(Instant::now() + Duration::from_millis(100))).unwrap_err();
        assert_eq!(why.kind(), io::ErrorKind::TimedOut);
        drop(lines);
        sends.join().expect("the line is not read to its longest");
    }

    #[test]
    fn lines_are_read_one_by_one_up_to_the_longest() {
        let (mut lines, mut other) = pair();
        let longest = "a".repeat(LONGEST - 1);
        let sent = format!("one\n\n{longest}\n{longest}a\n");
        let sends = thread::spawn(move || other.write_all(sent.as_bytes()).map(|()| other));
        for expected in ["one", "", &longest] {
            assert_eq!(lines.read(None).expect("it comes"), expected);
        }
        assert_eq!(lines.read(None).unwrap_err().kind(), io::ErrorKind::InvalidData);
        drop(sends.join().expect("no panic"));
        let (mut lines, mut other) = pair();
        other.write_all(b"half").expect("it is taken");
        drop(other);
        assert_eq!(lines.read(None).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
