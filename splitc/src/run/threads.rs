//! Jobs whose processes are threads of one process.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use doorbell_job::Route;
use doorbell_verbs::Nic;

use super::member::{joined, on_thread, open, play_and_tell};
use super::program::Program;
use super::secret::secret;
use super::{BoxError, RunError};
use crate::config::Config;
use crate::heap::Heaps;
use crate::messages::LONGEST_HEAP;
use crate::world::{JoinError, Kin, LONGEST, World, shared_nic_config, threads_of_nic};
use doorbell_verbs::floor::locked;

/// Runs a program in `count` threads, each of which is a process of the world.
pub(super) fn run(
    count: usize,
    device: Option<&str>,
    mut config: Config,
    program: Program<'_>,
) -> Result<(), RunError> {
    config.key = secret();
    let (device, addresses) = (device.unwrap_or("shm"), Addresses::new(count));
    let shared = Shared::open(count, device, &config)?;
    let ended = Mutex::new(Vec::new());
    let all = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..count)
            .map(|rank| {
                let (config, addresses, shared) = (&config, &addresses, shared.as_ref());
                let ended = &ended;
                on_thread(scope, rank, move || {
                    let _leaving = addresses.leaving();
                    let _ending = Ending { rank, ended };
                    let join = async || {
                        let kin =
                            Kin { heaps: shared.map(|shared| &shared.heaps), have_one_key: true };
                        let nic = match shared {
                            Some(shared) => shared.nic(rank).clone(),
                            None => open(rank, device, (config, count)).await?,
                        };
                        let own = nic.address().to_string();
                        let all = addresses.exchange(rank, own, config.start)?;
                        let routes: Vec<_> = all.into_iter().map(Route::by_first).collect();
                        World::join_kin(&[nic], &routes, rank, (config, kin)).await
                    };
                    // Before the others see that this one ends, and end because of it.
                    play_and_tell(rank, join, program, |_| note(ended, rank))
                })
            })
            .collect();
        let all = threads.into_iter().enumerate();
        let ends = all.map(|(rank, thread)| thread.and_then(|thread| joined(rank, thread.join())));
        ends.collect::<Vec<_>>()
    });
    let order = ended.into_inner().unwrap_or_else(PoisonError::into_inner);
    first_or_worst(all, &order)
}

/// The NICs and the heaps that the threads of a large job share, so that files and memory do not
/// grow with the square of their number.
struct Shared {
    nics: Vec<Nic>,
    /// How many threads share a NIC.
    of_nic: usize,
    heaps: Heaps,
}

impl Shared {
    /// Opens the NICs of a job of `count` threads, and reserves their heaps; `None` for a job in
    /// which each thread has its own.
    fn open(count: usize, device: &str, config: &Config) -> Result<Option<Self>, RunError> {
        let of_nic = threads_of_nic(count);
        if of_nic == 1 || device != "shm" || config.heap as u64 >= LONGEST_HEAP {
            return Ok(None);
        }
        let failed = |why: BoxError| {
            let why = JoinError::Device { rank: 0, device: device.to_owned(), why };
            RunError::Join { rank: 0, why }
        };
        let heaps = Heaps::new(config.heap, count).map_err(|why| failed(why.into()))?;
        let nic_config = shared_nic_config(config, count, of_nic);
        // On a thread without a runtime, for otherwise tasks of the caller's runtime would run the
        // NICs, and stop with it.
        let open = || {
            (0..count.div_ceil(of_nic))
                .map(|_| Nic::builder().config(nic_config.clone()).open_blocking(device))
        };
        let opened = std::thread::scope(|scope| {
            let thread = scope.spawn(|| open().collect::<Result<Vec<_>, _>>());
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        let nics = opened.map_err(|why| failed(why.into()))?;
        Ok(Some(Self { nics, of_nic, heaps }))
    }

    fn nic(&self, rank: usize) -> &Nic {
        &self.nics[rank / self.of_nic]
    }
}

/// Notes, when it is dropped, that the thread of a rank has ended.
struct Ending<'e> {
    rank: usize,
    ended: &'e Mutex<Vec<usize>>,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        note(self.ended, self.rank);
    }
}

/// Notes that the thread of a rank has failed, or has ended.
fn note(ended: &Mutex<Vec<usize>>, rank: usize) {
    locked(ended).push(rank);
}

/// The result of process 0, or the error that tells most: of those that do not only tell of the end
/// of another process, and otherwise of all, the one of the thread that ended first.
fn first_or_worst<T>(mut ends: Vec<Result<T, RunError>>, order: &[usize]) -> Result<T, RunError> {
    let place = |rank: usize| order.iter().position(|ended| *ended == rank).unwrap_or(usize::MAX);
    let failed = ends.iter().enumerate().filter_map(|(rank, end)| {
        let why = end.as_ref().err()?;
        Some((why.is_secondary() || why.is_given_up(), place(rank), rank))
    });
    let worst = failed.min().map_or(0, |(.., rank)| rank);
    ends.swap_remove(worst)
}

/// The addresses of all threads' NICs, by which the threads exchange theirs.
struct Addresses {
    told: Mutex<Told>,
    changed: Condvar,
}

struct Told {
    addresses: Vec<Option<String>>,
    /// Whether a thread has ended: if it has not told its address by then, it never will.
    over: bool,
}

impl Addresses {
    fn new(count: usize) -> Self {
        let told = Told { addresses: vec![None; count], over: false };
        Self { told: Mutex::new(told), changed: Condvar::new() }
    }

    /// Publishes the address of this thread's NIC, and waits for the addresses of all others.
    fn exchange(
        &self,
        rank: usize,
        own: String,
        within: Duration,
    ) -> Result<Vec<String>, JoinError> {
        let until = Instant::now() + within.min(LONGEST);
        let mut told = locked(&self.told);
        told.addresses[rank] = Some(own);
        self.changed.notify_all();
        loop {
            if let Some(all) = told.addresses.iter().cloned().collect() {
                return Ok(all);
            }
            let rank = told.addresses.iter().position(Option::is_none).unwrap_or(0);
            let address = "an address that it has not told".to_owned();
            if told.over {
                let why = "its thread ended before it had a NIC".to_owned();
                return Err(JoinError::Lost { rank, address, why });
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let why = "its thread has no NIC yet".to_owned();
                return Err(JoinError::Missing { rank, address, within, why });
            }
            let waited = self.changed.wait_timeout(told, left);
            told = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Returns a guard that notes, when it is dropped, that this thread has ended.
    fn leaving(&self) -> Leaving<'_> {
        Leaving(self)
    }
}

struct Leaving<'a>(&'a Addresses);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        let mut told = locked(&self.0.told);
        told.over = true;
        self.0.changed.notify_all();
    }
}
