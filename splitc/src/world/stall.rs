//! What a process waits for, in words, and reports of waits that take long.

use std::fmt;
use std::pin::pin;
use std::time::Duration;

use doorbell_am::stall::Stall;
use tokio::time::timeout;

use super::Core;

/// How often a wait that was not over soon is looked at.
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

/// The thing that a process waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Waits {
    /// Operations on the memory of other processes.
    Operations,
    /// The arrival of bytes that others store in this process's memory: `wanted` in all, of which
    /// `come` have arrived.
    Stores { wanted: u64, come: u64 },
    /// A change of a word of this process's memory.
    Change { offset: usize },
    /// Credits for a message to a process.
    Credit { rank: usize },
}

impl Core {
    /// Awaits a future, and reports what it waits for when that takes long.
    pub async fn reported<T>(&self, waits: Waits, future: impl Future<Output = T>) -> T {
        let mut stall = Stall::after(self.stall);
        let mut future = pin!(future);
        loop {
            if let Ok(output) = timeout(BETWEEN_LOOKS, &mut future).await {
                return output;
            }
            stall.report(|| self.words(waits));
        }
    }

    /// The words that say that this process waits for something, and for whom.
    pub(super) fn words(&self, waits: Waits) -> String {
        let rank = self.rank;
        match waits {
            Waits::Operations => format!("process {rank} waits for {}", self.unfinished()),
            Waits::Stores { wanted, come } => format!(
                "process {rank} waits in store_sync for {wanted} bytes from any process, of which \
                 {come} have come"
            ),
            Waits::Change { offset } => format!(
                "process {rank} waits for any process to change its memory at offset {offset}"
            ),
            Waits::Credit { rank: other } => format!(
                "process {rank} waits for process {other} to take messages, which it does when it \
                 waits for something itself, or polls"
            ),
        }
    }

    /// The operations that are not done, by the processes that they are for.
    fn unfinished(&self) -> Unfinished {
        let mut counts = vec![0; self.size()];
        for (_, flight) in self.flights.borrow().iter() {
            counts[flight.rank] += 1;
        }
        for (count, peer) in counts.iter_mut().zip(&self.peers) {
            let messages = peer.far.as_ref().map_or(0, |far| far.pending.borrow().len());
            *count += messages;
        }
        Unfinished(counts)
    }
}

/// How many requests to each process are not done.
struct Unfinished(Vec<usize>);

impl fmt::Display for Unfinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = self.0.iter().enumerate().filter(|(_, count)| **count > 0);
        let counts: Vec<_> =
            counts.map(|(rank, count)| format!("process {rank} ({count} requests)")).collect();
        match counts.is_empty() {
            true => f.write_str("operations that have not been sent"),
            false => write!(f, "operations on the memory of {}", counts.join(", ")),
        }
    }
}
