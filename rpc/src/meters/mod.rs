//! Meters: counters and timers of calls, for the recorder of the crate `metrics` that the program
//! has installed. Without the feature `metrics`, all of this is compiled to nothing.

#[cfg_attr(feature = "metrics", path = "on.rs")]
#[cfg_attr(not(feature = "metrics"), path = "off.rs")]
mod kept;

#[cfg(feature = "metrics")]
mod names;

pub use kept::*;
