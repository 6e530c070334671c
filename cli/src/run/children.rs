//! The processes of a job that have been started, and which of them have ended.

use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Instant;

use anyhow::Context;
use nix::errno::Errno;
use nix::sys::wait::{Id, WaitPidFlag, waitid, waitpid};
use nix::unistd::Pid;

use super::output::Output;
use super::plan::{Plan, Process};
use super::variables::Common;
use super::{descendants, exec, ssh};

/// The processes, in the order of their ranks.
pub struct Children {
    pub all: Vec<Running>,
}

/// A process that has been started.
pub struct Running {
    child: Child,
    /// The command of the process and its host, for messages.
    pub told: String,
    /// Whether the process runs on another host, so that the local process is ssh.
    pub is_remote: bool,
    pub ended: Option<End>,
    pub output: Output,
}

/// The end of a process.
#[derive(Clone, Copy, Debug)]
pub struct End {
    pub status: ExitStatus,
    pub at: Instant,
}

impl Running {
    pub fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id() as i32)
    }
}

impl Children {
    /// Starts the processes of a plan. If one can't be started, those before it are killed.
    pub fn start(plan: &Plan, common: &Common<'_>, secret: &str) -> anyhow::Result<Self> {
        let mut children = Self { all: Vec::new() };
        for (rank, process) in plan.processes.iter().enumerate() {
            let mut command = command((rank, process), common, secret)?;
            let told = told(process);
            let mut child = command.spawn().with_context(|| format!("starting {told}"))?;
            let is_remote = process.host.is_some();
            if is_remote {
                ssh::give(&mut child, secret, rank == 0);
            }
            let output = Output::prefixed(&mut child, rank, common.size);
            children.all.push(Running { child, told, is_remote, ended: None, output });
        }
        Ok(children)
    }

    /// Whether a process is still running.
    pub fn are_running(&self) -> bool {
        self.all.iter().any(|running| running.ended.is_none())
    }

    /// Notes which processes have ended. Also asks for the status of orphans, which the processes
    /// have started and left behind, because the system keeps each until its parent has asked.
    pub fn note_ends(&mut self) -> anyhow::Result<()> {
        let ended = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG;
        loop {
            match waitid(Id::All, ended | WaitPidFlag::WNOWAIT) {
                Ok(state) => match state.pid() {
                    Some(pid) if !self.note_end_of(Some(pid))? => _ = waitpid(pid, None),
                    Some(_) => {}
                    None => return Ok(()),
                },
                Err(Errno::ECHILD) => return Ok(()),
                Err(Errno::EINTR) => {}
                // The process was ended by a signal that nix does not know.
                Err(Errno::EINVAL) if self.note_end_of(None)? => {}
                Err(Errno::EINVAL) => _ = waitpid(None, Some(WaitPidFlag::WNOHANG)),
                Err(why) => return Err(why).context("waiting for the processes"),
            }
        }
    }

    /// Notes the end of the process with an id, or of any, if it is one of the job. Returns whether
    /// one has ended.
    fn note_end_of(&mut self, pid: Option<Pid>) -> anyhow::Result<bool> {
        let running = self.all.iter_mut().filter(|running| running.ended.is_none());
        let mut has_ended = false;
        for running in running.filter(|running| pid.is_none_or(|pid| running.pid() == pid)) {
            let status = running.child.try_wait().context("waiting for a process")?;
            running.ended = status.map(|status| End { status, at: Instant::now() });
            has_ended |= status.is_some();
        }
        Ok(has_ended)
    }
}

impl Drop for Children {
    /// Kills the processes that are still running, which happens only if the launcher fails.
    fn drop(&mut self) {
        if self.are_running() {
            descendants::kill_all();
        }
        for running in self.all.iter_mut().filter(|running| running.ended.is_none()) {
            let _ = running.child.kill();
            let _ = running.child.wait();
        }
    }
}

/// The command that starts a process, here or on another host.
fn command(
    (rank, process): (usize, &Process),
    common: &Common<'_>,
    secret: &str,
) -> anyhow::Result<Command> {
    let (args, variables) = (common.args, common.variables(rank, process));
    let mut command = match &process.host {
        None => exec::here(process, !args.no_pin, &variables, secret)?,
        Some(host) => ssh::there(host, (rank, process), args, &variables)?,
    };
    command.stdin(match &process.host {
        Some(_) => Stdio::piped(),
        None if rank == 0 => Stdio::inherit(),
        None => Stdio::null(),
    });
    if args.prefix {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
    }
    Ok(command)
}

/// The command of a process and its host, for messages.
fn told(process: &Process) -> String {
    let program = process.command.first().map_or("", String::as_str);
    match &process.host {
        None => program.to_owned(),
        Some(host) => format!("{program} on {host}"),
    }
}
