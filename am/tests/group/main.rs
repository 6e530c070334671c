//! Collectives of groups of processes.

mod common;
#[path = "../promises/devices.rs"]
#[allow(dead_code)]
mod devices;
mod operations;
mod programs;
