//! Many clients of one server, and many channels of one process.

mod clients;
mod common;
mod fairness;
mod sharing;
