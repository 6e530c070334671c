//! NICs on a simulated fabric: reliable connections above all, and the other services.

mod absent;
mod acks;
mod answers;
mod common;
mod connections;
mod copied;
mod crowd;
mod datagrams;
mod devices;
mod goodput;
mod keys;
mod lossless;
mod mapped;
mod messages;
mod partition;
mod pauses;
mod posting;
mod probing;
mod random;
mod reads;
mod receivers;
mod regressions;
mod shared;
mod silence;
mod states;
mod unreliable;
