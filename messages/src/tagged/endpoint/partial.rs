//! Messages of which a part has come.

use bytes::{Bytes, BytesMut};

use super::arrived::Begins;
use crate::tagged::wire::Heading;

/// A message of which a part has come. The rest comes before other messages of the sender.
#[derive(Debug)]
pub struct Partial {
    pub begins: Begins,
    pub heading: Heading,
    pub number: u64,
    bytes: BytesMut,
}

impl Partial {
    /// A message of which the first part has come.
    pub fn new(begins: Begins, heading: Heading, number: u64, first: &[u8]) -> Self {
        let mut bytes = BytesMut::with_capacity(heading.len);
        bytes.extend_from_slice(first);
        Self { begins, heading, number, bytes }
    }

    /// Adds the next part, and returns whether it belongs to the message.
    pub fn add(&mut self, next: &[u8]) -> bool {
        let fits = !next.is_empty() && next.len() <= self.heading.len - self.bytes.len();
        if fits {
            self.bytes.extend_from_slice(next);
        }
        fits
    }

    /// Returns whether all parts have come.
    pub fn is_whole(&self) -> bool {
        self.bytes.len() == self.heading.len
    }

    /// Returns the whole body.
    pub fn into_bytes(self) -> Bytes {
        self.bytes.freeze()
    }
}
