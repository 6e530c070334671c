//! The handshake of a connection: who the peer is, and keys that nobody else knows.
//!
//! The handshake is a Noise handshake (revision 34) of three messages, which travel within the
//! messages by which a connection is made. The state machines here take and return bytes. They have
//! no socket and no clock.
//!
//! | message | from | what it carries |
//! |---|---|---|
//! | first | requester | nothing but keys |
//! | second | acceptor | a digest of the terms: of everything that the acceptor's reply settles |
//! | third | requester | the program's private data, padded to a fixed length |
//!
//! The pattern `NNpsk0` has only two messages. Its third one is sealed with the session's control
//! key instead. In every pattern the acceptor then sends a sealed answer.
//!
//! | file | what it has |
//! |---|---|
//! | `requester`, `acceptor` | the two sides of a handshake |
//! | `noise` | the handshake as the crate `snow` has it |

mod acceptor;
mod noise;
mod requester;

pub use acceptor::{Acceptor, Established};
pub use requester::{Confirming, Requester};

/// The kind of the sealed message that stands for the third message where Noise has none.
const THIRD_KIND: u8 = 0;

/// Returns the digest of the terms that the acceptor's reply settles.
fn digest(terms: &[u8]) -> [u8; crate::pattern::DIGEST] {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, terms);
    digest.as_ref().try_into().expect("SHA-256 has 32 bytes")
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod vectors;
