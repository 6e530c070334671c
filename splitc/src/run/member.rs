//! One process of a world: what every way of running a program comes down to.

use std::any::Any;

use doorbell_verbs::Nic;
use tokio::runtime::Builder;
use tokio::task::LocalSet;

use super::{BoxError, RunError};
use crate::config::Config;
use crate::world::{JoinError, Membership, World, nic_config};

/// How much stack the thread of a process has.
const STACK: usize = 8 << 20;

/// Runs a program as a member of a world that others started.
pub(super) fn run<T, F>(
    membership: &Membership,
    config: &Config,
    program: &F,
) -> Result<T, RunError>
where
    T: Send,
    F: AsyncFn(World) -> Result<T, BoxError> + Sync,
{
    // On a thread of its own, for this one may have a runtime.
    std::thread::scope(|scope| {
        let rank = membership.rank;
        let world = async || World::join(membership, config).await;
        on_thread(scope, rank, move || play(rank, world, program))
            .and_then(|thread| joined(rank, thread.join()))
    })
}

/// Runs a program in a world that is joined as told, with a runtime of its own on this thread.
pub(super) fn play<T, F, J>(rank: usize, join: J, program: &F) -> Result<T, RunError>
where
    F: AsyncFn(World) -> Result<T, BoxError>,
    J: AsyncFnOnce() -> Result<World, JoinError>,
{
    let started = |why: std::io::Error| {
        let why: BoxError = Box::new(why);
        RunError::Failed { rank, why }
    };
    let runtime = Builder::new_current_thread().enable_all().build().map_err(started)?;
    let played = async {
        let world = join().await.map_err(|why| RunError::Join { rank, why })?;
        let failed = |why| RunError::Failed { rank, why };
        let returned = program(world.clone()).await.map_err(failed)?;
        world.leave().await.map_err(|why| failed(why.into()))?;
        Ok(returned)
    };
    runtime.block_on(LocalSet::new().run_until(played))
}

/// Opens the NIC of a process whose address others have to be told.
pub(super) async fn open(
    rank: usize,
    device: &str,
    (config, size): (&Config, usize),
) -> Result<Nic, JoinError> {
    let opened = Nic::open_async(device, nic_config(config, size)).await;
    let device = device.to_owned();
    opened.map_err(|why| JoinError::Device { rank, device, why: Box::new(why) })
}

/// Starts a thread for a process.
pub(super) fn on_thread<'s, 'e, T: Send + 's>(
    scope: &'s std::thread::Scope<'s, 'e>,
    rank: usize,
    runs: impl FnOnce() -> T + Send + 's,
) -> Result<std::thread::ScopedJoinHandle<'s, T>, RunError> {
    let thread = std::thread::Builder::new().name(format!("rank {rank}")).stack_size(STACK);
    thread.spawn_scoped(scope, runs).map_err(|why| RunError::Failed { rank, why: Box::new(why) })
}

/// What a thread has returned, or that it panicked.
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
