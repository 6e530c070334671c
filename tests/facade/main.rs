//! Doorbell under its one name: what the macros make, and names that are imported whole.

mod closed_nic;
mod derives;
mod floors;
mod globs;
mod refused;
mod service;
