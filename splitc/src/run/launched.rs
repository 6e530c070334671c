//! Jobs whose processes a launcher has started: `doorbell run`, Hydra, Slurm, Open MPI's `mpiexec`,
//! or whoever sets the variables that [`doorbell_job`] reads.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use doorbell_job::{Devices, JobError, Members, Place, Routes, SECONDARY};
use tokio::sync::Notify;

use super::RunError;
use super::member::{joined, on_thread, open, play_and_tell};
use super::program::Program;
use crate::config::Config;
use crate::world::{JoinError, Kin, World};

/// How long a process may go on after another has ended without being done. In this time it learns
/// so from its own operations, and ends with their errors.
const GRACE: Duration = Duration::from_secs(10);

/// How long a process still tries to join the world when another has ended.
const AFTERMATH: Duration = Duration::from_millis(300);

/// The rank of this process in the job of its launcher and the launcher's name, once this process
/// has taken its place there.
static TAKEN: OnceLock<(usize, String)> = OnceLock::new();

/// The place of this process in the job of its launcher, which it takes once; `None` if the
/// variables have gone that named one.
pub(super) fn take_place(config: &Config) -> Result<Option<Place>, RunError> {
    let second = |(rank, starter): &(usize, String)| RunError::SecondOfLauncher {
        rank: *rank,
        starter: starter.clone(),
    };
    if let Some(taken) = TAKEN.get() {
        return Err(second(taken));
    }
    let Some(place) = Place::find(config.start)? else { return Ok(None) };
    let own = (place.rank(), place.starter().to_owned());
    TAKEN.set(own).map_err(|own| second(&own))?;
    Ok(Some(place))
}

/// Runs a program in the process of a job that is at a place.
pub(super) fn run(
    place: Place,
    device: Option<&str>,
    mut config: Config,
    program: Program<'_>,
) -> Result<(), RunError> {
    let (rank, size) = (place.rank(), place.size());
    let watch = Arc::new(Watch {
        rank,
        over: AtomicBool::new(false),
        members: OnceLock::new(),
        ended: OnceLock::new(),
        ends: Notify::new(),
    });
    let watches = watch.clone();
    let members = place.meet_and_watch(move |who| watches.clone().end_after(who))?;
    if members.key() != 0 {
        config.key = members.key();
    }
    let devices = Devices::of_process(device)?;
    let members = Arc::new(members);
    let _ = watch.members.set(Arc::downgrade(&members));
    let (config, shown, watched) = (&config, &members, &watch);
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
                let kin = Kin { have_one_key: config.key != 0, ..Kin::default() };
                let joins = World::join_kin(&nics, routes.all(), rank, (config, kin));
                tokio::select! {
                    biased;
                    joined = joins => joined,
                    who = watched.one_ends() => Err(JoinError::Job(match who {
                        Some(rank) => JobError::Ended { rank },
                        None => JobError::ServiceEnded,
                    })),
                }
            };
            // Before others can name this process as the reason of their own ends.
            let fails = |why: &RunError| {
                why.gone().into_iter().for_each(|other| shown.ends_after(other));
            };
            play_and_tell(rank, join, program, fails)
        })
        .and_then(|thread| joined(rank, thread.join()))
    });
    watch.over.store(true, Ordering::Relaxed);
    played.map_err(|why| first_cause(&members, why))?;
    // The thread that told the others of this process's devices has let go before the world was
    // made.
    Arc::into_inner(members).map_or(Ok(()), Members::finish)?;
    Ok(())
}

/// The error of a process, with the process that was the first to end if this one has failed since
/// another has gone, which may have ended because of that one. The first may be this process itself:
/// one that returns too early waits for others that end because of it.
fn first_cause(members: &Members, why: RunError) -> RunError {
    let rank = members.rank();
    match why.gone().and_then(|other| Some((other, members.first_ended(other)?))) {
        Some((other, first)) if first != other => {
            RunError::After { rank, first, why: Box::new(why) }
        }
        _ => why,
    }
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
    /// The process that was the first to be heard to have ended, or `None` for the rendezvous.
    ended: OnceLock<Option<usize>>,
    ends: Notify,
}

impl Watch {
    /// Waits until another process has ended, or the rendezvous has, and some time longer: a process
    /// that learns so by itself while it joins says more. Returns who it was.
    async fn one_ends(&self) -> Option<usize> {
        while self.ended.get().is_none() {
            self.ends.notified().await;
        }
        tokio::time::sleep(AFTERMATH).await;
        self.ended.get().copied().flatten()
    }

    /// Ends this process some time after another, or the rendezvous, has ended, unless it is done
    /// by then: it may compute for hours before it needs the other one.
    fn end_after(self: Arc<Self>, who: Option<usize>) {
        let _ = self.ended.set(who);
        self.ends.notify_one();
        let ends = move || {
            std::thread::sleep(GRACE);
            if self.over.load(Ordering::Relaxed) {
                return;
            }
            let members = self.members.get().and_then(Weak::upgrade);
            let first = members.zip(who).and_then(|(members, who)| members.first_ended(who));
            let who = first.or(who);
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
