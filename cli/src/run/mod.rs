//! `doorbell run`: starts the processes of a job on this machine, or on several by ssh.
//!
//! The launcher serves the rendezvous, starts the processes, passes their output, its input and its
//! signals on, and ends all when one fails.

mod children;
mod descendants;
mod exec;
mod guard;
mod output;
mod plan;
mod signals;
mod ssh;
mod variables;
mod verdict;
mod watch;

use std::net::{IpAddr, TcpListener};
use std::process::{ExitCode, ExitStatus};
use std::time::Duration;

use anyhow::{Context, ensure};
use doorbell_job::{Service, Terms};
use nix::unistd::Pid;

use children::Children;
pub use exec::{ExecArgs, NAME, become_process};
pub use guard::{KeeperArgs, NAME as KEEPER, run};
use plan::Plan;
use variables::Common;
use watch::Watch;

/// Start the processes of a job: `doorbell run -n 4 ./prog`
///
/// Each process runs the program with its arguments, and finds the others by Doorbell's job
/// variables, as `splitc::run` does. Several programs in one job stand between colons:
/// `doorbell run -n 2 ./a x : -n 2 ./b`.
///
/// When a process fails, the others are ended, and `doorbell run` ends with that process's status.
/// Signals are passed on to all processes; standard input goes to process 0.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// How many processes run the first program [default: one for each processor, or each host]
    #[arg(short = 'n', value_name = "COUNT")]
    count: Option<usize>,
    /// Begin each line of output with the number of its process
    #[arg(long)]
    prefix: bool,
    /// Hosts to start processes on by ssh, in blocks of equal size; `HOST:COUNT` for blocks of
    /// another. `localhost` is this machine, without ssh
    #[arg(long, value_name = "HOST,…", value_delimiter = ',')]
    hosts: Vec<String>,
    /// The command that runs a command on another host
    #[arg(long, value_name = "COMMAND", default_value = "ssh -o BatchMode=yes")]
    ssh: String,
    /// An address of this machine that the hosts reach [default: all that it has]
    #[arg(long, value_name = "IP")]
    address: Option<IpAddr>,
    /// The devices that the processes may open, by preference: each pair uses the first that
    /// reaches the one from the other [default: shm,udp]
    #[arg(long, value_name = "DEVICE,…")]
    device: Option<String>,
    /// The network interface of devices that are named without one
    #[arg(long, value_name = "INTERFACE")]
    interface: Option<String>,
    /// Have each process print by which device it reaches the others, and why not by another
    #[arg(long)]
    routes: bool,
    /// After how many seconds a process that waits says for whom [default: 60]
    #[arg(long, value_name = "SECONDS")]
    stall: Option<u64>,
    /// Do not bind the processes to processors
    #[arg(long)]
    no_pin: bool,
    /// How many seconds all processes together may take to find each other [default: what
    /// DOORBELL_WITHIN says, or 30]
    #[arg(long, value_name = "SECONDS")]
    within: Option<u64>,
    /// The program, with its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    #[arg(value_name = "PROGRAM")]
    program: Vec<String>,
}

/// Starts the job of the arguments, and waits for its end. Returns the status of the job.
///
/// # Errors
/// When the processes can't be started.
pub fn keep(keeper: &KeeperArgs) -> anyhow::Result<ExitCode> {
    let args = &keeper.job;
    descendants::keep()?;
    let signals = signals::handled(&[]).context("handling signals")?;
    let plan = Plan::of(args)?;
    ensure!(!plan.processes.is_empty(), "a job has at least one process");
    let within = variables::within(args.within)?;
    exec::look_for_programs(&plan)?;
    let listener = listen(args.address, plan.has_remote()).context("serving the processes")?;
    let port = listener.local_addr()?.port();
    let places = plan.places(args.address, port)?;
    let secret = doorbell_job::secret();
    let size = plan.processes.len();
    let terms =
        Terms { size, secret: secret.clone().into_bytes(), within: Duration::from_secs(within) };
    let service = Service::start(listener, terms).context("serving the processes")?;
    let common = Common { args, size, places: &places, within };
    let children = Children::start(&plan, &common, &secret)?;
    let watch = Watch { children, signals, launcher: keeper.launcher(), service: &service };
    watch.wait().map(ExitCode::from)
}

/// The exit status that stands for the end of a process, as shells have it.
fn code(ended: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt;
    let code = ended.code().or(ended.signal().map(|signal| 128 + signal)).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}

/// The processes that stay though they were killed, as the end of a sentence.
fn left_behind(left: &[Pid]) -> String {
    let ids: Vec<_> = left.iter().map(ToString::to_string).collect();
    if ids.is_empty() {
        return String::new();
    }
    format!("; the system does not end the processes with these ids: {}", ids.join(", "))
}

/// Listens where the processes reach it: on all addresses if some are on other hosts.
fn listen(address: Option<IpAddr>, has_remote: bool) -> std::io::Result<TcpListener> {
    match address {
        Some(address) => TcpListener::bind((address, 0)),
        None if has_remote => {
            TcpListener::bind("[::]:0").or_else(|_| TcpListener::bind("0.0.0.0:0"))
        }
        None => TcpListener::bind("127.0.0.1:0"),
    }
}
