//! Running a program in one process of a world, which every kind of job comes down to.

use std::any::Any;

use doorbell_verbs::Nic;
use doorbell_verbs::floor::{Room, descriptors, naming_limits};
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;

use super::program::Program;
use super::{BoxError, RunError};
use crate::config::Config;
use crate::world::{JoinError, Membership, World, nic_config};

/// The size in bytes of the stack of a process's thread.
const STACK: usize = 8 << 20;

/// Runs a program as a member of a world that others started, on a new thread.
pub(super) fn run(
    membership: &Membership,
    config: &Config,
    program: Program<'_>,
) -> Result<(), RunError> {
    // The thread is a new one, for the calling thread may be inside of a runtime.
    std::thread::scope(|scope| {
        let rank = membership.rank;
        let world = async || World::join(membership, config).await;
        on_thread(scope, rank, move || play(rank, world, program))
            .and_then(|thread| joined(rank, thread.join()))
    })
}

/// Joins a world by `join`, and runs a program in it, with a runtime of its own on this thread.
pub(super) fn play<J>(rank: usize, join: J, program: Program<'_>) -> Result<(), RunError>
where
    J: AsyncFnOnce() -> Result<World, JoinError>,
{
    play_and_tell(rank, join, program, |_| {})
}

/// Joins a world and runs a program as [`play`] does. An error of the program is told to `fails`
/// while the other processes do not see yet that this one ends.
pub(super) fn play_and_tell<J>(
    rank: usize,
    join: J,
    program: Program<'_>,
    fails: impl FnOnce(&RunError),
) -> Result<(), RunError>
where
    J: AsyncFnOnce() -> Result<World, JoinError>,
{
    let runtime = runtime().map_err(|why| RunError::Failed { rank, why })?;
    let played = async {
        let world = join().await.map_err(|why| RunError::Join { rank, why })?;
        let played = async {
            program(world.clone()).await?;
            world.leave().await?;
            Ok(())
        };
        let played = played.await.map_err(|why| RunError::Failed { rank, why });
        played.inspect_err(fails)
    };
    runtime.block_on(LocalSet::new().run_until(played))
}

/// The file descriptors that a runtime takes: to poll, to be woken, and to hear of signals. Tokio
/// panics where there are too few for the last.
const DESCRIPTORS: u64 = 6;

/// Makes the runtime of a process.
fn runtime() -> Result<Runtime, BoxError> {
    let Room { used, allowed } = descriptors();
    if allowed.saturating_sub(used) < DESCRIPTORS {
        return Err(format!(
            "its runtime takes {DESCRIPTORS} file descriptors, and this process has {used} of the \
             {allowed} that it may have (RLIMIT_NOFILE); allow at least {} with `ulimit -n`",
            used + DESCRIPTORS
        )
        .into());
    }
    Ok(Builder::new_current_thread().enable_all().build().map_err(naming_limits)?)
}

/// Opens the NIC of a process before it joins, so that the others can be told its address.
pub(super) async fn open(
    rank: usize,
    device: &str,
    (config, size): (&Config, usize),
) -> Result<Nic, JoinError> {
    let opened = Nic::builder().config(nic_config(config, size)).open(device).await;
    let device = device.to_owned();
    opened.map_err(|why| JoinError::Device { rank, device, why: Box::new(why) })
}

/// Starts the thread of a process.
pub(super) fn on_thread<'s, 'e, T: Send + 's>(
    scope: &'s std::thread::Scope<'s, 'e>,
    rank: usize,
    runs: impl FnOnce() -> T + Send + 's,
) -> Result<std::thread::ScopedJoinHandle<'s, T>, RunError> {
    let thread = std::thread::Builder::new().name(format!("rank {rank}")).stack_size(STACK);
    thread.spawn_scoped(scope, runs).map_err(|why| {
        let why = format!(
            "its thread can't be started: {why}; a limit of addresses (`ulimit -v`) or of threads \
             (`ulimit -u`) may be too low"
        );
        RunError::Failed { rank, why: why.into() }
    })
}

/// The result of a process's thread, with a panic as an error.
pub(super) fn joined<T>(
    rank: usize,
    joined: Result<Result<T, RunError>, Box<dyn Any + Send>>,
) -> Result<T, RunError> {
    joined.unwrap_or_else(|panic| Err(RunError::Panicked { rank, text: said(&*panic) }))
}

fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}
