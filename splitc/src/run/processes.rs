//! Jobs of processes of this machine, which the program starts itself.
//!
//! The process that is started first is process 0. It starts the others with its own arguments, as
//! [`Children`]. Each process opens its NIC, reports the address of its NIC to process 0 over a
//! socket that it has inherited, and gets the addresses of all processes. The connection stays, so
//! that each side notices when the other ends.

use std::cell::OnceCell;
use std::io;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use doorbell_job::{Absence, Children, Route, SECONDARY, Starter, Teller};
use doorbell_verbs::Nic;

use super::RunError;
use super::member::{joined, on_thread, open, play, play_and_tell};
use super::program::Program;
use super::secret::secret;
use crate::config::Config;
use crate::world::{JoinError, Kin, World};

/// Whether a job of processes has been run in this program.
static RAN: AtomicBool = AtomicBool::new(false);

/// How often process 0 looks, while it joins the world, whether another process has ended and, as
/// `AFTERMATH` says, how long it still tries to join when one has.
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);
const AFTERMATH: Duration = Duration::from_millis(100);

/// How long processes that still run may take to end when the job is over.
const GRACE: Duration = Duration::from_secs(10);

/// Runs a program in `count` processes. In a process that was started for the job, the function
/// does not return: the process exits here.
pub(super) fn run(
    count: usize,
    device: Option<&str>,
    mut config: Config,
    program: Program<'_>,
) -> Result<(), RunError> {
    let device = device.unwrap_or("shm");
    if RAN.swap(true, Ordering::Relaxed) {
        return Err(RunError::SecondJob);
    }
    if let Some(starter) = Starter::of_process(config.start).transpose() {
        let ended = match starter {
            Ok(starter) => started(starter, count, device, config, program),
            Err(why) => Err(RunError::Job(why)),
        };
        if let Err(why) = &ended {
            tell(why);
        }
        std::process::exit(match &ended {
            Ok(()) => 0,
            Err(why) if why.is_secondary() => SECONDARY,
            Err(_) => 1,
        });
    }
    config.key = secret();
    let mut started = Children::start(count, &format!("{:x}", config.key)).map_err(|why| {
        RunError::Start { size: count, what: "starting this program again".to_owned(), why }
    })?;
    let played = std::thread::scope(|scope| {
        let (started, config) = (&mut started, &config);
        on_thread(scope, 0, move || {
            let join = async || {
                let nic = open(0, device, (config, count)).await?;
                let own = nic.address().to_string();
                let all = started.meet(own, config.start);
                // Where one has not reported, the others end, too, when their connections do.
                let all = all.inspect_err(|_| started.leave());
                let all = all.map_err(|why| missing(why, config.start))?;
                let joins = join_all(nic, &all, 0, config);
                let joined = unless_one_ends(started, joins).await;
                joined.inspect_err(|_| started.leave())
            };
            play(0, join, program)
        })
        .and_then(|thread| joined(0, thread.join()))
    });
    let ended = end(&mut started, played.is_ok());
    match (played, ended) {
        // What a process has printed itself tells more than the notice of its end by process 0.
        (Err(why), Some((rank, status)))
            if why.is_secondary() && status.code() != Some(SECONDARY) =>
        {
            Err(RunError::Exited { rank, status })
        }
        (Err(why), _) => Err(first_cause(&mut started, why)),
        (Ok(_), Some((rank, status))) => Err(RunError::Exited { rank, status }),
        (Ok(()), None) => Ok(()),
    }
}

/// The error of process 0, with the process that was the first to end if this one has failed since
/// another has gone, which may have ended because of that one.
fn first_cause(started: &mut Children, why: RunError) -> RunError {
    let Some(gone) = why.gone() else { return why };
    // In a job that has failed, whoever has ended with success has done so too early.
    if let Some((rank, status)) = started.succeeded() {
        return RunError::Early { rank, status };
    }
    match started.early() {
        Some(first) if first != gone => RunError::After { rank: 0, first, why: Box::new(why) },
        _ => why,
    }
}

/// Prints why a process that was started has failed. Process 0 tells of processes that have ended
/// because another had: it sees all of them end, and knows which was the first.
fn tell(why: &RunError) {
    if !why.is_secondary() {
        doorbell_job::report(&format!("doorbell: {why}\n"));
    } else if why.gone() == Some(0) {
        // If process 0 has ended, the thread that waits for that says so, and ends this process.
        std::thread::sleep(AFTERMATH);
    }
}

/// Runs the program in a process that another has started.
fn started(
    starter: Starter,
    count: usize,
    device: &str,
    mut config: Config,
    program: Program<'_>,
) -> Result<(), RunError> {
    let rank = starter.rank();
    let wrong = |why| RunError::Start {
        size: count,
        what: "hearing the key of the job".to_owned(),
        why: io::Error::new(io::ErrorKind::InvalidData, why),
    };
    config.key = u64::from_str_radix(starter.secret(), 16).map_err(wrong)?;
    let config = &config;
    std::thread::scope(|scope| {
        on_thread(scope, rank, move || {
            let teller: OnceCell<Teller> = OnceCell::new();
            let join = async || {
                let nic = open(rank, device, (config, count)).await?;
                let met = starter.meet(&nic.address().to_string(), count, move || leave(rank));
                let (all, tells) = met.map_err(|why| JoinError::Lost {
                    rank: 0,
                    address: "the socket that it has left to this process".to_owned(),
                    why: why.to_string(),
                })?;
                let _ = teller.set(tells);
                join_all(nic, &all, rank, config).await
            };
            let fails = |why: &RunError| {
                if let (Some(teller), Some(other)) = (teller.get(), why.early()) {
                    teller.early(other);
                }
            };
            play_and_tell(rank, join, program, fails)
        })
        .and_then(|thread| joined(rank, thread.join()))
    })
}

/// Joins the world of all processes of this job, to which process 0 has given the key.
async fn join_all(
    nic: Nic,
    addresses: &[String],
    rank: usize,
    config: &Config,
) -> Result<World, JoinError> {
    let routes: Vec<_> =
        addresses.iter().map(|address| Route::by_first(address.as_str())).collect();
    let kin = Kin { have_one_key: true, ..Kin::default() };
    World::join_kin(&[nic], &routes, rank, (config, kin)).await
}

/// Ends this process, since process 0 has ended.
fn leave(rank: usize) {
    doorbell_job::report(&format!("doorbell: process {rank} ends, since process 0 has ended\n"));
    std::process::exit(SECONDARY);
}

/// The error about a process that has not told its address.
fn missing(absence: Absence, within: Duration) -> JoinError {
    let address = "an address that it has not told".to_owned();
    match absence {
        Absence::Ended { rank, status } => JoinError::Ended { rank, status },
        Absence::Broken { rank, why } => JoinError::Lost { rank, address, why },
        Absence::Late { rank } => {
            JoinError::Missing { rank, address, within, why: "it did not report".to_owned() }
        }
    }
}

/// Waits until this process has joined the world, or until one of the others, each of which has
/// reported its address, has ended without having joined: it will not join any more, even if it
/// ended with success.
async fn unless_one_ends<T>(
    children: &mut Children,
    joins: impl Future<Output = Result<T, JoinError>>,
) -> Result<T, JoinError> {
    let ends = async {
        loop {
            if let Some((rank, status)) = children.ended() {
                // If that process had joined, this one joins as well, and learns the rest as a
                // member of the world.
                tokio::time::sleep(AFTERMATH).await;
                return JoinError::Ended { rank, status };
            }
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
    };
    tokio::select! {
        biased;
        joined = joins => joined,
        ended = ends => Err(ended),
    }
}

/// Waits for all processes to end. If a process has failed, or this one has, the others get
/// [`GRACE`], and are killed after that. Returns the rank and the status of the first process that
/// ended without success, if one did; processes that ended only because another had ended come
/// last.
fn end(children: &mut Children, succeeded: bool) -> Option<(usize, ExitStatus)> {
    let until = Instant::now() + GRACE;
    loop {
        let all_ended = !children.are_running();
        let worst = children.failed();
        let time_is_over = (worst.is_some() || !succeeded) && Instant::now() >= until;
        if all_ended || time_is_over {
            return worst;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
