//! Doorbell under its one name: what the macros make, and names that are imported whole.

mod closed;
mod derives;
mod floors;
mod globs;
mod refused;
mod service;
mod wire;
