//! What a NIC does for programs and peers: its queue pairs, connections and services.

pub(crate) mod connecting;
pub(crate) mod errands;
pub(crate) mod events;
pub(crate) mod grants;
mod state;

pub(crate) use connecting::{Calls, established, replied};
pub(crate) use errands::{Errand, Errands, Leaving};
pub(crate) use grants::{Granted, granted_as};
pub(crate) use state::{Control, Manager, Setting, Way};
