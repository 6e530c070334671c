//! The session that follows from a handshake: its keys, and the sealed messages that manage it.
//!
//! | file | what it has |
//! |---|---|
//! | `keys` | the keys that follow from a handshake |
//! | `control` | sealed messages that manage a connection |

mod control;
mod keys;

pub use control::Control;
pub(crate) use keys::Role;
pub use keys::{PeerIdentity, SessionKeys};
