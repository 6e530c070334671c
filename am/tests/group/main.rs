//! Collectives of groups of processes.

mod common;
#[path = "../promises/devices.rs"]
#[allow(dead_code)]
mod devices;
mod dying;
mod failing;
mod hostile;
mod leaving;
mod operations;
mod programs;
mod scale;
