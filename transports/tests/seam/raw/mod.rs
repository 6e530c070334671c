//! Raw devices on real interfaces: what may happen to an interface, whose frames are whose, and how
//! neighbours find each other.

mod alone;
mod common;
mod front;
mod host;
mod interfaces;
mod neighbours;
mod nics;
mod processes;
mod strangers;
