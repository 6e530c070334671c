//! Collectives of groups of processes.

mod common;
mod dying;
mod failing;
mod hostile;
mod leaving;
mod operations;
mod programs;
mod scale;
