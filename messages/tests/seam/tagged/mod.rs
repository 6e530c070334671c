//! What tagged messages promise: matching, order, lengths, memory of the program, cancelling, probing, synchronous sends,
//! many peers and many threads, over every device and on a simulated network with faults.

mod cancelling;
mod dropping;
mod everywhere;
mod lengths;
mod matching;
mod order;
mod peers;
mod placing;
mod probing;
mod synchronous;
mod threads;
