//! Keep-alive: whether peers are still there.

pub(crate) mod clock_jumps;
pub(crate) mod limits;
pub(crate) mod peers;
