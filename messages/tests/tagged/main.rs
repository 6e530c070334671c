//! What tagged messages promise: matching, order, lengths, cancelling, probing, synchronous sends,
//! many peers and many threads, over every device and on a simulated network with faults.

mod cancelling;
mod dropping;
#[path = "../common/ends.rs"]
mod ends;
mod everywhere;
mod lengths;
mod matching;
mod order;
mod peers;
mod probing;
mod synchronous;
mod threads;
