//! Lines of text over a connection, none of which is longer than is allowed.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// The longest line.
const LONGEST: usize = 4096;

/// A connection, read line by line.
#[derive(Debug)]
pub struct Lines {
    reader: BufReader<TcpStream>,
}

impl Lines {
    pub fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self { reader: BufReader::new(stream) })
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
        let mut line = Vec::new();
        loop {
            self.stream().set_read_timeout(deadline.map(left))?;
            let most = (LONGEST - line.len()) as u64;
            let read = (&mut self.reader).take(most).read_until(b'\n', &mut line);
            match read {
                Err(why) if why.kind() == io::ErrorKind::Interrupted => continue,
                Err(why) if why.kind() == io::ErrorKind::WouldBlock => {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                Err(why) => return Err(why),
                Ok(_) if line.last() == Some(&b'\n') => break,
                Ok(0) if line.len() < LONGEST => {
                    let what = "the other side has ended the connection";
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, what));
                }
                Ok(_) if line.len() == LONGEST => {
                    let what = format!("a line is longer than {LONGEST} bytes");
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
