//! A started process's side: its connection to process 0.

use std::io::{self, Read};
use std::os::unix::process::parent_id;
use std::time::{Duration, Instant};

use super::lines::{Lines, has_hung_up};
use super::{LONGEST_ADDRESS, LONGEST_SECRET, PARENT, RANK, SOCKET};
use crate::error::JobError;
use crate::rendezvous::LONGEST;
use crate::sys;

/// The connection of a process to the one that has started it, which is process 0 of their job.
#[derive(Debug)]
pub struct Starter {
    rank: usize,
    secret: String,
    lines: Lines,
}

impl Starter {
    /// The connection that this process has inherited; `None` if process 0 of a job of
    /// [`Children`](super::Children) has not started it. What this process starts later inherits
    /// neither the connection nor, if this is its only thread, the variables that name it.
    ///
    /// Process 0 is waited for until the time `within` is over.
    ///
    /// # Errors
    /// When the variables make no sense, or process 0 has ended or says nothing.
    pub fn of_process(within: Duration) -> Result<Option<Self>, JobError> {
        let number = |variable| {
            let found = std::env::var(variable).unwrap_or_default();
            let expected = "a number, by the process that starts this one";
            let number = found.parse::<u32>();
            number.map_err(|_| JobError::Environment { variable, found, expected })
        };
        if std::env::var_os(SOCKET).is_none() {
            return Ok(None);
        }
        let is_meant = parent_id() == number(PARENT)?;
        if !is_meant && !sys::inherited(SOCKET).is_ok_and(|it| it.as_ref().is_some_and(has_hung_up))
        {
            // They were meant for a process above this one.
            sys::forget(&[RANK, SOCKET, PARENT]);
            return Ok(None);
        }
        let rank = number(RANK)? as usize;
        let Some(stream) = sys::taken(SOCKET)? else { return Ok(None) };
        sys::forget(&[RANK, SOCKET, PARENT]);
        let what = "hearing of the process that has started this one";
        let system = |why| JobError::System { what, why };
        let mut lines = Lines::new(stream).map_err(system)?;
        let until = Instant::now() + within.min(LONGEST);
        let line = lines.wait("secret ".len() + LONGEST_SECRET, Some(until));
        let line = line.map_err(|why| match why.kind() {
            // Also when process 0 has ended, so that this one is another's child by now.
            io::ErrorKind::UnexpectedEof => JobError::Ended { rank: 0 },
            _ => system(why),
        })?;
        let secret = line.strip_prefix("secret ").map(str::to_owned);
        let untold = || io::Error::new(io::ErrorKind::InvalidData, "it has told no secret");
        let secret = secret.ok_or_else(|| system(untold()))?;
        Ok(Some(Self { rank, secret, lines }))
    }

    /// The number of this process.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The secret of the job, as process 0 has told it.
    pub fn secret(&self) -> &str {
        &self.secret
    }

    /// Tells process 0 the address of this process, and returns the addresses of all, of which
    /// there are `size`, when all have told theirs. Process 0 sees to it that this takes no longer
    /// than it may. From then on a thread waits for the end of process 0, and calls `ended` once.
    ///
    /// # Errors
    /// When process 0 ends first, or counts the processes differently.
    pub fn meet(
        mut self,
        address: &str,
        size: usize,
        ended: impl FnOnce() + Send + 'static,
    ) -> io::Result<(Vec<String>, Teller)> {
        let until = Instant::now() + super::children::TELLING;
        self.lines.say(&format!("at {address}"), until)?;
        let longest = size.saturating_mul(LONGEST_ADDRESS + 1);
        let line = self.lines.wait(longest, None)?;
        let all = line.strip_prefix("all ").map(|all| all.split(' ').map(str::to_owned).collect());
        let all: Vec<String> = all.unwrap_or_default();
        if all.len() != size {
            let what = format!("process 0 knows {} processes, and this one {size}", all.len());
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        let stream = self.lines.stream().try_clone()?;
        stream.set_nonblocking(false)?;
        let watches = move || {
            // Process 0 says nothing more.
            let _ = (&stream).read_exact(&mut [0]);
            ended();
        };
        std::thread::Builder::new().name("job".to_owned()).spawn(watches)?;
        Ok((all, Teller(self.lines)))
    }
}

/// The connection of a process to process 0, once all have met.
#[derive(Debug)]
pub struct Teller(Lines);

impl Teller {
    /// Tells process 0 that this process ends because another has returned from its program too
    /// early.
    pub fn early(&self, other: usize) {
        // Process 0 may have ended, too, and then nobody wants to know.
        let _ = self.0.say(&format!("early {other}"), Instant::now() + super::children::TELLING);
    }
}
