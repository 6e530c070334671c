//! What happens to a queue pair as a whole: its transitions, its end, its peer.

pub(crate) mod breaking;
pub(crate) mod peer;
pub(crate) mod probe;
pub(crate) mod scheduling;
pub(crate) mod transitions;
