//! Collectives of groups, compared with what they should give, over every kind of link.

mod agreement;
mod channels;
mod devices;
mod fabric;
mod killed;
mod leaving;
mod members;
mod program;
mod wrong;
