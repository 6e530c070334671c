//! Carry-less multiplication, the unsafe code of this folder: what is unsafe is that the processor
//! must have the instructions, and that one loads words which others write.

mod few;
#[cfg(not(any(loom, miri)))]
pub(super) mod wide;

pub(super) use few::update;
