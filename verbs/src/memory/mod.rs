//! Local memory that a NIC knows: registered, so that peers reach it, or mapped from a peer.
//!
//! This folder is given regions and rights, and tells the control plane of each registration and
//! mapping, and of its end. It returns the keys that peers are told.

mod lent;
mod mapped;
mod pool;
mod registered;

pub use lent::Lent;
pub use mapped::Mapped;
pub use pool::{FrozenRegion, PooledRegion, RegionPool};
pub use registered::Registered;
