//! Starting a process on this machine: by way of this program, which binds itself to a processor,
//! sees to it that it ends with the launcher, and then becomes the process.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail, ensure};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::signal::Signal;
use nix::unistd::{Pid, getppid};

use super::plan::{Plan, Process};
use super::variables::{Variables, is_foreign};

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
    pins: bool,
    variables: &Variables,
    secret: &str,
) -> anyhow::Result<Command> {
    let (at, of) = process.local;
    let processors = processors()?;
    let has_own = of <= processors.len();
    let mut command = ending_with_this((has_own && pins).then(|| processors[at]))?;
    if !has_own && std::env::var_os("DOORBELL_SPIN").is_none() {
        // Processes that share a processor do not spin: one that spins keeps the others from
        // running.
        command.env("DOORBELL_SPIN", "0");
    }
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(is_foreign) {
            command.env_remove(name);
        }
    }
    command.envs(variables.iter().cloned()).env("DOORBELL_SECRET", secret);
    command.args(&process.command);
    Ok(command)
}

/// A command that runs what follows on a processor, if one is named, and is killed when this
/// process ends.
pub fn ending_with_this(processor: Option<usize>) -> anyhow::Result<Command> {
    let own = std::env::current_exe().context("finding this program")?;
    let mut command = Command::new(own);
    command.arg(NAME);
    if let Some(processor) = processor {
        command.args(["--processor", &processor.to_string()]);
    }
    command.args([&std::process::id().to_string(), "--"]);
    Ok(command)
}

/// The processors that this process may use.
fn processors() -> anyhow::Result<Vec<usize>> {
    let set = sched_getaffinity(Pid::from_raw(0)).context("finding the processors")?;
    Ok((0..CpuSet::count()).filter(|&at| set.is_set(at).unwrap_or(false)).collect())
}

/// Looks whether this machine has the programs of a plan, so that a program that is missing is told
/// once rather than by each process.
///
/// # Errors
/// When a program can't be executed.
pub fn look_for_programs(plan: &Plan) -> anyhow::Result<()> {
    let here = plan.processes.iter().filter(|process| process.host.is_none());
    let programs: BTreeSet<_> = here.filter_map(|process| process.command.first()).collect();
    programs.into_iter().try_for_each(|program| look_for(program))
}

fn look_for(program: &str) -> anyhow::Result<()> {
    if program.contains('/') {
        let found = fs::metadata(program).with_context(|| format!("executing {program}"))?;
        ensure!(found.is_file(), "executing {program}: it is no file");
        let may = found.permissions().mode() & 0o111 != 0;
        ensure!(may, "executing {program}: it may not be executed (`chmod +x`)");
        return Ok(());
    }
    // Without the variable, the system has folders of its own choice.
    let Some(path) = std::env::var_os("PATH") else { return Ok(()) };
    let is_there = |folder: &Path| fs::metadata(folder.join(program)).is_ok_and(|it| it.is_file());
    let is_found = std::env::split_paths(&path).any(|folder| is_there(&folder));
    ensure!(is_found, "executing {program}: no folder of PATH has such a program");
    Ok(())
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
