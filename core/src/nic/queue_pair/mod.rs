//! What happens to a queue pair as a whole: its transitions, how it breaks, when it has its turn,
//! and its peer.

pub(crate) mod breaking;
pub(crate) mod peer;
pub(crate) mod probe;
pub(crate) mod scheduling;
pub(crate) mod transitions;
