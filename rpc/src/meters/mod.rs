//! Meters: counters and timers of calls, for the recorder of the crate `metrics` that the program
//! has installed.
//!
//! With the feature `metrics`, `on` keeps the handles to each method's meters, under the names in
//! `names`. Without the feature, `off` takes its place, and everything compiles to nothing. The
//! room is told when calls begin and end, and tells the recorder.

#[cfg_attr(feature = "metrics", path = "on.rs")]
#[cfg_attr(not(feature = "metrics"), path = "off.rs")]
mod kept;

#[cfg(feature = "metrics")]
mod names;

pub use kept::*;
