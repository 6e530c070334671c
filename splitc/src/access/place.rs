//! One element in the memory of a process, and the operations on it.

use std::fmt;

use doorbell_am::costs::{Cost, span};
use doorbell_verbs::{Data, Inline, Region};

use super::handles::{By, Done, Get};
use crate::element::Element;
use crate::error::Error;
use crate::global_ptr::GlobalPtr;
use crate::landing::{Slot, Tally};
use crate::messages::{Entry, Operation, Row, Target};
use crate::peers::{Far, Peer, Route, Shape};
use crate::world::{Landing, What, World};

/// How many stored bytes may be uncounted before they are added to the counter at their target.
const TOLD_FROM: u64 = 4096;

/// The place of an element in the memory of a process, for operations on that element.
///
/// | | begins | is done | |
/// |---|---|---|---|
/// | [`read`](Self::read), [`write`](Self::write) | when awaited | when awaited | one at a time |
/// | [`get`](Self::get), [`put`](Self::put) | at once | with its handle, or [`World::sync`] | many overlap |
/// | [`store`](Self::store) | at once | at the target: [`World::store_sync`], [`World::all_store_sync`] | many overlap, and none is acknowledged |
///
/// Two operations are in order only if one begins after the other is done. See [the order of
/// accesses](crate#the-order-of-accesses).
pub struct Place<'w, T> {
    pub(super) world: &'w World,
    pub(super) ptr: GlobalPtr<T>,
}

impl World {
    /// The place that a pointer points to.
    ///
    /// ```
    /// # doorbell_splitc::Job::threads(2).run(async |world| {
    /// let value = world.spread::<u64>(2).await?;
    /// if world.rank() == 0 {
    ///     world.at(value.pointer(1)?).write(7).await?;
    /// }
    /// world.barrier().await?;
    /// assert_eq!(world.at(value.pointer(1)?).read().await?, 7);
    /// # Ok(world.barrier().await?)
    /// # })?;
    /// # Ok::<(), doorbell_splitc::RunError>(())
    /// ```
    #[inline]
    pub fn at<T: Element>(&self, ptr: GlobalPtr<T>) -> Place<'_, T> {
        Place { world: self, ptr }
    }
}

impl<'w, T: Element> Place<'w, T> {
    /// The pointer to this place.
    pub fn pointer(&self) -> GlobalPtr<T> {
        self.ptr
    }

    #[inline]
    pub(super) fn resolve(&self) -> Result<(&'w Peer, usize), Error> {
        self.world.0.resolve(self.ptr, size_of::<T>())
    }

    /// Reads the element, and waits for it.
    ///
    /// # Errors
    /// When the pointer is wrong, or the process has gone.
    #[inline]
    pub async fn read(self) -> Result<T, Error> {
        let (peer, offset) = self.resolve()?;
        if let Route::Memory(memory) = peer.route(Shape::Awaited, size_of::<T>()) {
            let value = load(memory, offset);
            self.world.0.breathe().await?;
            return Ok(value);
        }
        self.fetch(Shape::Awaited)?.done().await
    }

    /// Writes the element, and waits until it is in the target's memory.
    ///
    /// # Errors
    /// When the pointer is wrong, or the process has gone.
    #[inline]
    pub async fn write(self, value: T) -> Result<(), Error> {
        let (peer, offset) = self.resolve()?;
        if let Route::Memory(memory) = peer.route(Shape::Awaited, size_of::<T>()) {
            save(memory, offset, value);
            self.world.0.breathe().await?;
            return Ok(());
        }
        self.send(Shape::Awaited, value)?.done().await
    }

    /// Begins to fetch the element, split-phase: the handle gives the value.
    ///
    /// # Errors
    /// When the pointer is wrong, or the process has gone.
    #[inline]
    pub fn get(self) -> Result<Get<T>, Error> {
        self.fetch(Shape::Split)
    }

    /// Begins to write the element, split-phase: the handle tells when it has arrived.
    ///
    /// # Errors
    /// When the pointer is wrong, or the process has gone.
    #[inline]
    pub fn put(self, value: T) -> Result<Done, Error> {
        self.send(Shape::Split, value)
    }

    /// Writes the element without an acknowledgement. Only the target learns that the element has
    /// arrived: by [`World::store_sync`], which counts bytes, or by [`World::all_store_sync`].
    ///
    /// A store that goes by messages may wait here to be aggregated with others. It leaves when the
    /// message is full, when this process next waits for something of the world, and with
    /// [`World::flush`]. While there is no
    /// credit for a full message, `store` makes progress and blocks the thread, so that no other
    /// task runs; [`store_async`](Self::store_async) lets them run.
    ///
    /// # Errors
    /// When the pointer is wrong, or the process has gone.
    #[inline]
    pub fn store(self, value: T) -> Result<(), Error> {
        let (peer, offset) = self.resolve()?;
        match peer.route(Shape::Split, size_of::<T>()) {
            Route::Memory(memory) => {
                save(memory, offset, value);
                self.stored(peer)
            }
            Route::OneSided(far) => {
                let data = data_of(value.as_bytes());
                self.world.0.post_write((peer.rank, far), offset, data, Landing::Nothing)?;
                self.stored(peer)
            }
            Route::Messages(far) => self.world.0.store_range((peer, far), offset, value.as_bytes()),
        }
    }

    /// Stores the element, and lets other tasks run while there is no credit for a message.
    ///
    /// # Errors
    /// As [`store`](Self::store).
    pub async fn store_async(self, value: T) -> Result<(), Error> {
        let core = &*self.world.0;
        let (peer, _) = self.resolve()?;
        if let Route::Messages(far) = peer.route(Shape::Split, size_of::<T>()) {
            let has_room = far.outbox.borrow().has_room_to_store(size_of::<T>());
            if !has_room {
                core.flush_to((peer.rank, far)).await?;
            }
        }
        core.breathe().await?;
        self.store(value)
    }

    /// Counts a store of this element that went without a message; messages count their own stores.
    #[inline]
    pub(super) fn stored(&self, peer: &Peer) -> Result<(), Error> {
        self.world.0.stored(peer, size_of::<T>())
    }

    #[inline]
    fn fetch(&self, shape: Shape) -> Result<Get<T>, Error> {
        let _semantics = span(Cost::Semantics);
        let (peer, offset) = self.resolve()?;
        let len = size_of::<T>();
        match peer.route(shape, len) {
            Route::Memory(memory) => Ok(Get::here(load(memory, offset))),
            Route::OneSided(far) => {
                let slot = self.world.0.slot();
                let into = vec![0; len];
                let landing = Landing::Slot(slot);
                self.world.0.post_read((peer.rank, far), (offset, len), into, landing)?;
                Ok(Get::coming(self.world, slot))
            }
            Route::Messages(far) => {
                if len > far.outbox.borrow().longest_entry() {
                    // An element longer than a message is fetched in pieces.
                    return Ok(Get::in_pieces(self.world.span(self.ptr, 1).get()?));
                }
                let slot = self.world.0.slot();
                let entry =
                    Entry { operation: Operation::Get, len, offset: offset as u64, ..EMPTY };
                let target = Target::Slot { slot, len: len as u16 };
                self.world.0.push((peer, far), entry, len, target)?;
                Ok(Get::coming(self.world, slot))
            }
        }
    }

    #[inline]
    fn send(&self, shape: Shape, value: T) -> Result<Done, Error> {
        let (peer, offset) = self.resolve()?;
        let by = match peer.route(shape, size_of::<T>()) {
            Route::Memory(memory) => {
                save(memory, offset, value);
                By::Now
            }
            Route::OneSided(far) => {
                let data = data_of(value.as_bytes());
                self.world.0.put_one_sided((peer, far), offset, data)?
            }
            Route::Messages(far) => {
                self.world.0.put_range((peer, far), offset, value.as_bytes())?
            }
        };
        Ok(Done { world: self.world.clone(), by })
    }
}

/// An entry without data, from which operations make theirs.
pub(crate) const EMPTY: Entry<'static> =
    Entry { operation: Operation::Get, len: 0, offset: 0, words: &[], bytes: &[] };

/// Loads the value at a place of memory.
#[inline]
pub(crate) fn load<T: Element>(memory: &Region, offset: usize) -> T {
    let mut value = T::new_zeroed();
    if size_of::<T>() == 8 && offset.is_multiple_of(8) {
        let word = memory.load(offset).expect("the range was checked");
        value.as_mut_bytes().copy_from_slice(&word.to_ne_bytes());
        return value;
    }
    memory.read_at(offset, value.as_mut_bytes()).expect("the range was checked");
    value
}

/// Stores a value at a place of memory.
#[inline]
pub(super) fn save<T: Element>(memory: &Region, offset: usize, value: T) {
    memory.write_at(offset, value.as_bytes()).expect("the range was checked");
}

/// A copy of bytes for a one-sided request: inline in the request if they are few enough.
pub(super) fn data_of(bytes: &[u8]) -> Data {
    match Inline::new(bytes) {
        Some(inline) => inline.into(),
        None => bytes.to_vec().into(),
    }
}

impl crate::world::Core {
    /// Takes a slot for a value that is to arrive.
    #[inline]
    pub fn slot(&self) -> u32 {
        self.slots.borrow_mut().insert(Slot::Waits) as u32
    }

    /// Counts bytes that were stored at a peer without a message: the count reaches the peer once
    /// there are enough of them, or with the next flush.
    #[inline]
    pub fn stored(&self, peer: &Peer, len: usize) -> Result<(), Error> {
        let untold = peer.untold.get() + len as u64;
        peer.untold.set(untold);
        if untold >= TOLD_FROM {
            return self.tell(peer);
        }
        self.waits(peer);
        Ok(())
    }

    /// Adds an operation to the next message to a peer, and returns the number of that message. A
    /// message without room for the operation is sent first.
    #[inline]
    pub fn push(
        &self,
        (peer, far): (&Peer, &Far),
        entry: Entry<'_>,
        answer: usize,
        target: Target,
    ) -> Result<u64, Error> {
        let data = entry.bytes.len() + 8 * entry.words.len();
        if !far.outbox.borrow().has_room(data, answer) {
            self.send_now((peer.rank, far), What::Operations)?;
        }
        far.outbox.borrow_mut().push(entry, answer, target);
        self.waits(peer);
        Ok(far.sent.get())
    }

    /// Adds a read, whose answer goes into a row, to the next message to a peer.
    #[inline]
    pub fn push_for_row(
        &self,
        (peer, far): (&Peer, &Far),
        entry: Entry<'_>,
        row: (&Row, u64),
    ) -> Result<(), Error> {
        if !far.outbox.borrow().has_room(0, entry.len) {
            self.send_now((peer.rank, far), What::Operations)?;
        }
        far.outbox.borrow_mut().push_for_row(entry, entry.len, row);
        self.waits(peer);
        Ok(())
    }

    /// Adds a store to the next message of stores to a peer.
    #[inline]
    pub fn push_store(
        &self,
        (peer, far): (&Peer, &Far),
        entry: Entry<'_>,
        bytes: usize,
    ) -> Result<(), Error> {
        let data = entry.bytes.len() + 8 * entry.words.len();
        if !far.outbox.borrow().has_room_to_store(data) {
            self.send_now((peer.rank, far), What::Stores)?;
        }
        far.outbox.borrow_mut().push_store(entry, bytes);
        self.waits(peer);
        Ok(())
    }

    /// Puts bytes by messages, in as many entries as it takes.
    pub fn put_range(
        &self,
        (peer, far): (&Peer, &Far),
        offset: usize,
        bytes: &[u8],
    ) -> Result<By, Error> {
        if bytes.is_empty() {
            // Nothing is sent for an empty put, so no answer would say that it is done.
            return Ok(By::Now);
        }
        let longest = far.outbox.borrow().longest_entry();
        let (mut number, mut at) = (far.sent.get(), offset as u64);
        for bytes in bytes.chunks(longest) {
            let entry =
                Entry { operation: Operation::Put, len: bytes.len(), offset: at, bytes, ..EMPTY };
            number = self.push((peer, far), entry, 0, Target::Nothing)?;
            at += bytes.len() as u64;
        }
        Ok(By::Message { rank: peer.rank, number })
    }

    /// Stores bytes by messages, in as many entries as it takes.
    pub fn store_range(
        &self,
        (peer, far): (&Peer, &Far),
        offset: usize,
        bytes: &[u8],
    ) -> Result<(), Error> {
        let longest = far.outbox.borrow().longest_entry();
        let mut at = offset as u64;
        for bytes in bytes.chunks(longest) {
            let entry =
                Entry { operation: Operation::Put, len: bytes.len(), offset: at, bytes, ..EMPTY };
            self.push_store((peer, far), entry, bytes.len())?;
            at += bytes.len() as u64;
        }
        Ok(())
    }

    /// Puts data by one RDMA write, and returns the condition under which it has arrived.
    pub fn put_one_sided(
        &self,
        (peer, far): (&Peer, &Far),
        offset: usize,
        data: Data,
    ) -> Result<By, Error> {
        let tally = std::rc::Rc::new(Tally::default());
        tally.one_more();
        self.post_write((peer.rank, far), offset, data, Landing::Tally(tally.clone()))?;
        Ok(By::Tally(tally))
    }
}

impl<T> fmt::Debug for Place<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Place({})", self.ptr)
    }
}
