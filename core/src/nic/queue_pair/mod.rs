//! What happens to a queue pair as a whole: its transitions, how it breaks, when it has its turn, which
//! routes its packets take, and its peer.

pub(crate) mod breaking;
pub(crate) mod peer;
pub(crate) mod probe;
pub(crate) mod routes;
pub(crate) mod scheduling;
pub(crate) mod transitions;
