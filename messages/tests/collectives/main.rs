//! Collectives of groups, compared with what they should give, over every kind of link.

mod channels;
mod devices;
mod members;
mod program;
mod wrong;
