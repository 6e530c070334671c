//! Where values land that were asked for: slots of handles, and rows of many values.

use std::fmt;

use zerocopy::{FromBytes, IntoBytes as _};

use crate::element::Element;
use crate::error::Error;

/// A row of values, each of which comes as bytes.
pub(crate) trait Land {
    /// Puts bytes that came into the row, `at` bytes behind its beginning.
    fn land(&mut self, at: u64, bytes: &[u8]);
    /// Notes that a value will not come.
    fn fail(&mut self, why: &Error);
}

impl fmt::Debug for dyn Land {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Land")
    }
}

/// Values of a type that come in any order.
pub(crate) struct Values<T> {
    pub values: Vec<T>,
    /// How many pieces are still to come.
    pub missing: usize,
    pub failure: Option<Error>,
}

impl<T: Element> Values<T> {
    /// Zeros, in whose place `len` values will come.
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
        // Whoever gave the values up has taken them along.
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

/// What has become of a value that the holder of a handle waits for.
#[derive(Debug)]
pub(crate) enum Slot {
    Waits,
    /// Up to eight bytes.
    Few([u8; 8]),
    Many(Box<[u8]>),
    Failed(Error),
    /// The handle is gone.
    Abandoned,
}

impl Slot {
    /// The value that has come.
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

    /// The value as its type.
    pub fn value<T: FromBytes>(&self) -> Option<T> {
        let bytes = match self {
            Self::Few(few) => &few[..size_of::<T>().min(8)],
            Self::Many(many) => many,
            _ => return None,
        };
        T::read_from_bytes(bytes).ok()
    }
}
