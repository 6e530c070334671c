//! Carry-less multiplication, which is the unsafe code of the CRC: the processor must have the
//! instructions, and one of the functions loads words that others write.

mod pclmulqdq;
#[cfg(not(any(loom, miri)))]
pub(super) mod vpclmulqdq;

pub(super) use pclmulqdq::update;
