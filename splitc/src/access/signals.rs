//! Puts with a signal for their target, and waiting until an element changes.

use std::sync::atomic::{Ordering, fence};

use super::handles::{By, Done};
use super::place::{EMPTY, Place, load};
use super::span::Span;
use crate::atomics::{Atomic, Change, Verb};
use crate::element::Element;
use crate::error::{AccessError, Error};
use crate::messages::{Entry, Operation, Target};
use crate::peers::{Route, Shape};
use crate::world::{Landing, Waits};

impl<T: Element> Span<'_, T> {
    /// Begins to write the elements, and then to add `value` to a number in the memory of the same
    /// process, the signal. A process that finds the signal changed finds all the elements in
    /// place. A target that sleeps in [`wait_until`](Place::wait_until) is woken.
    ///
    /// ```
    /// # doorbell_splitc::Job::threads(2).run(async |world| {
    /// let data = world.blocked::<f64>(200).await?;
    /// let arrived = world.blocked::<u64>(2).await?;
    /// if world.rank() == 0 {
    ///     let signal = world.at(arrived.pointer(1)?);
    ///     world.span(data.pointer(100)?, 3).put_signal(&[0.5, 1.5, 2.5], signal, 1)?;
    ///     world.sync().await?;
    /// } else {
    ///     arrived.at(1).wait_until(|signals| signals >= 1).await?;
    ///     assert_eq!(data.at(102).read().await?, 2.5);
    /// }
    /// # Ok(world.barrier().await?)
    /// # })?;
    /// # Ok::<(), doorbell_splitc::RunError>(())
    /// ```
    ///
    /// RDMA adds to `u64` and `i64` only: with signals of other types, messages carry the data,
    /// too.
    ///
    /// # Errors
    /// When a range is wrong, the slice has another length, the signal is in another process's
    /// memory, or the process has gone.
    pub fn put_signal<S: Atomic>(
        &self,
        values: &[T],
        signal: Place<'_, S>,
        value: S,
    ) -> Result<Done, Error> {
        let owner = self.first().rank();
        if signal.pointer().rank() != owner {
            return Err(AccessError::NotMine { owner }.into());
        }
        signal.resolve_number()?;
        // The signal goes the same way as the data, and so can't overtake it.
        let by_messages = !S::KIND.is_added_by_rdma();
        let data = self.put_by(values, by_messages)?;
        let behind = signal.signal_behind(&data, value)?;
        Ok(Done { world: data.world, by: behind })
    }
}

impl<S: Atomic> Place<'_, S> {
    /// Adds `value` to the number by the carrier that took the data, so that the signal does not
    /// overtake the data.
    fn signal_behind(self, data: &Done, value: S) -> Result<By, Error> {
        let (peer, offset) = self.resolve_number()?;
        let (core, len) = (&self.world.0, size_of::<S>());
        let (change, bits) = (Change { verb: Verb::Add, kind: S::KIND }, [value.to_bits(); 2]);
        match (&data.by, peer.route(Shape::Split, len), &peer.far) {
            (By::Now, Route::Memory(memory), _) => {
                change.apply(memory, offset, bits).expect("the place was checked");
                core.wake(peer)?;
                Ok(By::Now)
            }
            (By::Tally(tally), _, Some(far)) => {
                tally.one_more();
                let landing = Landing::Tally(tally.clone());
                core.post_fetch_add((peer.rank, far), offset, bits[0], landing)?;
                Ok(By::Tally(tally.clone()))
            }
            (_, _, Some(far)) => {
                let entry = Entry {
                    operation: Operation::Atomic(change, false),
                    len,
                    offset: offset as u64,
                    words: &bits[..1],
                    ..EMPTY
                };
                let number = core.push((peer, far), entry, 0, Target::Nothing)?;
                Ok(By::Message { rank: peer.rank, number })
            }
            (_, _, None) => unreachable!("a process reaches its own heap by loads and stores"),
        }
    }
}

impl<T: Element> Place<'_, T> {
    /// Waits until the element, which must be in this process's own memory, meets a condition, and
    /// returns it. What was written before the write that meets the condition is in place by then.
    ///
    /// A process that waits spins for a moment, and then sleeps. A [signal](Span::put_signal), a
    /// message, and whatever is carried by messages wake it at once; a mapped write without a
    /// signal is noticed within 8 ms.
    ///
    /// # Errors
    /// When the pointer is wrong, or points to another process's memory; when another future of this
    /// process makes the array private or frees it meanwhile; or when a process of the world has
    /// gone, for that process may be the one that was to write; or when the programs of
    /// all other processes have ended and the condition is not met.
    pub async fn wait_until(self, mut condition: impl FnMut(T) -> bool) -> Result<T, Error> {
        let (peer, offset) = self.resolve()?;
        let core = &*self.world.0;
        if peer.rank != core.rank {
            return Err(AccessError::NotMine { owner: peer.rank }.into());
        }
        let (memory, raw, len) = (core.heap.region(), self.ptr.raw(), size_of::<T>() as u64);
        let waited = core.flush_until(
            |_| Waits::Change { offset },
            |core| {
                let nobody = core.nobody_writes();
                // Another future of this process may have made the array private meanwhile, and
                // have an exclusive slice of the element.
                if let Err(why) = core.heap.check(raw, len) {
                    return Some(Err(why.into()));
                }
                let value = load(memory, offset);
                let _condition = core.condition();
                match condition(value) {
                    true => {
                        // The load of a value that is not a whole word is not an acquire.
                        fence(Ordering::Acquire);
                        Some(Ok(value))
                    }
                    false => nobody.map(|gone| Err(gone.into())),
                }
            },
        );
        waited.await?
    }
}
