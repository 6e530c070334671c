//! Many elements in the memory of one process, contiguous or strided.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use zerocopy::IntoBytes;

use super::handles::{By, Done, GetAll};
use super::place::{EMPTY, data_of};
use crate::element::Element;
use crate::error::Error;
use crate::global_ptr::GlobalPtr;
use crate::landing::{Tally, Values};
use crate::messages::{Entry, Row};
use crate::peers::{Far, Peer, Route, Shape};
use crate::world::{Landing, World};

/// Elements in the memory of one process, for operations on all of them: contiguous, or
/// [strided](Self::strided).
///
/// The operations are those of a [`Place`](crate::Place), and take and give slices.
pub struct Span<'w, T> {
    world: &'w World,
    first: GlobalPtr<T>,
    /// How many elements a block has.
    len: usize,
    /// How many blocks there are and, in `step`, how many elements from the beginning of a block to
    /// the beginning of the next.
    blocks: usize,
    step: usize,
    /// Whether a span that was strided already was strided again.
    strided_twice: bool,
}

impl World {
    /// The span of `len` contiguous elements, the first of which a pointer points to.
    ///
    /// ```
    /// # doorbell_splitc::Job::threads(2).run(async |world| {
    /// let table = world.blocked::<f64>(200).await?;
    /// if world.rank() == 0 {
    ///     let part = world.span(table.pointer(100)?, 3);
    ///     part.write(&[0.5, 1.5, 2.5]).await?;
    ///     assert_eq!(part.read().await?, [0.5, 1.5, 2.5]);
    /// }
    /// # Ok(world.barrier().await?)
    /// # })?;
    /// # Ok::<(), doorbell_splitc::RunError>(())
    /// ```
    pub fn span<T: Element>(&self, first: GlobalPtr<T>, len: usize) -> Span<'_, T> {
        Span { world: self, first, len, blocks: 1, step: len, strided_twice: false }
    }
}

impl<'w, T: Element> Span<'w, T> {
    /// Repeats the elements of this span in `blocks` blocks, each of which begins `step` elements
    /// behind the beginning of the block before: the column of a matrix that is kept in rows of 100
    /// is `world.span(first, 1).strided(rows, 100)`. A span that is strided already can't be
    /// strided again: operations on the result fail.
    #[must_use]
    pub fn strided(self, blocks: usize, step: usize) -> Self {
        let strided_twice = self.strided_twice || (self.blocks, self.step) != (1, self.len);
        Self { blocks, step, strided_twice, ..self }
    }

    /// The pointer to the first element.
    pub fn first(&self) -> GlobalPtr<T> {
        self.first
    }

    /// How many elements the span has, in all blocks together.
    pub fn len(&self) -> usize {
        self.len.saturating_mul(self.blocks)
    }

    /// Whether the span has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The peer that has the elements, the offset in its heap at which the first block begins, and
    /// how many bytes a block has.
    fn resolve(&self) -> Result<(&'w Peer, usize, usize), Error> {
        if self.strided_twice {
            return Err(Error::invalid("a span that is strided already was strided again"));
        }
        if self.blocks > 1 && self.step < self.len {
            let (len, step) = (self.len, self.step);
            let why = format!("blocks of {len} elements, {step} from each to the next, overlap");
            return Err(Error::invalid(why));
        }
        let behind = self.blocks.saturating_sub(1).checked_mul(self.step);
        let all = behind.and_then(|behind| behind.checked_add(self.len));
        let bytes = all.and_then(|all| all.checked_mul(size_of::<T>())).unwrap_or(usize::MAX);
        let (peer, offset) = self.world.0.resolve(self.first, bytes)?;
        Ok((peer, offset, self.len * size_of::<T>()))
    }

    /// The offset in the heap of each block, if blocks have any bytes. The span was resolved, so
    /// all blocks are within the heap. The step behind the last block is never taken, and may have
    /// any length.
    fn offsets(&self, first: usize) -> impl Iterator<Item = usize> {
        let step = self.step.wrapping_mul(size_of::<T>());
        let blocks = if self.len * size_of::<T>() == 0 { 0 } else { self.blocks };
        (0..blocks).map(move |block| first + block * step)
    }

    fn check(&self, given: usize) -> Result<(), Error> {
        let len = self.len();
        if given == len {
            return Ok(());
        }
        Err(Error::invalid(format!("{given} values were given for a span of {len}")))
    }

    /// Reads the elements, and waits for them.
    ///
    /// # Errors
    /// When the range is wrong, or the process has gone.
    pub async fn read(&self) -> Result<Vec<T>, Error> {
        self.get()?.done().await
    }

    /// Reads the elements into a slice, and waits for them.
    ///
    /// # Errors
    /// When the range is wrong, the slice has another length, or the process has gone.
    pub async fn read_into(&self, into: &mut [T]) -> Result<(), Error> {
        self.check(into.len())?;
        let (peer, first, bytes) = self.resolve()?;
        if let Route::Memory(memory) = peer.route(Shape::Awaited, bytes) {
            let blocks = into.as_mut_bytes().chunks_mut(bytes.max(1));
            for (offset, block) in self.offsets(first).zip(blocks) {
                memory.read_at(offset, block).expect("the range was checked");
            }
            self.world.0.breathe().await?;
            return Ok(());
        }
        into.copy_from_slice(&self.read().await?);
        Ok(())
    }

    /// Writes the elements, and waits until they are in the target's memory.
    ///
    /// # Errors
    /// When the range is wrong, the slice has another length, or the process has gone.
    pub async fn write(&self, values: &[T]) -> Result<(), Error> {
        self.put(values)?.done().await
    }

    /// Begins to fetch the elements, split-phase: the handle gives the values.
    ///
    /// # Errors
    /// When the range is wrong, or the process has gone.
    pub fn get(&self) -> Result<GetAll<T>, Error> {
        let (peer, first, bytes) = self.resolve()?;
        let _amid = self.world.0.amid();
        let values = Rc::new(RefCell::new(Values::new(self.len())?));
        let row: Row = values.clone();
        for (block, offset) in self.offsets(first).enumerate() {
            let at = block * bytes;
            match peer.route(Shape::Split, bytes) {
                Route::Memory(memory) => {
                    let mut values = values.borrow_mut();
                    let into = &mut values.values.as_mut_slice().as_mut_bytes()[at..at + bytes];
                    memory.read_at(offset, into).expect("the range was checked");
                }
                Route::OneSided(far) => {
                    for (at, offset, len) in pieces((at, offset, bytes), MOST_AT_ONCE) {
                        values.borrow_mut().missing += 1;
                        let landing = Landing::Row(row.clone(), at as u64);
                        let into = vec![0; len];
                        let core = &self.world.0;
                        core.post_read((peer.rank, far), (offset, len), into, landing)?;
                    }
                }
                Route::Messages(far) => {
                    let longest = far.outbox.borrow().longest_entry();
                    for (at, offset, len) in pieces((at, offset, bytes), longest) {
                        values.borrow_mut().missing += 1;
                        let entry = Entry { len, offset: offset as u64, ..EMPTY };
                        self.world.0.push_for_row((peer, far), entry, (&row, at as u64))?;
                    }
                }
            }
        }
        Ok(GetAll { world: self.world.clone(), values })
    }

    /// Begins to write a copy of the elements, split-phase: the handle tells when they have
    /// arrived.
    ///
    /// # Errors
    /// When the range is wrong, the slice has another length, or the process has gone.
    pub fn put(&self, values: &[T]) -> Result<Done, Error> {
        self.put_by(values, false)
    }

    /// Begins to write a copy of the elements; by messages rather than by RDMA, if so told.
    pub(super) fn put_by(&self, values: &[T], by_messages: bool) -> Result<Done, Error> {
        self.check(values.len())?;
        let (peer, first, bytes) = self.resolve()?;
        let _amid = self.world.0.amid();
        let mut by = By::Now;
        let blocks = values.as_bytes().chunks(bytes.max(1));
        for (offset, block) in self.offsets(first).zip(blocks) {
            let route = match peer.route(Shape::Split, bytes) {
                Route::OneSided(far) if by_messages => Route::Messages(far),
                route => route,
            };
            match route {
                Route::Memory(memory) => {
                    memory.write_at(offset, block).expect("the range was checked");
                }
                Route::OneSided(far) => self.put_block((peer, far), offset, block, &mut by)?,
                Route::Messages(far) => {
                    by = self.world.0.put_range((peer, far), offset, block)?;
                }
            }
        }
        Ok(Done { world: self.world.clone(), by })
    }

    fn put_block(
        &self,
        (peer, far): (&Peer, &Far),
        offset: usize,
        block: &[u8],
        by: &mut By,
    ) -> Result<(), Error> {
        if matches!(by, By::Now) {
            *by = By::Tally(Rc::new(Tally::default()));
        }
        let By::Tally(tally) = by else { unreachable!("all blocks go the same way") };
        for (at, offset, len) in pieces((0, offset, block.len()), MOST_AT_ONCE) {
            tally.one_more();
            let (data, landing) = (data_of(&block[at..at + len]), Landing::Tally(tally.clone()));
            self.world.0.post_write((peer.rank, far), offset, data, landing)?;
        }
        Ok(())
    }

    /// Stores a copy of the elements without an acknowledgement, as
    /// [`Place::store`](crate::Place::store) stores one element.
    ///
    /// # Errors
    /// When the range is wrong, the slice has another length, or the process has gone.
    pub fn store(&self, values: &[T]) -> Result<(), Error> {
        self.check(values.len())?;
        let (peer, first, bytes) = self.resolve()?;
        let core = &*self.world.0;
        let _amid = core.amid();
        let blocks = values.as_bytes().chunks(bytes.max(1));
        for (offset, block) in self.offsets(first).zip(blocks) {
            match peer.route(Shape::Split, bytes) {
                Route::Memory(memory) => {
                    memory.write_at(offset, block).expect("the range was checked");
                    core.stored(peer, bytes)?;
                }
                Route::OneSided(far) => {
                    for (at, offset, len) in pieces((0, offset, bytes), MOST_AT_ONCE) {
                        let data = data_of(&block[at..at + len]);
                        core.post_write((peer.rank, far), offset, data, Landing::Nothing)?;
                    }
                    core.stored(peer, bytes)?;
                }
                Route::Messages(far) => core.store_range((peer, far), offset, block)?,
            }
        }
        Ok(())
    }
}

impl<T: Element> Span<'_, T> {
    /// Stores a copy of the elements as [`store`](Self::store) does, and lets other tasks run while
    /// there is no credit for a message. If one of them makes the array private meanwhile, or frees
    /// it, the elements that are not stored yet are not stored any more, and this is an error.
    ///
    /// # Errors
    /// As [`store`](Self::store).
    pub async fn store_async(&self, values: &[T]) -> Result<(), Error> {
        self.check(values.len())?;
        let (peer, first, bytes) = self.resolve()?;
        let Route::Messages(far) = peer.route(Shape::Split, bytes) else {
            self.world.0.breathe().await?;
            return self.store(values);
        };
        let core = &*self.world.0;
        let longest = far.outbox.borrow().longest_entry();
        let blocks = values.as_bytes().chunks(bytes.max(1));
        for (offset, block) in self.offsets(first).zip(blocks) {
            for (at, offset, len) in pieces((0, offset, bytes), longest) {
                let has_room = far.outbox.borrow().has_room_to_store(len);
                if !has_room {
                    core.flush_to((peer.rank, far)).await?;
                    // Other futures of this process have run, and may have made the array private.
                    self.resolve()?;
                }
                core.store_range((peer, far), offset, &block[at..at + len])?;
            }
        }
        Ok(())
    }
}

/// The most bytes that a one-sided request moves.
pub(super) const MOST_AT_ONCE: usize = 1 << 20;

/// Splits a range that goes from one place to another into pieces of at most `longest` bytes.
/// Yields the beginning of each piece at both places, and its length.
pub(crate) fn pieces(
    (from, to, len): (usize, usize, usize),
    longest: usize,
) -> impl Iterator<Item = (usize, usize, usize)> {
    (0..len).step_by(longest).map(move |at| (from + at, to + at, longest.min(len - at)))
}

impl<T> fmt::Debug for Span<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Span")
            .field("first", &self.first)
            .field("len", &self.len)
            .field("blocks", &self.blocks)
            .field("step", &self.step)
            .finish_non_exhaustive()
    }
}
