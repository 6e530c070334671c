//! Process 0's side: the processes that it has started.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::poll::PollFlags;

use super::lines::{Lines, await_any};
use super::{LONGEST_ADDRESS, PARENT, RANK, SOCKET};
use crate::limits::check_descriptors;
use crate::rendezvous::LONGEST;
use crate::report::SECONDARY;
use crate::sys;

/// How long a process may take to receive what it is told.
pub(super) const TELLING: Duration = Duration::from_secs(10);
/// How often process 0 looks whether a process has ended.
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// How many descriptors it takes to start a process, beside one for the connection with it.
const STARTING: usize = 4;

/// The processes that process 0 has started. They are killed when this is dropped.
#[derive(Debug)]
pub struct Children {
    /// In the order of their ranks, from 1 on.
    all: Vec<Started>,
}

#[derive(Debug)]
struct Started {
    process: Child,
    /// The connection, until this side or the other ends it.
    lines: Option<Lines>,
    /// The address that the process has told.
    address: Option<String>,
}

/// Why not all processes have met.
#[derive(Debug)]
pub enum Absence {
    /// A process has not told its address in time.
    Late {
        /// The rank of the process.
        rank: usize,
    },
    /// A process has said something else than its address, or takes nothing.
    Broken {
        /// The rank of the process.
        rank: usize,
        /// The error of the connection, or the text that came instead of an address.
        why: String,
    },
    /// A process has ended.
    Ended {
        /// The rank of the process.
        rank: usize,
        /// The exit status of the process.
        status: ExitStatus,
    },
}

impl Children {
    /// Starts this program again, with its own arguments, as the processes 1 to `size` - 1 of a job
    /// of `size`, and tells each the secret of the job: one line of at most
    /// [`LONGEST_SECRET`](super::LONGEST_SECRET) bytes.
    ///
    /// # Errors
    /// When one can't be started, or this process may not have as many file descriptors as the
    /// connections with all take. Those before it are killed.
    pub fn start(size: usize, secret: &str) -> io::Result<Self> {
        check_descriptors(size + STARTING, "starting the processes")?;
        let program = std::env::current_exe()?;
        let mut children = Self { all: Vec::new() };
        for rank in 1..size {
            let (own, theirs) = UnixStream::pair()?;
            let mut command = Command::new(&program);
            command.args(std::env::args_os().skip(1)).stdin(Stdio::null());
            command.env(RANK, rank.to_string()).env(SOCKET, theirs.as_raw_fd().to_string());
            command.env(PARENT, std::process::id().to_string());
            sys::pass_on(&mut command, theirs.into());
            let process = command.spawn()?;
            let mut started = Started { process, lines: None, address: None };
            // The command goes with the other end of the pair, so that the end of the process is
            // the end of the connection.
            drop(command);
            let lines = Lines::new(own);
            if let Ok(lines) = &lines {
                // That of a process that has ended already is found later.
                let _ = lines.say(&format!("secret {secret}"), Instant::now() + TELLING);
            }
            started.lines = lines.ok();
            children.all.push(started);
        }
        Ok(children)
    }

    /// Collects the addresses of all processes, tells them to all, and returns them in the order of
    /// ranks, the address of this process first. All processes together may take the time `within`.
    ///
    /// # Errors
    /// When a process ends first, says something else, or nothing in time.
    pub fn meet(&mut self, own: String, within: Duration) -> Result<Vec<String>, Absence> {
        let until = Instant::now() + within.min(LONGEST);
        while let Some(missing) = self.hear()? {
            if let Some((rank, status)) = self.ended() {
                return Err(Absence::Ended { rank, status });
            }
            if Instant::now() >= until {
                return Err(Absence::Late { rank: missing });
            }
            self.wait(until);
        }
        let told = self.all.iter().filter_map(|started| started.address.clone());
        let all: Vec<String> = [own].into_iter().chain(told).collect();
        let (line, until) = (format!("all {}", all.join(" ")), Instant::now() + TELLING);
        for (at, started) in self.all.iter().enumerate() {
            match started.lines.as_ref().map(|lines| lines.say(&line, until)) {
                // A process that has ended now is one that does not join.
                Some(Err(why)) if why.kind() != io::ErrorKind::BrokenPipe => {
                    return Err(Absence::Broken { rank: at + 1, why: why.to_string() });
                }
                _ => {}
            }
        }
        Ok(all)
    }

    /// Takes what processes have said. Returns the first that has not told its address.
    fn hear(&mut self) -> Result<Option<usize>, Absence> {
        let mut missing = None;
        for (at, started) in self.all.iter_mut().enumerate() {
            if started.address.is_some() {
                continue;
            }
            let rank = at + 1;
            started.hear().map_err(|why| Absence::Broken { rank, why })?;
            if started.address.is_none() {
                missing.get_or_insert(rank);
            }
        }
        Ok(missing)
    }

    /// Waits until a process says something, for a short time, since one may also end.
    fn wait(&self, until: Instant) {
        let silent = self.all.iter().filter(|started| started.address.is_none());
        let streams = silent.filter_map(|started| Some(started.lines.as_ref()?.stream()));
        let soon = until.min(Instant::now() + BETWEEN_LOOKS);
        // An error is one of memory, and the next look tells as much.
        let _ = await_any(streams.map(|stream| (stream, PollFlags::POLLIN)), Some(soon));
    }

    /// Ends the connections with all processes, which end themselves when they notice.
    pub fn leave(&mut self) {
        for started in &mut self.all {
            started.lines = None;
        }
    }

    /// The first process that has ended, with any status. Processes that ended by themselves come
    /// before those that ended because another had.
    pub fn ended(&mut self) -> Option<(usize, ExitStatus)> {
        let by_itself = self.ended_with(|status| status.code() != Some(SECONDARY));
        by_itself.or_else(|| self.ended_with(|_| true))
    }

    /// The first process that has ended without success, if one has. Processes that ended because
    /// another had come last.
    pub fn failed(&mut self) -> Option<(usize, ExitStatus)> {
        let by_itself = |status: ExitStatus| !status.success() && status.code() != Some(SECONDARY);
        let failed = self.ended_with(by_itself);
        failed.or_else(|| self.ended_with(|status| !status.success()))
    }

    /// The first process that has ended with a status of some kind.
    fn ended_with(&mut self, kind: impl Fn(ExitStatus) -> bool) -> Option<(usize, ExitStatus)> {
        let mut all = self.all.iter_mut().enumerate();
        all.find_map(|(at, started)| match started.process.try_wait() {
            Ok(Some(status)) if kind(status) => Some((at + 1, status)),
            _ => None,
        })
    }

    /// The first process that has ended with success, if one has: before the job was over, where the
    /// job has failed.
    pub fn succeeded(&mut self) -> Option<(usize, ExitStatus)> {
        self.ended_with(|status| status.success())
    }

    /// The process of which another has said that it has returned from its program too early.
    pub fn early(&mut self) -> Option<usize> {
        let size = self.all.len() + 1;
        let mut said = self.all.iter_mut().filter_map(|started| {
            let line = started.lines.as_mut()?.hear(LONGEST_ADDRESS).ok()??;
            line.strip_prefix("early ")?.parse().ok()
        });
        said.find(|rank| *rank < size)
    }

    /// How a process has ended, if it has.
    pub fn status(&mut self, rank: usize) -> Option<ExitStatus> {
        let started = self.all.get_mut(rank.checked_sub(1)?)?;
        started.process.try_wait().ok()?
    }

    /// Whether a process still runs.
    pub fn are_running(&mut self) -> bool {
        self.all.iter_mut().any(|started| matches!(started.process.try_wait(), Ok(None)))
    }
}

impl Started {
    /// Takes what the process has said.
    fn hear(&mut self) -> Result<(), String> {
        let Some(lines) = &mut self.lines else { return Ok(()) };
        match lines.hear(LONGEST_ADDRESS) {
            Ok(None) => Ok(()),
            // A process that ends is found by its end.
            Err(why) if why.kind() == io::ErrorKind::UnexpectedEof => {
                self.lines = None;
                Ok(())
            }
            Err(why) => Err(why.to_string()),
            Ok(Some(line)) => match line.strip_prefix("at ").filter(|at| is_address(at)) {
                Some(address) => {
                    self.address = Some(address.to_owned());
                    Ok(())
                }
                None => Err(format!("it has told no address, but {line:?}")),
            },
        }
    }
}

/// Whether a text may be an address: one word.
fn is_address(text: &str) -> bool {
    !text.is_empty() && !text.contains(char::is_whitespace)
}

impl Drop for Children {
    /// Kills the processes that still run, and waits for their ends.
    fn drop(&mut self) {
        for started in &mut self.all {
            if matches!(started.process.try_wait(), Ok(None)) {
                let _ = started.process.kill();
            }
            let _ = started.process.wait();
        }
    }
}
