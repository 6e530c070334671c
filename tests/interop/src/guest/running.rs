//! A command in the guest.

use std::sync::Arc;
use std::time::Duration;

use crate::Error;
use crate::output::Output;

use super::control::{Control, Job};

/// How long a command that was killed may take to end.
const KILLED: Duration = Duration::from_secs(10);

impl From<Job> for Output {
    fn from(job: Job) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Self { status: job.status, stdout: text(job.stdout), stderr: text(job.stderr) }
    }
}

/// A command that tries another until it succeeds.
pub(super) fn repeated(condition: &str) -> String {
    format!("until {condition}; do usleep 20000; done")
}

/// A command that runs. It and all that it has started are killed when this is dropped.
#[derive(Debug)]
pub struct Running {
    control: Arc<Control>,
    number: u64,
    command: String,
}

impl Running {
    /// Asks the process to end, as the key for it would.
    pub const INTERRUPT: i32 = libc::SIGINT;
    /// Ends the process.
    pub const KILL: i32 = libc::SIGKILL;

    pub(super) fn start(control: &Arc<Control>, command: &str) -> Result<Self, Error> {
        let number = control.start(command)?;
        Ok(Self { control: Arc::clone(control), number, command: command.to_owned() })
    }

    /// What it has said by now. Most programs hold back what they print until it is much, or they
    /// end.
    pub fn output(&self) -> Output {
        self.control.job(self.number).into()
    }

    /// Sends it and all that it has started a signal.
    pub fn signal(&self, signal: i32) {
        self.control.signal(self.number, signal);
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// When the command does not end in that time, or the guest is gone. A command that does not
    /// end is killed: when the error is returned, the command has ended, or the error says that it
    /// has not.
    pub fn wait(self, at_most: Duration) -> Result<Output, Error> {
        let output: Output = self.control.follow(self.number, at_most, |_| false)?.into();
        if output.status.is_some() {
            return Ok(output);
        }
        self.signal(Self::KILL);
        let killed = self.control.follow(self.number, KILLED, |_| false)?;
        let awaited = if killed.status.is_some() { "end" } else { "end, not even when killed," };
        Err(self.late(awaited, at_most, output))
    }

    /// Kills it, and waits until it has ended.
    ///
    /// # Errors
    /// When it does not end in that time, or the guest is gone.
    pub fn stop(self, at_most: Duration) -> Result<Output, Error> {
        self.signal(Self::KILL);
        self.wait(at_most)
    }

    /// Waits until it has said this, to whomever.
    ///
    /// # Errors
    /// When it ends without, or does not in that time, or the guest is gone.
    pub fn says(&self, what: &str, at_most: Duration) -> Result<(), Error> {
        let has = |text: &[u8]| text.windows(what.len()).any(|part| part == what.as_bytes());
        let said = |job: &Job| has(&job.stdout) || has(&job.stderr);
        let job = self.control.follow(self.number, at_most, said)?;
        match (said(&job), job.status) {
            (true, _) => Ok(()),
            (false, None) => Err(self.late(&format!("\"{what}\""), at_most, job.into())),
            (false, Some(_)) => Err(self.ended(&format!("\"{what}\""), job)),
        }
    }

    /// Waits until somebody in the guest listens on a port of TCP: this, if it is a server with
    /// whom one agrees on queue pairs before there is a connection.
    ///
    /// # Errors
    /// When it ends, nobody does in that time, or the guest is gone.
    pub fn listens(&self, port: u16, at_most: Duration) -> Result<(), Error> {
        // The kernel's lists: addresses and ports in hexadecimal, and a state, 0A for this.
        let line = format!(":{port:04X} [0-9A-F]*:0000 0A ");
        self.until(&format!("grep -q '{line}' /proc/net/tcp /proc/net/tcp6"), at_most)
    }

    /// Waits until somebody in the guest listens on a port of RDMA's connection manager: this, if
    /// it is a server with which one connects by that.
    ///
    /// # Errors
    /// When it ends, nobody does in that time, or the guest is gone.
    pub fn listens_to_managers(&self, port: u16, at_most: Duration) -> Result<(), Error> {
        let shown = "rdma resource show cm_id";
        self.until(&format!("{shown} | grep -q 'state LISTEN .*src-addr [^ ]*:{port} '"), at_most)
    }

    /// Waits until a shell command succeeds, which is tried again and again while this runs.
    ///
    /// # Errors
    /// When this ends before, the command does not succeed in that time, or the guest is gone.
    pub fn until(&self, condition: &str, at_most: Duration) -> Result<(), Error> {
        let trying = Self::start(&self.control, &repeated(condition))?;
        let [tried, job] = self.control.follow_both([trying.number, self.number], at_most)?;
        match (tried.status, job.status) {
            (Some(0), _) => Ok(()),
            (None, None) => Err(self.late(condition, at_most, job.into())),
            _ => Err(self.ended(condition, job)),
        }
    }

    fn ended(&self, awaited: &str, job: Job) -> Error {
        let (command, awaited) = (self.command.clone(), awaited.to_owned());
        Error::Ended { command, awaited, output: job.into() }
    }

    fn late(&self, awaited: &str, at_most: Duration, output: Output) -> Error {
        let (command, awaited) = (self.command.clone(), awaited.to_owned());
        Error::Late { command, awaited, at_most, output }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.control.job(self.number).status.is_none() {
            self.control.signal(self.number, Self::KILL);
        }
        self.control.forget(self.number);
    }
}
