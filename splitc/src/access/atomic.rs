//! Atomic changes of one element in the memory of a process.

use super::handles::{By, Done, Get};
use super::place::{EMPTY, Place};
use crate::atomics::private::Bits;
use crate::atomics::{Atomic, Change, Kind, Verb};
use crate::element::Element;
use crate::error::{Error, ErrorKind};
use crate::functions::{Apply, apply, is_in_a_word};
use crate::messages::{Entry, Operation, Target};
use crate::peers::{Far, Route, Shape};
use crate::world::Landing;

impl<T: Atomic> Place<'_, T> {
    /// Adds to the number, wrapping around if it is an integer, and returns what it was.
    ///
    /// # Errors
    /// When the pointer is wrong, or the process has gone.
    pub async fn fetch_add(self, value: T) -> Result<T, Error> {
        self.changed(Verb::Add, [value; 2]).await
    }

    /// Begins to add to the number, split-phase; the handle gives what the number was.
    ///
    /// # Errors
    /// When the pointer is wrong, or the process has gone.
    pub fn get_add(self, value: T) -> Result<Get<T>, Error> {
        self.fetch_change(Shape::Split, Verb::Add, [value; 2])
    }

    /// Begins to add to the number, split-phase; the handle tells when the addition is done, as the
    /// handle of [`put`](Self::put) does.
    ///
    /// # Errors
    /// When the pointer is wrong, or the process has gone.
    pub fn put_add(self, value: T) -> Result<Done, Error> {
        self.change(Verb::Add, value)
    }

    /// Adds to the number without an acknowledgement: only the target learns of the addition, as of
    /// a [`store`](Self::store).
    ///
    /// # Errors
    /// When the pointer is wrong, or the process has gone.
    #[inline]
    pub fn store_add(self, value: T) -> Result<(), Error> {
        self.store_change(Verb::Add, value)
    }

    /// Replaces the number, and returns what it was.
    ///
    /// # Errors
    /// When the pointer is wrong, or the process has gone.
    pub async fn swap(self, value: T) -> Result<T, Error> {
        self.changed(Verb::Swap, [value; 2]).await
    }

    /// Replaces the number by `new` if it is `expected`, and returns what it was: if that is
    /// `expected`, the number was replaced. Floating-point numbers are compared by their bits.
    ///
    /// # Errors
    /// When the pointer is wrong, or the process has gone.
    pub async fn compare_swap(self, expected: T, new: T) -> Result<T, Error> {
        self.changed(Verb::CompareSwap, [expected, new]).await
    }

    /// Replaces the number by `value` if that is less, and returns what it was. A floating-point
    /// number that is NaN counts as greater than all others, and `value` as no less if it is NaN.
    ///
    /// # Errors
    /// When the pointer is wrong, or the process has gone.
    pub async fn fetch_min(self, value: T) -> Result<T, Error> {
        self.changed(Verb::Min, [value; 2]).await
    }

    /// Replaces the number by `value` if that is greater, and returns what it was. A floating-point
    /// number that is NaN counts as less than all others, and `value` as no greater if it is NaN.
    ///
    /// # Errors
    /// When the pointer is wrong, or the process has gone.
    pub async fn fetch_max(self, value: T) -> Result<T, Error> {
        self.changed(Verb::Max, [value; 2]).await
    }

    /// Adds to the number without an acknowledgement, as [`store_add`](Self::store_add) does, and
    /// lets other tasks run while there is no credit for a message.
    ///
    /// # Errors
    /// When the pointer is wrong, or the process has gone.
    pub async fn store_add_async(self, value: T) -> Result<(), Error> {
        let core = &*self.world.0;
        let (peer, _) = self.resolve_number()?;
        let full = |far: &Far| !far.outbox.borrow().has_room_to_store(8);
        match peer.route(Shape::Split, size_of::<T>()) {
            Route::OneSided(far) | Route::Messages(far) if full(far) => {
                core.flush_to((peer.rank, far)).await?;
            }
            _ => core.breathe().await?,
        }
        self.store_add(value)
    }

    /// Replaces the number by `value` if that is less, without an acknowledgement, as
    /// [`store`](Self::store) writes.
    ///
    /// # Errors
    /// When the pointer is wrong, or the process has gone.
    pub fn store_min(self, value: T) -> Result<(), Error> {
        self.store_change(Verb::Min, value)
    }

    /// Replaces the number by `value` if that is greater, without an acknowledgement, as
    /// [`store`](Self::store) writes.
    ///
    /// # Errors
    /// When the pointer is wrong, or the process has gone.
    pub fn store_max(self, value: T) -> Result<(), Error> {
        self.store_change(Verb::Max, value)
    }

    /// Changes the number, and waits for what it was.
    async fn changed(self, verb: Verb, operands: [T; 2]) -> Result<T, Error> {
        let before = self.fetch_change(Shape::Awaited, verb, operands)?;
        self.world.0.breathe().await?;
        before.done().await
    }

    fn fetch_change(&self, shape: Shape, verb: Verb, operands: [T; 2]) -> Result<Get<T>, Error> {
        let (peer, offset) = self.resolve_number()?;
        let (core, kind, len) = (&self.world.0, T::KIND, size_of::<T>());
        let change = Change { verb, kind };
        let bits = operands.map(Bits::to_bits);
        match (peer.route(shape, len), verb, kind) {
            (Route::Memory(memory), ..) => {
                let before = change.apply(memory, offset, bits).expect("the place was checked");
                Ok(Get::here(T::of_bits(before)))
            }
            (Route::OneSided(far), Verb::Add, Kind::U64 | Kind::I64) => {
                let slot = core.slot();
                core.post_fetch_add((peer.rank, far), offset, bits[0], Landing::Slot(slot))?;
                Ok(Get::coming(self.world, slot))
            }
            (Route::OneSided(far), Verb::CompareSwap, Kind::U64 | Kind::I64 | Kind::F64) => {
                let slot = core.slot();
                core.post_compare_swap((peer.rank, far), offset, bits, Landing::Slot(slot))?;
                Ok(Get::coming(self.world, slot))
            }
            (Route::OneSided(far) | Route::Messages(far), ..) => {
                let slot = core.slot();
                let entry = Entry {
                    operation: Operation::Atomic(change, true),
                    len,
                    offset: offset as u64,
                    words: &bits[..verb.operands()],
                    ..EMPTY
                };
                let target = Target::Slot { slot, len: len as u16 };
                core.push((peer, far), entry, 8, target)?;
                Ok(Get::coming(self.world, slot))
            }
        }
    }

    fn change(&self, verb: Verb, value: T) -> Result<Done, Error> {
        let (peer, offset) = self.resolve_number()?;
        let (core, kind, len) = (&self.world.0, T::KIND, size_of::<T>());
        let (change, bits) = (Change { verb, kind }, [value.to_bits(); 2]);
        let by = match peer.route(Shape::Split, len) {
            Route::Memory(memory) => {
                change.apply(memory, offset, bits).expect("the place was checked");
                By::Now
            }
            Route::OneSided(far) | Route::Messages(far) => {
                let entry = Entry {
                    operation: Operation::Atomic(change, false),
                    len,
                    offset: offset as u64,
                    words: &bits[..1],
                    ..EMPTY
                };
                let number = core.push((peer, far), entry, 0, Target::Nothing)?;
                By::Message { rank: peer.rank, number }
            }
        };
        Ok(Done { world: self.world.clone(), by })
    }

    #[inline]
    fn store_change(&self, verb: Verb, value: T) -> Result<(), Error> {
        let (peer, offset) = self.resolve_number()?;
        let (core, kind, len) = (&self.world.0, T::KIND, size_of::<T>());
        let (change, bits) = (Change { verb, kind }, [value.to_bits(); 2]);
        match peer.route(Shape::Split, len) {
            Route::Memory(memory) => {
                core.change_soon((peer, memory), (change, bits[0]), offset);
                core.stored(peer, len)
            }
            Route::OneSided(far) | Route::Messages(far) => {
                let entry = Entry {
                    operation: Operation::Atomic(change, false),
                    len,
                    offset: offset as u64,
                    words: &bits[..1],
                    ..EMPTY
                };
                core.push_store((peer, far), entry, len)
            }
        }
    }

    /// The peer that has the number, and the offset in its heap, which must be a multiple of the
    /// number's size.
    #[inline]
    pub(super) fn resolve_number(&self) -> Result<(&crate::peers::Peer, usize), Error> {
        let (peer, offset) = self.resolve()?;
        check_number::<T>(offset)?;
        Ok((peer, offset))
    }
}

#[inline]
fn check_number<T>(offset: usize) -> Result<(), Error> {
    let align = size_of::<T>();
    if offset.is_multiple_of(align) {
        return Ok(());
    }
    Err(crate::error::AccessError::Misaligned { offset: offset as u64, align }.into())
}

impl<T: Element> Place<'_, T> {
    /// Runs a function on the element atomically, and returns the function's result. Every process
    /// must have [defined](crate::World::define) the function.
    ///
    /// # Errors
    /// When the function is not defined, the pointer is wrong, or the process has gone.
    pub async fn apply<A: Element, R: Element>(
        self,
        function: Apply<T, A, R>,
        argument: A,
    ) -> Result<R, Error> {
        self.get_apply(function, argument)?.done().await
    }

    /// Begins to run a function on the element atomically, split-phase; the handle gives the
    /// result.
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    pub fn get_apply<A: Element, R: Element>(
        self,
        function: Apply<T, A, R>,
        argument: A,
    ) -> Result<Get<R>, Error> {
        let (peer, offset) = self.resolve()?;
        let core = &self.world.0;
        // The function may poll a future of this process that makes the array private.
        let _amid = core.amid();
        let (number, is_same) = core.function(&function)?;
        let in_a_word = is_in_a_word(size_of::<T>());
        if in_a_word {
            check_number::<T>(offset)?;
        }
        let far = match (peer.route(Shape::Split, size_of::<T>()), &peer.far) {
            // A value that is not a single word is changed by its owner alone.
            (Route::Memory(memory), far) if in_a_word || far.is_none() => {
                let place = (memory, offset);
                let result = match is_same {
                    true => apply(function.run, place, &core.served.large, argument),
                    false => core.served.run(number, place, argument),
                };
                return Ok(Get::here(result.expect("the place was checked")));
            }
            (_, Some(far)) => far,
            (_, None) => unreachable!("a process reaches its own heap by loads and stores"),
        };
        let slot = core.slot();
        let entry = Entry {
            operation: Operation::Call,
            len: size_of::<A>(),
            offset: offset as u64,
            words: &[number],
            bytes: argument.as_bytes(),
        };
        let len = size_of::<R>();
        core.push((peer, far), entry, len, Target::Slot { slot, len: len as u16 })?;
        Ok(Get::coming(self.world, slot))
    }
}

impl crate::world::Core {
    /// The number of a function that all processes have defined, and whether its code is known to
    /// be that of the `Apply` by which it was defined.
    fn function<T: Element, A: Element, R: Element>(
        &self,
        function: &Apply<T, A, R>,
    ) -> Result<(u64, bool), Error> {
        let sizes = [size_of::<T>(), size_of::<A>(), size_of::<R>()];
        let functions = self.functions.borrow();
        let all = functions.iter().enumerate();
        let mut same = all.filter(|(_, known)| (known.name, known.sizes) == (function.name, sizes));
        let Some((at, known)) = same.next() else {
            return Err(ErrorKind::NotDefined { name: function.name }.into());
        };
        Ok((at as u64, known.code == function.run as usize))
    }
}
