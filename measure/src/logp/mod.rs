//! The results of LogP's tests: `line` is one result, and `devices` describes the devices that were
//! measured.

pub mod devices;
pub mod line;
