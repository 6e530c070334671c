//! The code of this crate that needs `unsafe`, each block with its reason.

pub(crate) mod lock;
pub mod thread;
