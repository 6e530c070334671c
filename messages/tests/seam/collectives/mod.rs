//! Collectives of groups, compared with what they should give, over every kind of link.

mod agreement;
mod devices;
mod fabric;
mod killed;
mod leaving;
mod members;
#[path = "../../../../collectives/tests/seam/program.rs"]
mod program;
mod wrong;
