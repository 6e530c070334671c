//! Proofs that somebody knows a key: the key itself never goes over the wire.
//!
//! A proof is an HMAC-SHA256, keyed by the key, over a [`Statement`]. A statement says who proves
//! what to whom, and has random numbers that both sides have drawn for one connection. So a proof
//! is worth nothing for another connection, and a proof of one side is none of the other side.
//!
//! Whoever gets a proof can try keys on it, one after the other, at leisure: a key that is to keep
//! anybody out must be drawn at random. And whoever passes on what two sides say to each other is
//! not noticed, since nothing that follows the proofs is authenticated.
//!
//! The module knows nothing of connections. It is for Active Messages, and for layers of this
//! workspace above.

mod challenges;
mod statement;

pub use challenges::{Challenges, Posed};
pub(crate) use statement::Claim;
pub use statement::{Nonce, Proof, Statement};
