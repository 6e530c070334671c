//! Who is who: private and public keys, shared secrets, and the keys that a process trusts.
//!
//! | file | what it has |
//! |---|---|
//! | `private_key`, `public_key` | the key pair by which a process proves who it is |
//! | `secret` | the secret that the processes of a job or a cluster share |
//! | `allowed` | the public keys that an operator has allowed |
//! | `first_use` | the public key that each address first had |
//! | `files` | reading and making files that others must not read or write |
//! | `hex` | hexadecimal digits |
//! | `error` | the errors of all these |

mod allowed;
mod error;
mod files;
mod first_use;
pub(crate) mod hex;
mod private_key;
mod public_key;
mod secret;

pub use allowed::Allowed;
pub use error::IdentityError;
pub use first_use::FirstUse;
pub use private_key::PrivateKey;
pub use public_key::PublicKey;
pub use secret::Secret;

#[cfg(test)]
mod tests;
