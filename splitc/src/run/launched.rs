//! Jobs whose processes a launcher has started: `doorbell run`, Hydra, Slurm, Open MPI's `mpiexec`,
//! or whoever sets the variables that [`doorbell_job`] reads.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use doorbell_job::{Devices, Members, Place, Routes, SECONDARY};

use super::member::{joined, on_thread, open, play};
use super::{BoxError, RunError};
use crate::config::Config;
use crate::world::{JoinError, World};

/// How long a process may go on after another has ended without being done. In this time it learns
/// so from its own operations, and ends with their errors.
const GRACE: Duration = Duration::from_secs(10);

/// Runs a program in the process of a job that is at a place.
pub(super) fn run<T, F>(
    place: Place,
    device: Option<&str>,
    mut config: Config,
    program: &F,
) -> Result<T, RunError>
where
    T: Send,
    F: AsyncFn(World) -> Result<T, BoxError> + Sync,
{
    let (rank, size) = (place.rank(), place.size());
    let watch = Arc::new(Watch { rank, over: AtomicBool::new(false), members: OnceLock::new() });
    let watches = watch.clone();
    let members = place.meet_and_watch(move |who| watches.clone().end_after(who))?;
    if members.key() != 0 {
        config.key = members.key();
    }
    let devices = Devices::of_process(device)?;
    let members = Arc::new(members);
    let _ = watch.members.set(Arc::downgrade(&members));
    let (config, shown) = (&config, &members);
    let played = std::thread::scope(|scope| {
        on_thread(scope, rank, move || {
            let join = async || {
                let opened = doorbell_job::open(&devices, shown, async |device| {
                    let nic = open(rank, device, (config, size)).await?;
                    let address = nic.address().to_string();
                    Ok::<_, JoinError>((nic, address))
                });
                let (nics, routes) = opened.await.map_err(JoinError::Job)?;
                show(&routes);
                World::join_by(&nics, routes.all(), rank, config).await
            };
            play(rank, join, program)
        })
        .and_then(|thread| joined(rank, thread.join()))
    });
    watch.over.store(true, Ordering::Relaxed);
    if let Some(other) = played.as_ref().err().and_then(RunError::gone) {
        members.ends_after(other);
    }
    let value = played?;
    // The thread that told the others of this process's devices has let go before the world was
    // made.
    Arc::into_inner(members).map_or(Ok(()), Members::finish)?;
    Ok(value)
}

/// Tells how this process reaches the others: on standard error where `DOORBELL_ROUTES` is set.
fn show(routes: &Routes) {
    tracing::debug!(%routes, "the processes of the job have met");
    if std::env::var_os("DOORBELL_ROUTES").is_some_and(|value| !value.is_empty()) {
        doorbell_job::report(&routes.to_string());
    }
}

/// A watch that ends this process when another process ends and this one does not notice.
struct Watch {
    rank: usize,
    /// Whether the program of this process is over.
    over: AtomicBool,
    members: OnceLock<Weak<Members>>,
}

impl Watch {
    /// Ends this process some time after another, or the rendezvous, has ended, unless it is done
    /// by then: it may compute for hours before it needs the other one.
    fn end_after(self: Arc<Self>, who: Option<usize>) {
        let ends = move || {
            std::thread::sleep(GRACE);
            if self.over.load(Ordering::Relaxed) {
                return;
            }
            let members = self.members.get().and_then(Weak::upgrade);
            if let (Some(members), Some(who)) = (members, who) {
                members.ends_after(who);
            }
            let who = who.map_or("the rendezvous".to_owned(), |who| format!("process {who}"));
            doorbell_job::report(&format!(
                "doorbell: process {} ends, since {who} has ended before the job was over\n",
                self.rank
            ));
            std::process::exit(SECONDARY);
        };
        // Without a thread, the process ends when it notices by itself.
        let _ = std::thread::Builder::new().name("job-end".to_owned()).spawn(ends);
    }
}
