//! Where results land: slots for the holders of handles, rows of many values, and tallies of the
//! requests that make up one operation.

use std::cell::{Cell, RefCell};
use std::fmt;

use zerocopy::{FromBytes, IntoBytes as _};

use crate::element::Element;
use crate::error::Error;

/// A row of values whose pieces arrive as bytes, in any order.
pub(crate) trait Land {
    /// Copies a piece that has arrived into the row, `at` bytes from the row's beginning.
    fn land(&mut self, at: u64, bytes: &[u8]);
    /// Notes that a piece of the row will not arrive.
    fn fail(&mut self, why: &Error);
}

impl fmt::Debug for dyn Land {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Land")
    }
}

/// A row of values of one type, into which pieces are fetched.
pub(crate) struct Values<T> {
    pub values: Vec<T>,
    /// How many pieces are still to arrive.
    pub missing: usize,
    pub failure: Option<Error>,
}

impl<T: Element> Values<T> {
    /// A row of `len` zeros, which the fetched values replace.
    pub fn new(len: usize) -> Result<Self, Error> {
        let values = T::new_vec_zeroed(len);
        let values =
            values.map_err(|_| Error::invalid(format!("there is no memory for {len} values")))?;
        Ok(Self { values, missing: 0, failure: None })
    }
}

impl<T: Element> Land for Values<T> {
    #[inline]
    fn land(&mut self, at: u64, bytes: &[u8]) {
        self.missing -= 1;
        // A row whose values were taken is empty, and drops what arrives later.
        let to = self.values.as_mut_slice().as_mut_bytes().get_mut(at as usize..);
        if let Some(to) = to.and_then(|to| to.get_mut(..bytes.len())) {
            to.copy_from_slice(bytes);
        }
    }

    fn fail(&mut self, why: &Error) {
        self.missing -= 1;
        self.failure.get_or_insert_with(|| why.clone());
    }
}

/// The state of a value that the holder of a handle waits for.
#[derive(Debug)]
pub(crate) enum Slot {
    Waits,
    /// A value of up to eight bytes, without an allocation.
    Few([u8; 8]),
    Many(Box<[u8]>),
    Failed(Error),
    /// The handle was dropped before the value arrived: the slot is freed when it does.
    Abandoned,
}

impl Slot {
    /// A slot that holds the bytes of a value that has arrived.
    pub fn of(bytes: &[u8]) -> Self {
        match bytes.len() {
            0..=8 => {
                let mut few = [0; 8];
                few[..bytes.len()].copy_from_slice(bytes);
                Self::Few(few)
            }
            _ => Self::Many(bytes.into()),
        }
    }

    /// The value as a `T`; `None` if it has not arrived, has failed, or is of another size.
    pub fn value<T: FromBytes>(&self) -> Option<T> {
        let bytes = match self {
            Self::Few(few) => &few[..size_of::<T>().min(8)],
            Self::Many(many) => many,
            _ => return None,
        };
        T::read_from_bytes(bytes).ok()
    }
}

/// A count of the requests under way that make up one operation, with their first failure.
#[derive(Default)]
pub(crate) struct Tally {
    pub missing: Cell<usize>,
    pub failure: RefCell<Option<Error>>,
}

impl Tally {
    pub fn one_more(&self) {
        self.missing.set(self.missing.get() + 1);
    }

    pub fn one_done(&self) {
        self.missing.set(self.missing.get() - 1);
    }

    pub fn failed(&self, why: &Error) {
        self.one_done();
        self.failure.borrow_mut().get_or_insert_with(|| why.clone());
    }
}
