//! What needs `unsafe`, each with its reason.

#[cfg(not(verbs_loom))]
pub mod epoch;
pub(crate) mod lock;
pub(crate) mod thread;
