//! Memory: the bytes a NIC moves. There are two kinds, and no third.
//!
//! - A [`Buf`] is bytes that one owner has at a time: the program, or the NIC while a send or a
//!   receive that the buffer was moved into is under way. No peer can name it, so it is a slice.
//! - A [`Region`] is bytes that peers read and write at times of their own choosing, while the
//!   program does. So it is never a slice: `&[u8]` promises that nobody writes the bytes and
//!   `&mut [u8]` that nobody else even reads them, and no program can promise that for a peer.
//!
//! ```
//! use doorbell_core::memory::Region;
//! use std::thread;
//!
//! // A peer writes 20 bytes, and sets a flag in the word behind them.
//! let mine = Region::new(32);
//! let peers = mine.clone();
//! let peer = thread::spawn(move || {
//!     peers.write_at(0, b"it was the best of t")?;
//!     peers.store(24, 1)
//! });
//! // Once the flag is seen, so are the bytes.
//! while mine.load(24)? == 0 {
//!     std::hint::spin_loop();
//! }
//! let mut read = [0; 20];
//! mine.read_at(0, &mut read)?;
//! assert_eq!(&read, b"it was the best of t");
//!
//! // When no other handle is left, the memory may be used as plain values.
//! peer.join().unwrap()?;
//! let mut alone = mine.try_private()?;
//! assert_eq!(alone.as_slice_of::<u64>()?[3], 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Words
//! The only remote writer of a region is the NIC, and that is a part of this process; or, of memory
//! that several processes map, another process. So a peer's access is a thread's, and a region is a
//! slice of atomics. They are 64 bits wide: that is nearly
//! as fast as plain memory, where atomic bytes take several times as long, and it is the size of
//! InfiniBand's own atomic operations. No access has any other size, as races between sizes are
//! undefined in Rust. All of them go through the functions of [`words`].
//!
//! Two corners are hard:
//! - *Neighbours.* Two writers may own different bytes of one word. Whoever writes a part of a
//!   word replaces it by compare-and-swap, so neither undoes what the other did.
//! - *Plain slices.* A program wants to compute on its part of a region between communications. A
//!   region with a single handle left can be made [`Private`] for an epoch, and lends slices until
//!   it is opened again. Every way to the memory holds a handle, so their count is the proof.
//!
//! # What a reader sees
//! - Writes of unrelated threads appear word by word, in any order. A reader may find some words of
//!   a write and not yet others; it never finds half of what was written to a word. Those who need
//!   more agree on a word that is stored last.
//! - A completion is an acquire: what a peer wrote before the completion was made is in place. So
//!   is [`Region::load`], for all that came before the [`Region::store`] or the atomic operation
//!   whose value it finds.
//! - [`Region::write_at`] stores its highest word last, as a release, so a reader that polls that
//!   word finds all of the write.

mod buf;
#[cfg(not(loom))]
mod private;
mod region;
mod sleepers;
#[allow(unsafe_code)]
mod sys;
pub mod words;

pub use buf::{Buf, BufFull};
#[cfg(not(loom))]
pub use private::{Private, SliceError, StillShared};
pub use region::{AccessError, Region};
pub use sleepers::{Announced, Sleepers};
pub(crate) use sys::Few;
#[cfg(not(loom))]
pub use sys::{Frozen, PrivatePart};
