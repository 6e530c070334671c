//! What needs `unsafe`, each with its reason.

pub mod epoch;
pub(crate) mod lock;
pub(crate) mod thread;
