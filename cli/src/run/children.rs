//! The processes of a job, while they run.

use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use doorbell_job::Service;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;

use super::plan::{Plan, Process};
use super::{Args, exec, output, ssh};

/// The exit status of a process that ends only because another has: `EX_UNAVAILABLE` of
/// `sysexits.h`.
const SECONDARY: i32 = 69;
/// How long processes that are told to end may take before they are killed.
const GRACE: Duration = Duration::from_secs(5);
/// How long the launcher waits, once a process has ended because another has, for that other one.
const AFTERMATH: Duration = Duration::from_millis(500);
/// How often the launcher looks whether a process has ended.
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// The processes, in the order of their ranks.
pub struct Children {
    all: Vec<Running>,
    signals: Signals,
}

struct Running {
    child: Child,
    /// What it runs, and where.
    told: String,
    ended: Option<ExitStatus>,
    output: Vec<JoinHandle<()>>,
}

impl Children {
    /// Starts the processes of a plan. If one can't be started, those before it are killed.
    pub fn start(plan: &Plan, args: &Args, places: &str, secret: &str) -> anyhow::Result<Self> {
        let signals = Signals::new([SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2])?;
        let mut children = Self { all: Vec::new(), signals };
        let size = plan.processes.len();
        for (rank, process) in plan.processes.iter().enumerate() {
            let variables = variables((rank, size), process, args, places);
            let mut command = match &process.host {
                None => exec::here(process, args, &variables, secret)?,
                Some(host) => ssh::there(host, process, args, &variables)?,
            };
            let is_first_here = rank == 0 && process.host.is_none();
            command.stdin(if is_first_here { Stdio::inherit() } else { Stdio::piped() });
            if args.prefix {
                command.stdout(Stdio::piped()).stderr(Stdio::piped());
            }
            let told = told(process);
            let mut child = command.spawn().with_context(|| format!("starting {told}"))?;
            if process.host.is_some() {
                ssh::give(&mut child, secret, rank == 0);
            } else {
                drop(child.stdin.take());
            }
            let output = output::prefixed(&mut child, rank, size);
            children.all.push(Running { child, told, ended: None, output });
        }
        Ok(children)
    }

    /// Waits for the end of all processes, and passes signals on. Returns the exit status of the
    /// job: of the first process that failed by itself, or zero.
    pub fn wait(&mut self, service: &Service) -> anyhow::Result<u8> {
        let mut status = 0;
        let mut failed: Option<(usize, ExitStatus, Instant)> = None;
        let mut kill_at: Option<Instant> = None;
        loop {
            for signal in self.signals.pending().collect::<Vec<_>>() {
                self.pass_on(signal)?;
                if !matches!(signal, SIGUSR1 | SIGUSR2) {
                    status = 128 + signal as u8;
                    kill_at.get_or_insert(Instant::now() + GRACE);
                }
            }
            let is_running = self.look(&mut failed)?;
            if let Some((rank, ended, at)) = failed
                && kill_at.is_none()
                && (ended.code() != Some(SECONDARY) || at.elapsed() >= AFTERMATH)
            {
                let told = format!("process {rank} ({}) ended with {ended}", self.all[rank].told);
                eprintln!(
                    "doorbell: {told}{}",
                    if is_running { "; the others are ended" } else { "" }
                );
                service.fail(&told);
                status = code(ended);
                self.pass_on(SIGTERM)?;
                kill_at = Some(Instant::now() + GRACE);
            }
            if !is_running {
                break;
            }
            if kill_at.is_some_and(|at| Instant::now() >= at) {
                self.kill();
            }
            std::thread::sleep(BETWEEN_LOOKS);
        }
        for running in &mut self.all {
            running.output.drain(..).for_each(|thread| _ = thread.join());
        }
        Ok(status)
    }

    /// Notes which processes have ended, and the first that has failed, before all that have only
    /// ended because another has. Whether any runs still.
    fn look(&mut self, failed: &mut Option<(usize, ExitStatus, Instant)>) -> anyhow::Result<bool> {
        let mut is_running = false;
        for (rank, running) in self.all.iter_mut().enumerate() {
            if running.ended.is_some() {
                continue;
            }
            running.ended = running.child.try_wait().context("waiting for a process")?;
            let Some(ended) = running.ended else {
                is_running = true;
                continue;
            };
            let is_secondary = |ended: ExitStatus| ended.code() == Some(SECONDARY);
            let tells_more =
                failed.is_none_or(|(_, known, _)| is_secondary(known) && !is_secondary(ended));
            if !ended.success() && tells_more {
                *failed = Some((rank, ended, Instant::now()));
            }
        }
        Ok(is_running)
    }

    /// Passes a signal on to all processes that run.
    fn pass_on(&self, signal: i32) -> anyhow::Result<()> {
        let signal = Signal::try_from(signal).map_err(|why| anyhow!("signal {signal}: {why}"))?;
        for running in self.all.iter().filter(|running| running.ended.is_none()) {
            // It may have ended by now.
            let _ = kill(Pid::from_raw(running.child.id() as i32), signal);
        }
        Ok(())
    }

    fn kill(&mut self) {
        for running in self.all.iter_mut().filter(|running| running.ended.is_none()) {
            let _ = running.child.kill();
        }
    }
}

impl Drop for Children {
    /// Kills the processes that still run, which are there only if the launcher fails.
    fn drop(&mut self) {
        self.kill();
        for running in &mut self.all {
            let _ = running.child.wait();
        }
    }
}

/// The variables by which a process finds the others, but for the secret.
fn variables(
    (rank, size): (usize, usize),
    process: &Process,
    args: &Args,
    places: &str,
) -> Vec<(&'static str, String)> {
    let (local, locals) = process.local;
    let mut variables = vec![
        ("DOORBELL_RANK", rank.to_string()),
        ("DOORBELL_SIZE", size.to_string()),
        ("DOORBELL_RENDEZVOUS", places.to_owned()),
        ("DOORBELL_LOCAL_RANK", local.to_string()),
        ("DOORBELL_LOCAL_SIZE", locals.to_string()),
        ("DOORBELL_WITHIN", args.within.to_string()),
    ];
    variables.extend(args.device.iter().map(|device| ("DOORBELL_DEVICE", device.clone())));
    variables.extend(args.interface.iter().map(|name| ("DOORBELL_INTERFACE", name.clone())));
    variables.extend(args.routes.then(|| ("DOORBELL_ROUTES", "1".to_owned())));
    variables.extend(args.stall.map(|seconds| ("DOORBELL_STALL", seconds.to_string())));
    variables
}

/// What a process runs, and where, for messages.
fn told(process: &Process) -> String {
    let program = process.command.first().map_or("", String::as_str);
    match &process.host {
        None => program.to_owned(),
        Some(host) => format!("{program} on {host}"),
    }
}

/// The exit status that stands for the end of a process, as shells have it.
fn code(ended: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt;
    let code = ended.code().or(ended.signal().map(|signal| 128 + signal)).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}

/// The command of a process on this machine, or of what starts one.
pub fn with_variables(mut command: Command, variables: &[(&'static str, String)]) -> Command {
    command.envs(variables.iter().map(|(name, value)| (*name, value)));
    command
}
