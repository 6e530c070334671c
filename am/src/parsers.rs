//! The parsers of what peers send, for the fuzz targets. No part of the public interface.

use std::ops::Range;

pub use crate::group::parsers::{failure, label};
use crate::wire::{Challenge, Hello, Knock, pack};

/// Reads private data of a connection as an endpoint does, and returns what was read as the bytes
/// that an endpoint would have written.
pub fn greeting(private: &[u8]) -> Option<Vec<u8>> {
    let knock = || Knock::from_bytes(private).map(|knock| knock.to_bytes().to_vec());
    let challenge = || Challenge::from_bytes(private).map(|posed| posed.to_bytes().to_vec());
    let hello = || Hello::from_bytes(private).map(|hello| hello.to_bytes().to_vec());
    knock().or_else(challenge).or_else(hello)
}

/// A message that was found in the bytes of a send.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MessagePlace {
    /// The number of its words.
    pub words: usize,
    /// Where its words and its payload are.
    pub data: Range<usize>,
    /// Where the next message begins.
    pub next: usize,
}

/// Finds the message that begins at an offset of a send.
pub fn message(bytes: &[u8], at: usize) -> Option<MessagePlace> {
    let pack::Message { header, data, next, .. } = pack::message(bytes, at)?;
    Some(MessagePlace { words: header.words, data, next })
}
