//! The code of this crate that needs `unsafe`, each block with its reason.

pub(crate) mod alarms;
pub(crate) mod lock;
pub mod thread;
