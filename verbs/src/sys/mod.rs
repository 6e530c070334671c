//! What needs `unsafe`, each with its reason.

pub(crate) mod lock;
pub(crate) mod thread;
