//! `doorbell run`: starts the processes of a job on this machine, or on several by ssh.
//!
//! The launcher serves the rendezvous, starts the processes, passes their output, its input and its
//! signals on, and ends all when one fails.

mod args;
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
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, ensure};
use doorbell_job::{Service, Terms};
use doorbell_measure::usage;

pub use args::Args;
use children::Children;
pub use exec::{ExecArgs, NAME, become_process};
pub use guard::{KeeperArgs, NAME as KEEPER, run};
use plan::Plan;
use variables::Common;
use watch::Watch;

/// Starts the job of the arguments, and waits for its end. Returns the status of the job.
///
/// # Errors
/// When the processes can't be started.
pub fn keep(keeper: &KeeperArgs) -> anyhow::Result<ExitCode> {
    let args = &keeper.job;
    descendants::keep()?;
    let signals = signals::handled(&[]).context("handling signals")?;
    let plan = Plan::of(args).map_err(usage::wrong)?;
    ensure!(!plan.processes.is_empty(), "a job has at least one process");
    let within = variables::within(args.within).map_err(usage::wrong)?;
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
