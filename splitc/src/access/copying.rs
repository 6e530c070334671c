//! Zero-copy transfers between this process's heap and the heap of another.

use std::rc::Rc;

use super::handles::{By, Done};
use super::place::EMPTY;
use super::span::{MOST_AT_ONCE, pieces};
use crate::element::Element;
use crate::error::{AccessError, Error};
use crate::global_ptr::GlobalPtr;
use crate::landing::Tally;
use crate::messages::{Entry, Operation, Target};
use crate::peers::{Far, Peer, Route, Shape};
use crate::world::{Core, Landing, World};

impl World {
    /// Begins to copy `len` elements from one place of shared memory to another, at least one of
    /// which is in this process's own heap: a get into the own heap, or a put out of it. One-sided
    /// requests read and write the heap in place, without a copy on the way. The source must not be
    /// changed until the copy is done.
    ///
    /// ```
    /// # doorbell_splitc::Job::threads(2).run(async |world| {
    /// let whole = world.blocked::<u64>(2000).await?;
    /// let other = 1 - world.rank();
    /// let ghosts = world.allocate::<u64>(10)?;
    /// world.copy(whole.pointer(1000 * other)?, ghosts, 10)?; // ten gets into my memory
    /// world.sync().await?;
    /// # Ok(world.barrier().await?)
    /// # })?;
    /// # Ok::<(), doorbell_splitc::RunError>(())
    /// ```
    ///
    /// # Errors
    /// When a range is wrong, neither place is in this process's own heap, or the other process has
    /// gone.
    pub fn copy<T: Element>(
        &self,
        from: GlobalPtr<T>,
        to: GlobalPtr<T>,
        len: usize,
    ) -> Result<Done, Error> {
        let core = &*self.0;
        let bytes = len.saturating_mul(size_of::<T>());
        let (source, source_at) = core.resolve(from, bytes)?;
        let (target, target_at) = core.resolve(to, bytes)?;
        if bytes == 0 {
            return Ok(Done { world: self.clone(), by: By::Now });
        }
        let by = match (source.rank == core.rank, target.rank == core.rank) {
            (true, _) => core.copy_out((target, target_at), source_at, bytes)?,
            (false, true) => core.copy_in((source, source_at), target_at, bytes)?,
            (false, false) => return Err(AccessError::NotMine { owner: source.rank }.into()),
        };
        Ok(Done { world: self.clone(), by })
    }
}

impl Core {
    fn copy_out(&self, (peer, to): (&Peer, usize), from: usize, len: usize) -> Result<By, Error> {
        let own = self.heap.region();
        match peer.route(Shape::Split, len) {
            Route::Memory(memory) => {
                own.copy_to(from, memory, to, len).expect("the ranges were checked");
                Ok(By::Now)
            }
            Route::OneSided(far) => {
                let tally = Rc::new(Tally::default());
                for (from, to, len) in pieces((from, to, len), MOST_AT_ONCE) {
                    tally.one_more();
                    let data = self.ports[far.port]
                        .registered
                        .slice(from..from + len)
                        .expect("it was checked");
                    self.post_write((peer.rank, far), to, data, Landing::Tally(tally.clone()))?;
                }
                Ok(By::Tally(tally))
            }
            Route::Messages(far) => self.copy_out_by_messages((peer, far), (from, to, len)),
        }
    }

    fn copy_out_by_messages(
        &self,
        (peer, far): (&Peer, &Far),
        range: (usize, usize, usize),
    ) -> Result<By, Error> {
        let longest = far.outbox.borrow().longest_entry();
        let mut number = far.sent.get();
        let mut piece = vec![0; longest];
        for (from, to, len) in pieces(range, longest) {
            self.heap.region().read_at(from, &mut piece[..len]).expect("the range was checked");
            let (operation, bytes) = (Operation::Put, &piece[..len]);
            let entry = Entry { operation, len, offset: to as u64, bytes, ..EMPTY };
            number = self.push((peer, far), entry, 0, Target::Nothing)?;
        }
        Ok(By::Message { rank: peer.rank, number })
    }

    fn copy_in(&self, (peer, from): (&Peer, usize), to: usize, len: usize) -> Result<By, Error> {
        match peer.route(Shape::Split, len) {
            Route::Memory(memory) => {
                let copied = memory.copy_to(from, self.heap.region(), to, len);
                copied.expect("the ranges were checked");
                Ok(By::Now)
            }
            Route::OneSided(far) => {
                let tally = Rc::new(Tally::default());
                for (from, to, len) in pieces((from, to, len), MOST_AT_ONCE) {
                    tally.one_more();
                    let into = self.ports[far.port]
                        .registered
                        .slice(to..to + len)
                        .expect("it was checked");
                    let landing = Landing::Tally(tally.clone());
                    self.post_read((peer.rank, far), (from, len), into, landing)?;
                }
                Ok(By::Tally(tally))
            }
            Route::Messages(far) => {
                let longest = far.outbox.borrow().longest_entry();
                let mut number = far.sent.get();
                for (from, to, len) in pieces((from, to, len), longest) {
                    let entry = Entry { len, offset: from as u64, ..EMPTY };
                    let target = Target::Heap { offset: to as u64, len: len as u16 };
                    number = self.push((peer, far), entry, len, target)?;
                }
                Ok(By::Message { rank: peer.rank, number })
            }
        }
    }
}
