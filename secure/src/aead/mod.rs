//! Authenticated encryption of packets: the suites, and the cipher made from a secret.
//!
//! | file | what it has |
//! |---|---|
//! | `suite` | the suites, and which ones the processor computes fast |
//! | `sealer` | the implementation of [`Cipher`](doorbell_core::cipher::Cipher) |
//! | `kdf` | HKDF-SHA256, from which every key of this crate comes |

pub(crate) mod kdf;
pub(crate) mod sealer;
mod suite;

pub use sealer::cipher;
pub use suite::Suite;

#[cfg(test)]
mod tests;
