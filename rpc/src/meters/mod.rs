//! Meters: what is counted and timed of calls, for the recorder of the crate `metrics` that the
//! program has installed. Without the feature `metrics` there is nothing of that, and nothing is
//! paid for it.

#[cfg_attr(feature = "metrics", path = "on.rs")]
#[cfg_attr(not(feature = "metrics"), path = "off.rs")]
mod kept;

#[cfg(feature = "metrics")]
mod names;

pub use kept::*;
