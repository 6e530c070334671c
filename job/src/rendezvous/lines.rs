//! Lines of text over a connection, none of which is longer than is allowed.

use std::io::{self, BufRead, BufReader, Read, Write};
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
        let mut stream = self.stream();
        stream.set_write_timeout(Some(left(deadline)))?;
        stream.write_all(format!("{line}\n").as_bytes())
    }

    /// Reads a line, by a deadline if there is one.
    ///
    /// # Errors
    /// `UnexpectedEof` when the other side has ended the connection, `InvalidData` when it sends
    /// what is no text or too long.
    pub fn read(&mut self, deadline: Option<Instant>) -> io::Result<String> {
        let (mut line, longest) = (Vec::new(), self.longest);
        loop {
            self.stream().set_read_timeout(deadline.map(left))?;
            let most = (longest - line.len()) as u64;
            let read = (&mut self.reader).take(most).read_until(b'\n', &mut line);
            match read {
                Err(why) if why.kind() == io::ErrorKind::Interrupted => continue,
                Err(why) if why.kind() == io::ErrorKind::WouldBlock => {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                Err(why) => return Err(why),
                Ok(_) if line.last() == Some(&b'\n') => break,
                Ok(0) if line.len() < longest => {
                    let what = "the other side has ended the connection";
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, what));
                }
                Ok(_) if line.len() == longest => {
                    let what = format!("a line is longer than {longest} bytes");
                    return Err(io::Error::new(io::ErrorKind::InvalidData, what));
                }
                Ok(_) => {}
            }
        }
        line.pop();
        String::from_utf8(line).map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why))
    }
}

/// The time until a deadline, at least a millisecond: none at all would stand for for ever.
pub fn left(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1))
}
