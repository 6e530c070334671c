//! The responder: which requests of the peer's are executed, and how they are acknowledged and
//! answered.

pub(crate) mod acknowledgements;
pub(crate) mod datagrams;
pub(crate) mod fast_path;
pub(crate) mod holding;
pub(crate) mod outcomes;
pub(crate) mod reads_and_atomics;
pub(crate) mod receives;
pub(crate) mod receiving;
pub(crate) mod responses;
pub(crate) mod sends;
pub(crate) mod unreliable;
pub(crate) mod writes;
