//! Waiting for operations, and the progress that is made meanwhile.

use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

use doorbell_am::costs::{Cost, span};
use doorbell_am::stall::Stall;

use super::stall::Waits;
use super::{Core, World};
use crate::error::{Error, ErrorKind};
use crate::heap::sleepers;
use crate::landing::Slot;
use crate::messages::{Answer, Batch, Refusals, Target};
use crate::peers::{Far, Peer};

/// How long a process that waits for a change of its memory sleeps at a time: at first and, as
/// `LONGEST_NAP` says, at most. Peers that change the memory by the library's signals and counts
/// wake the process earlier.
const NAP: Duration = Duration::from_millis(1);
const LONGEST_NAP: Duration = Duration::from_millis(8);

impl World {
    /// Sends all operations that wait to be aggregated with more, and waits until all of this
    /// process's reads, gets, puts and atomic operations are done: fetched values have arrived
    /// here, and data has arrived at its target.
    ///
    /// Stores are sent, too, but only their target knows when they have arrived: see
    /// [`all_store_sync`](Self::all_store_sync).
    ///
    /// # Errors
    /// When an operation has failed since the last `sync`, whether its handle was dropped or not:
    /// the first such failure. All other operations are done by then, or have failed, too.
    pub async fn sync(&self) -> Result<(), Error> {
        let core = &*self.0;
        let flushed = core.flush().await;
        // Writes to mapped memory are visible before anything is read behind the `sync`.
        fence(Ordering::SeqCst);
        if flushed.is_err() {
            // Operations that were never sent to a process that has gone have failed, too.
            core.settle();
        }
        if core.outstanding.get() > 0 {
            core.until(|_| Waits::Operations, |core| (core.outstanding.get() == 0).then_some(()))
                .await;
        }
        core.count_one();
        let breathed = core.breathe().await;
        match core.failure.take() {
            Some(why) => Err(why),
            None => flushed.and(breathed),
        }
    }

    /// Sends all operations and stores that wait to be aggregated with more, and serves other
    /// processes if they have sent anything. Whenever a process has to wait for something of the
    /// world, that is done first, so a program needs `flush` only before it goes on to compute.
    ///
    /// # Errors
    /// When a process has gone to which operations or stores were to be sent.
    pub async fn flush(&self) -> Result<(), Error> {
        self.0.flush().await?;
        self.0.look_around();
        tokio::task::yield_now().await;
        Ok(())
    }

    /// Sends all operations and stores that wait to be aggregated with more, as
    /// [`flush`](Self::flush) does, but lets no other task run. While there is no credit for a
    /// message, this makes progress and blocks the thread.
    ///
    /// # Errors
    /// When a process has gone to which operations or stores were to be sent.
    #[inline]
    pub fn flush_now(&self) -> Result<(), Error> {
        match self.0.has_to_flush() {
            true => self.0.flush_now(),
            false => Ok(()),
        }
    }

    /// Serves what has come from other processes, without waiting: for programs that compute for
    /// long, and are not in [dedicated mode](crate::Config::progress).
    ///
    /// Collectives that were begun, and whatever else is awaited, go on only when the program
    /// awaits something: `tokio::task::yield_now().await` is enough.
    pub fn poll(&self) {
        self.0.look_around();
    }
}

impl Core {
    /// Waits until everything is done that this process has begun before, stores included, and
    /// whichever of its futures has begun it. If a process has gone, the first failure since the
    /// last `sync` is returned.
    ///
    /// That nothing is overlooked rests on three rules. A peer for which something waits is in the
    /// list `dirty` until that is sent, also while a future of this process waits for the credit to
    /// send it. What is sent is counted as outstanding until it is answered, and stores by messages
    /// count as unconfirmed until a message is sent behind them that is answered. Whoever accesses
    /// a range checks it after the last `await` before the access, and whoever may run code of the
    /// program's in between holds [`amid`](Self::amid).
    pub async fn all_done(&self) -> Result<(), Error> {
        loop {
            self.flush().await?;
            self.confirm().await?;
            self.make_changes();
            let done = |core: &Self| core.outstanding.get() == 0 && core.amid.get() == 0;
            if done(self) && !self.has_to_send() {
                break;
            }
            // Meanwhile other futures of this process may begin more, or leave more to be sent.
            self.until(|_| Waits::Operations, |core| done(core).then_some(())).await;
        }
        match self.departures.any() {
            true => self.failure.take().map_or(Ok(()), Err),
            false => Ok(()),
        }
    }

    /// Whether anything waits to be sent, to be confirmed, or to be changed in mapped memory.
    fn has_to_send(&self) -> bool {
        let unconfirmed = |peer: &Peer| peer.far.as_ref().is_some_and(|far| far.unconfirmed.get());
        self.has_to_flush() || self.has_changes() || self.peers.iter().any(unconfirmed)
    }

    /// Waits until `condition` returns a value, and serves peers meanwhile. The condition may
    /// depend on anything that this process waits for, and on its heap. A wait that takes long is
    /// reported as `waits` says.
    pub async fn until<T>(
        &self,
        waits: impl Fn(&Self) -> Waits,
        mut condition: impl FnMut(&Self) -> Option<T>,
    ) -> T {
        let mut nap = NAP;
        let mut asleep = None;
        let mut stall = None;
        loop {
            let waited = self.bundle.wait_until_woken(
                || {
                    self.settle();
                    condition(self)
                },
                |waker| self.arm(waker),
            );
            if let Ok(found) = tokio::time::timeout(nap, waited).await {
                return found;
            }
            // From here on, a peer that changes this heap by a signal or a count is to wake this
            // process, which checks the condition once more before it sleeps.
            asleep.get_or_insert_with(|| sleepers(self.heap.region()).announce());
            nap = (nap * 2).min(LONGEST_NAP);
            let stall = stall.get_or_insert_with(|| Stall::after(self.stall));
            stall.report(|| self.words(waits(self)));
        }
    }

    /// Handles what has arrived: answers to messages, completions of one-sided requests, and the
    /// ends of peers.
    #[inline]
    pub fn settle(&self) {
        let _notification = span(Cost::Notification);
        self.settle_flights();
        while self.served.has_answers() {
            let Some(answer) = self.served.next_answer() else { break };
            self.take_answer(answer);
        }
        if self.departures.any() {
            self.bury();
        }
    }

    /// Handles the answer to a message of operations: hands its values out, or fails the
    /// operations.
    fn take_answer(&self, answer: Answer) {
        let _semantics = span(Cost::Semantics);
        let rank = (answer.about >> 32) as usize;
        let far = self.peers.get(rank).and_then(|peer| peer.far.as_ref());
        let expected = far.filter(|far| far.answered.get() as u32 == answer.about as u32);
        let batch = expected.and_then(|far| Some((far, far.pending.borrow_mut().pop_front()?)));
        let Some((far, batch)) = batch else {
            return tracing::warn!(rank, "a process has answered what it was not asked");
        };
        far.answered.set(far.answered.get() + 1);
        self.outstanding.set(self.outstanding.get() - 1);
        match answer.refused {
            Ok(refused) => self.hand_out(&batch, rank, refused, &answer.values),
            Err(why) => {
                let why = format!("process {rank} did not carry operations out: {why}");
                self.fail(batch, Error::invalid(why));
            }
        }
        self.served.recycle(answer.values);
    }

    /// Hands out the values that have come, and fails the operations that were refused, or for
    /// which no value has come.
    fn hand_out(&self, batch: &Batch, rank: usize, refused: Refusals, mut values: &[u8]) {
        let failed = || ErrorKind::Refused { rank, count: refused.count().max(1) }.into();
        for (at, target) in batch.targets.iter().enumerate() {
            let len = usize::from(target.len());
            let whole = values.split_at_checked(len.next_multiple_of(8));
            let (value, rest) = whole.unwrap_or((&[], &[]));
            values = rest;
            match value.get(..len) {
                Some(value) if !refused.contains(at) => self.hand_over(batch, target, value),
                _ => self.fail_one(batch, target, failed()),
            }
        }
        // An empty message confirms stores, and has no targets.
        if batch.targets.is_empty() && refused.any() {
            self.note(failed());
        }
    }

    /// Hands the value of one operation to whoever waits for it.
    fn hand_over(&self, batch: &Batch, target: &Target, value: &[u8]) {
        match *target {
            Target::Nothing => {}
            Target::Slot { slot, .. } => self.fill(slot, Slot::of(value)),
            Target::Row { row, at, .. } => {
                batch.rows[usize::from(row)].borrow_mut().land(at, value);
            }
            Target::Heap { offset, .. } => {
                let written = self.heap.region().write_at(offset as usize, value);
                written.expect("the range was checked");
            }
        }
    }

    /// Fails all operations of a message.
    #[cold]
    fn fail(&self, batch: Batch, why: Error) {
        batch.targets.iter().for_each(|target| self.fail_one(&batch, target, why.clone()));
        if batch.targets.is_empty() {
            self.note(why);
        }
    }

    /// Fails one operation of a message, for its handle and for the next `sync`.
    #[cold]
    fn fail_one(&self, batch: &Batch, target: &Target, why: Error) {
        match *target {
            Target::Nothing | Target::Heap { .. } => self.note(why),
            Target::Slot { slot, .. } => self.fill(slot, Slot::Failed(why)),
            Target::Row { row, .. } => {
                batch.rows[usize::from(row)].borrow_mut().fail(&why);
                self.note(why);
            }
        }
    }

    /// Fails everything that is under way, or waits to be sent, to peers that have gone.
    #[cold]
    fn bury(&self) {
        let gone = self.peers.iter().filter(|peer| self.departures.has_gone(peer.rank));
        for (peer, far) in gone.filter_map(|peer| Some((peer, peer.far.as_ref()?))) {
            peer.untold.set(0);
            self.bury_one(peer.rank, far);
        }
    }

    fn bury_one(&self, rank: usize, far: &Far) {
        loop {
            let Some(batch) = far.pending.borrow_mut().pop_front() else { break };
            far.answered.set(far.answered.get() + 1);
            self.outstanding.set(self.outstanding.get() - 1);
            self.fail(batch, self.departures.of(rank).into());
        }
        if self.give_up(far, || self.departures.of(rank).into()) {
            self.note(self.departures.of(rank).into());
        }
    }

    /// Drops the operations and stores that wait to be sent to a peer, since they can't be sent any
    /// more. The operations fail; returns whether there were stores.
    #[cold]
    pub(super) fn give_up(&self, far: &Far, why: impl Fn() -> Error) -> bool {
        let (waits, batch) = far.outbox.borrow_mut().take_operations();
        if !waits.is_empty() {
            self.fail(batch, why());
        }
        far.outbox.borrow_mut().drop_stores()
    }

    /// Puts a value or a failure into a slot, or frees the slot if its handle was dropped. A
    /// failure is noted for the next `sync`, too.
    pub fn fill(&self, slot: u32, value: Slot) {
        let mut slots = self.slots.borrow_mut();
        if let Slot::Failed(why) = &value {
            self.note(why.clone());
        }
        let there = &mut slots[slot as usize];
        match there {
            Slot::Abandoned => drop(slots.remove(slot as usize)),
            _ => *there = value,
        }
    }

    /// Notes a failure for the next `sync`, unless an earlier failure is noted already.
    pub fn note(&self, why: Error) {
        self.failure.borrow_mut().get_or_insert(why);
    }
}
