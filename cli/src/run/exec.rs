//! Starting a process on this machine: by way of this program, which binds itself to a processor,
//! sees to it that it ends with the launcher, and then becomes the process.

use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::{Context, bail};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::signal::Signal;
use nix::unistd::{Pid, getppid};

use super::Args;
use super::children::with_variables;
use super::plan::Process;

/// The name of the subcommand that becomes a process of a job.
pub const NAME: &str = "run-process";

/// Become a process of a job: `doorbell run` uses this.
#[derive(clap::Args, Debug)]
#[command(name = NAME, hide = true)]
pub struct ExecArgs {
    /// The process id of the launcher, with which the process ends
    parent: i32,
    /// The processor to run on
    #[arg(long)]
    processor: Option<usize>,
    /// The program, with its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    program: Vec<String>,
}

/// The command that becomes a process of this machine.
pub fn here(
    process: &Process,
    args: &Args,
    variables: &[(&'static str, String)],
    secret: &str,
) -> anyhow::Result<Command> {
    let own = std::env::current_exe().context("finding this program")?;
    let mut command = with_variables(Command::new(own), variables);
    // The variables of other launchers would say something else.
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if ["PMI_", "SLURM_PROCID", "OMPI_COMM_WORLD_"].iter().any(|other| name.starts_with(other))
        {
            command.env_remove(&*name);
        }
    }
    command.env("DOORBELL_SECRET", secret).env_remove("DOORBELL_ADDRESSES");
    command.arg(NAME);
    let (at, of) = process.local;
    let processors = processors()?;
    if of > processors.len() {
        // Whoever spins keeps others from running.
        if std::env::var_os("DOORBELL_SPIN").is_none() {
            command.env("DOORBELL_SPIN", "0");
        }
    } else if !args.no_pin {
        command.arg("--processor").arg(processors[at].to_string());
    }
    command.arg(std::process::id().to_string()).arg("--").args(&process.command);
    Ok(command)
}

/// The processors that this process may use.
fn processors() -> anyhow::Result<Vec<usize>> {
    let set = sched_getaffinity(Pid::from_raw(0)).context("finding the processors")?;
    Ok((0..CpuSet::count()).filter(|&at| set.is_set(at).unwrap_or(false)).collect())
}

/// Becomes the process that the arguments name. Returns only if that fails.
///
/// # Errors
/// When the program can't be executed, or the launcher has ended.
pub fn become_process(args: &ExecArgs) -> anyhow::Result<()> {
    nix::sys::prctl::set_pdeathsig(Some(Signal::SIGKILL)).context("ending with the launcher")?;
    if getppid() != Pid::from_raw(args.parent) {
        bail!("the launcher has ended");
    }
    if let Some(processor) = args.processor {
        let mut set = CpuSet::new();
        set.set(processor)?;
        let bound = sched_setaffinity(Pid::from_raw(0), &set);
        bound.with_context(|| format!("binding the process to processor {processor}"))?;
    }
    let [program, arguments @ ..] = &args.program[..] else { bail!("no program is named") };
    let why = Command::new(program).args(arguments).exec();
    Err(why).with_context(|| format!("executing {program}"))
}
