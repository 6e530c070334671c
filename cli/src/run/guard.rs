//! The process that a user knows as the launcher. It starts another one, the keeper, which does all
//! the work, and each of the two ends the job if the other is killed: nothing that the job has
//! started is left behind. A process that is killed can't see to that itself.

use std::process::{Command, ExitCode, ExitStatus};

use anyhow::Context;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getppid};
use signal_hook::consts::SIGCHLD;

use super::args::Args;
use super::verdict::code;
use super::{descendants, signals};

/// The name of the subcommand that is the keeper.
pub const NAME: &str = "run-job";

/// Keep a job for another process: `doorbell run` uses this.
#[derive(clap::Args, Debug)]
#[command(name = NAME, hide = true)]
pub struct KeeperArgs {
    /// The process id of the launcher that the user has started
    #[arg(long)]
    launcher: i32,
    #[command(flatten)]
    pub job: Args,
}

impl KeeperArgs {
    /// The process that this one keeps the job for.
    pub fn launcher(&self) -> Launcher {
        Launcher(Pid::from_raw(self.launcher))
    }
}

/// The process that a keeper keeps the job for: its parent.
#[derive(Clone, Copy, Debug)]
pub struct Launcher(Pid);

impl Launcher {
    /// Whether the launcher has ended, which it does only if it is killed.
    pub fn has_ended(self) -> bool {
        getppid() != self.0
    }
}

/// Has a keeper run the job of this process's arguments, passes signals on to it, and returns with
/// its status.
///
/// # Errors
/// When the keeper can't be started.
pub fn run() -> anyhow::Result<ExitCode> {
    descendants::keep()?;
    let mut signals = signals::handled(&[SIGCHLD]).context("handling signals")?;
    let mut keeper = Command::new(std::env::current_exe().context("finding this program")?)
        .args([NAME, "--launcher", &std::process::id().to_string()])
        // The name of the program and of the subcommand go before the arguments.
        .args(std::env::args_os().skip(2))
        .spawn()
        .context("starting the process that keeps the job")?;
    let pid = Pid::from_raw(keeper.id() as i32);
    loop {
        for info in signals.wait() {
            if info.si_signo == SIGCHLD {
                if let Some(ended) = keeper.try_wait().context("waiting for the keeper")? {
                    return Ok(ExitCode::from(outcome(ended)));
                }
            } else if !signals::is_of_terminal(&info)
                && let Ok(signal) = Signal::try_from(info.si_signo)
            {
                let _ = kill(pid, signal);
            }
        }
    }
}

/// The status of a job whose keeper has ended. What a keeper that was killed has left is killed.
fn outcome(ended: ExitStatus) -> u8 {
    if ended.code().is_none() {
        let left = descendants::kill_all();
        doorbell_job::report(&format!(
            "doorbell: the process that keeps the job ended with {ended}; the others are \
             killed{}\n",
            descendants::left_behind(&left)
        ));
    }
    code(ended)
}
