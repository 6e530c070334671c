//! Encrypted packets: what protects the packets of a connection from those who can see or change
//! them.
//!
//! This module has what is the same for every cipher: where an encrypted packet has what, numbers
//! that are never used twice, windows in which a number counts once, and keys that follow each other.
//! The [`Cipher`] itself, and how two sides agree on its keys, are other crates' affair: a
//! [`Path`](crate::encap::Path) is given the [`Keys`] of a connection, and from then on each packet
//! along it is encrypted as it is encoded.
//!
//! | bytes | an encrypted packet, between its outer headers and its ICRC |
//! |---|---|
//! | 0–11 | BTH with the opcode [`Encrypted`](crate::wire::Opcode::Encrypted); authenticated, but for the byte that switches may change |
//! | 12–19 | number: the 16 bits of the key, then 48 bits that count what was sent with it |
//! | 20– | encrypted: the opcode, the extension headers, the payload |
//! | 16 behind these | tag |
//! | up to 3 | padding, as the BTH says |
//!
//! Every transmission has a number of its own: a packet that is sent again, too, since the memory that
//! it is made of may have changed.
//!
//! | file | what it has |
//! |---|---|
//! | `keys` | the keys of a connection, both directions |
//! | `sending`, `receiving` | the keys of one direction |
//! | `replay` | which numbers have come |
//! | `numbers` | the number of a transmission |
//! | `algorithm` | what a cipher does |

mod algorithm;
mod keys;
mod numbers;
mod receiving;
mod replay;
mod sending;

pub use algorithm::{Cipher, TAG_LEN};
pub(crate) use keys::{ENCRYPTED_FROM, OVERHEAD};
pub use keys::{Keys, MOST_ADDED};
pub(crate) use receiving::Unopened;
