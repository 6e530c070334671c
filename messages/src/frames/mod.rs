//! Messages as frames over datagrams, in EMP's way and in RMPP's.

mod engine;
mod policy;
mod statistics;
mod wire;

pub use policy::{Emp, Offload, Policy, Rmpp};
pub use statistics::Statistics;
