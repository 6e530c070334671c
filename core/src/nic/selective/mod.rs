//! What selective repeat knows of packets beyond a missing one: which the peer keeps, which are to be
//! sent again, and those that are kept here.
//!
//! On a network that loses few packets, going back to a lost one costs a round trip's worth of
//! packets that had arrived. Between peers that have agreed on it, only what is missing is sent
//! again: the receiver keeps what comes from beyond a gap, carries it out in order once the gap is
//! filled, and says in its [acknowledgements](crate::wire::Report) what it keeps.
//!
//! | module | content |
//! |---|---|
//! | `marks` | a set of sequence numbers near each other |
//! | `held` | the packets that a receiver keeps, and the memory for them |
//! | `repair` | what a requester knows of missing packets, and which of them it sends again |

pub(crate) mod held;
pub(crate) mod marks;
pub(crate) mod repair;

use crate::wire::Report;

/// How far beyond a missing packet others are kept, in sequence numbers.
pub(crate) const REACH: u32 = Report::MOST_BITS as u32;
