//! Lines over the socket between process 0 and a process that it has started.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// A connection, read and written line by line, without ever blocking.
#[derive(Debug)]
pub struct Lines {
    stream: UnixStream,
    /// The beginning of the next line.
    begun: Vec<u8>,
}

impl Lines {
    pub fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self { stream, begun: Vec::new() })
    }

    pub fn stream(&self) -> &UnixStream {
        &self.stream
    }

    /// The next line, of at most so many bytes, if all of it has come.
    ///
    /// # Errors
    /// `UnexpectedEof` when the other side has ended the connection, `InvalidData` when it says
    /// what is no text or too long.
    pub fn hear(&mut self, longest: usize) -> io::Result<Option<String>> {
        let ended = || {
            let what = "the other side has ended the connection";
            Err(io::Error::new(ErrorKind::UnexpectedEof, what))
        };
        let wrong = |what: String| Err(io::Error::new(ErrorKind::InvalidData, what));
        let mut chunk = [0; 4096];
        loop {
            let room = (longest + 1 - self.begun.len()).min(chunk.len());
            let read = match (&self.stream).read(&mut chunk[..room]) {
                Ok(0) => return ended(),
                Ok(read) => &chunk[..read],
                Err(why) => match why.kind() {
                    ErrorKind::WouldBlock => return Ok(None),
                    ErrorKind::Interrupted => continue,
                    // It has left something unread.
                    ErrorKind::ConnectionReset => return ended(),
                    _ => return Err(why),
                },
            };
            let end = read.iter().position(|&byte| byte == b'\n');
            self.begun.extend_from_slice(read);
            match end {
                // Each side says one line, and then waits for the other.
                Some(end) if end + 1 < read.len() => {
                    return wrong("more than one line came at once".to_owned());
                }
                Some(_) => break,
                None if self.begun.len() > longest => {
                    return wrong(format!("a line is longer than {longest} bytes"));
                }
                None => {}
            }
        }
        self.begun.pop();
        let line = String::from_utf8(std::mem::take(&mut self.begun));
        line.map(Some).map_err(|why| io::Error::new(ErrorKind::InvalidData, why))
    }

    /// Waits for the next line, of at most so many bytes, until a deadline if there is one.
    ///
    /// # Errors
    /// As [`hear`](Self::hear), and `TimedOut`.
    pub fn wait(&mut self, longest: usize, until: Option<Instant>) -> io::Result<String> {
        loop {
            if let Some(line) = self.hear(longest)? {
                return Ok(line);
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                return Err(ErrorKind::TimedOut.into());
            }
            await_any([(&self.stream, PollFlags::POLLIN)], until)?;
        }
    }

    /// Sends a line to the other side, by a deadline.
    ///
    /// # Errors
    /// When the other side has ended the connection, or does not take it in time.
    pub fn say(&self, line: &str, until: Instant) -> io::Result<()> {
        let line = format!("{line}\n");
        let mut rest = line.as_bytes();
        while !rest.is_empty() {
            match (&self.stream).write(rest) {
                Ok(written) => rest = &rest[written..],
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                Err(why) if why.kind() == ErrorKind::WouldBlock => {
                    if Instant::now() >= until {
                        return Err(ErrorKind::TimedOut.into());
                    }
                    await_any([(&self.stream, PollFlags::POLLOUT)], Some(until))?;
                }
                Err(why) => return Err(why),
            }
        }
        Ok(())
    }
}

/// Waits until one of some connections is ready, or a deadline has passed.
pub fn await_any<'a>(
    streams: impl IntoIterator<Item = (&'a UnixStream, PollFlags)>,
    until: Option<Instant>,
) -> io::Result<()> {
    let polled = streams.into_iter().map(|(stream, flags)| PollFd::new(stream.as_fd(), flags));
    let mut polled: Vec<_> = polled.collect();
    // Rounded up: a wait that ends early is repeated until the deadline.
    let left = until
        .map(|until| until.saturating_duration_since(Instant::now()) + Duration::from_millis(1));
    let timeout = left
        .map_or(PollTimeout::NONE, |left| PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX));
    match poll(&mut polled, timeout) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(why) => Err(why.into()),
    }
}

/// Whether the other side of a connection has ended.
pub fn has_hung_up(stream: &UnixStream) -> bool {
    let mut polled = [PollFd::new(stream.as_fd(), PollFlags::empty())];
    let polls = poll(&mut polled, PollTimeout::ZERO).is_ok();
    let found = polled[0].revents().unwrap_or(PollFlags::empty());
    polls && found.contains(PollFlags::POLLHUP)
}
