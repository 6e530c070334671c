//! The parts of a network: cables, each of which has two lanes with faults, and switches, which
//! mark congestion as ECN does.

pub(crate) mod config;
pub(crate) mod ecn;
pub(crate) mod faults;
pub(crate) mod flow;
pub(crate) mod lane;
pub(crate) mod switch;
