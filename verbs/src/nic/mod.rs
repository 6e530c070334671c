//! The NIC: opening a device, the handle to it, and its protection domains.
//!
//! This folder is told a device's name and a configuration. It builds the adapter and the progress
//! engine over them, and hands out [`Nic`] handles, through which the folders above reach both.
//! Those folders add methods to `Nic` and [`Domain`] for the objects that they make.

mod builder;
mod config;
mod domain;
mod handle;
mod joining;
mod limits;
mod names;
mod open;
mod polled_wait;
mod statistics;
mod waits;

pub use builder::NicBuilder;
pub use config::{Config, Progress};
pub use domain::Domain;
pub use handle::Nic;
pub(crate) use names::find;
pub use polled_wait::{HasNic, PolledWait};
pub use statistics::Statistics;
