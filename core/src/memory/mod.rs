//! Memory: the bytes that a NIC moves. There are two kinds of memory.
//!
//! - A [`Buf`] has one owner at a time: the program, or the NIC while a send or a receive that the
//!   buffer was moved into is under way. No peer can access it, so it lends slices.
//! - A [`Region`] is read and written by peers at any time, while the program reads and writes it,
//!   too. So it never lends slices: `&[u8]` promises that nobody writes the bytes, `&mut [u8]`
//!   promises that nobody else even reads them, and no program can promise that for a peer.
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
//! // Once no other handle is left, the memory may be used as plain values.
//! peer.join().unwrap()?;
//! let mut alone = mine.try_private()?;
//! assert_eq!(alone.as_slice_of::<u64>()?[3], 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Words
//! A peer's accesses are carried out by the NIC, which is a part of this process, or by another
//! process that maps the memory. Either is like an access of another thread, so a region is a slice
//! of atomics. They are 64 bits wide, which is nearly as fast as plain memory, while atomic bytes
//! take several times as long; 64 bits are also the size of InfiniBand's own atomic operations. No
//! access has another size, since races between sizes are undefined in Rust. All accesses go through
//! the functions of [`words`].
//!
//! Two problems are hard:
//! - *Neighbours.* Two writers may own different bytes of one word. A part of a word is written by
//!   compare-and-swap of the word, so neither writer undoes what the other wrote.
//! - *Plain slices.* A program wants to compute on its part of a region between communications. A
//!   region with a single handle left can be made [`Private`] for an epoch, and lends slices until
//!   it is opened again. Everything that can reach the memory holds a handle, so the count of handles
//!   is the proof.
//!
//! # What a reader sees
//! - Writes of unrelated threads become visible word by word, in any order. A reader may see some
//!   words of a write and not yet others, but never half of what was written to a word. Programs
//!   that need more agree on a word that is stored last.
//! - A completion has acquire order: all that a peer wrote before the completion was made is visible.
//!   So has [`Region::load`], for all that came before the [`Region::store`] or the atomic operation
//!   whose value it loads.
//! - [`Region::write_at`] stores its highest word last, with release order, so a reader that polls
//!   that word sees all of the write.

mod buf;
#[cfg(not(loom))]
mod private;
mod region;
#[allow(unsafe_code)]
mod region_sys;
mod sleepers;
#[allow(unsafe_code)]
mod sys;
pub mod words;

pub use buf::{Buf, BufFull};
#[cfg(not(loom))]
pub use private::{Private, SliceError, StillShared};
pub use region::{AccessError, Region};
#[cfg(not(loom))]
pub use region_sys::{Frozen, PrivatePart};
pub use sleepers::{Announced, Sleepers};
pub(crate) use sys::InlineBytes;
