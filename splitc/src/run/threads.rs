//! Jobs whose processes are threads of one process.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::member::{joined, on_thread, open, play};
use super::{BoxError, RunError, secret};
use crate::config::Config;
use crate::world::{JoinError, LONGEST, World};

/// Runs a program in `count` threads, each of which is a process of the world.
pub(super) fn run<T, F>(
    count: usize,
    device: Option<&str>,
    mut config: Config,
    program: &F,
) -> Result<T, RunError>
where
    T: Send,
    F: AsyncFn(World) -> Result<T, BoxError> + Sync,
{
    config.key = secret();
    let (device, addresses) = (device.unwrap_or("shm"), Addresses::new(count));
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..count)
            .map(|rank| {
                let (config, addresses) = (&config, &addresses);
                on_thread(scope, rank, move || {
                    let _leaving = addresses.leaving();
                    let join = async || {
                        let nic = open(rank, device, (config, count)).await?;
                        let own = nic.address().to_string();
                        let all = addresses.exchange(rank, own, config.start)?;
                        World::join_on(&nic, rank, &all, config).await
                    };
                    play(rank, join, program)
                })
            })
            .collect();
        let all = threads.into_iter().enumerate();
        let ends = all.map(|(rank, thread)| thread.and_then(|thread| joined(rank, thread.join())));
        first_or_worst(ends.collect())
    })
}

/// The result of process 0, or the error that tells most: one that does not only tell of the end of
/// another process, if there is such an error.
fn first_or_worst<T>(ends: Vec<Result<T, RunError>>) -> Result<T, RunError> {
    let (mut first, mut worst) = (None, None::<RunError>);
    for end in ends {
        match end {
            Ok(value) => _ = first.get_or_insert(value),
            Err(why) => match &worst {
                Some(known) if !known.is_secondary() || why.is_secondary() => {}
                _ => worst = Some(why),
            },
        }
    }
    match (worst, first) {
        (Some(why), _) => Err(why),
        (None, Some(value)) => Ok(value),
        (None, None) => unreachable!("there is at least one thread"),
    }
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
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.addresses[rank] = Some(own);
        self.changed.notify_all();
        loop {
            if let Some(all) = told.addresses.iter().cloned().collect() {
                return Ok(all);
            }
            let missing = told.addresses.iter().position(Option::is_none).unwrap_or(0);
            let left = until.saturating_duration_since(Instant::now());
            if told.over || left.is_zero() {
                let why = "its thread ended before it had a NIC".to_owned();
                let address = "an address that it has not told".to_owned();
                return Err(JoinError::Missing { rank: missing, address, within, why });
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
        let mut told = self.0.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.over = true;
        self.0.changed.notify_all();
    }
}
