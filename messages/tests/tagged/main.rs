//! What tagged messages promise: matching, order, lengths, cancelling, probing, synchronous sends,
//! many peers, many threads and floods, over every device and on a simulated network with faults.

mod cancelling;
#[path = "../common/ends.rs"]
mod ends;
mod everywhere;
mod floods;
mod lengths;
mod matching;
mod order;
mod peers;
mod probing;
mod synchronous;
mod threads;

use doorbell_kit::Allocated;

#[global_allocator]
static ALLOCATED: Allocated = Allocated::nothing();
