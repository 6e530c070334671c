//! `doorbell run`: starts the processes of a job on this machine, or on several by ssh.
//!
//! The launcher serves the rendezvous, starts the processes, passes their output, its input and its
//! signals on, and ends all when one fails.

mod children;
mod exec;
mod output;
mod plan;
mod ssh;

use std::net::{IpAddr, TcpListener};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, ensure};
use doorbell_job::{Service, Terms};

use children::Children;
pub use exec::{ExecArgs, NAME, become_process};
use plan::Plan;

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
    /// How many seconds all processes together may take to find each other
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    within: u64,
    /// The program, with its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    #[arg(value_name = "PROGRAM")]
    program: Vec<String>,
}

/// Starts the job of the arguments, and waits for its end. Returns the status of the job.
///
/// # Errors
/// When the processes can't be started.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let plan = Plan::of(args)?;
    ensure!(!plan.processes.is_empty(), "a job has at least one process");
    let listener = listen(args.address, plan.has_remote()).context("serving the processes")?;
    let port = listener.local_addr()?.port();
    let places = plan.places(args.address, port)?;
    let (secret, within) = (doorbell_job::secret(), Duration::from_secs(args.within));
    let terms = Terms { size: plan.processes.len(), secret: secret.clone().into_bytes(), within };
    let service = Service::start(listener, terms).context("serving the processes")?;
    let mut children = Children::start(&plan, args, &places, &secret)?;
    let status = children.wait(&service)?;
    drop(service);
    Ok(ExitCode::from(status))
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
