//! A one-sided request that is under way, and where its result lands.

use std::rc::Rc;

use crate::landing::Tally;
use crate::messages::Row;

/// A one-sided request that is under way.
pub(crate) struct Flight {
    pub rank: usize,
    pub landing: Landing,
}

/// The destination of a one-sided request's result.
pub(crate) enum Landing {
    /// A request without a destination, of which only the completion counts.
    Nothing,
    /// A tally, which counts the completions of several requests.
    Tally(Rc<Tally>),
    /// A slot, for the bytes that were read, or the value that an atomic operation found.
    Slot(u32),
    /// A row of values, for bytes that were read: so many bytes behind its beginning.
    Row(Row, u64),
}
