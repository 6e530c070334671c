//! Errors of posting: why a request was not posted.

use thiserror::Error;

use crate::nic::config::queue_pair_state::State;
use crate::nic::requests::memory::LONGEST_MESSAGE;
use crate::wire::Qpn;

/// Why a request was not posted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum PostError {
    /// As many requests as the queue holds are outstanding.
    #[error(
        "the queue of {qpn} holds {depth} requests, and all are outstanding: await some of them, or take \
         their completions, before posting more; or configure a deeper queue"
    )]
    Full {
        /// The number of the queue pair.
        qpn: Qpn,
        /// How many requests the queue holds.
        depth: usize,
    },
    /// As many receives as a shared queue holds are posted.
    #[error(
        "the shared queue holds {depth} receives, and all are posted: post more when messages have \
         come and their completions were taken, or make a longer queue"
    )]
    SharedFull {
        /// How many receives the shared queue holds.
        depth: usize,
    },
    /// The queue pair takes its receives from a shared receive queue.
    #[error("{qpn} takes its receives from a shared queue: post them there")]
    Shared {
        /// The number of the queue pair.
        qpn: Qpn,
    },
    /// The queue pair takes no such requests in its state.
    #[error("{qpn} is in state {state:?}, where {what} can't be posted")]
    State {
        /// The number of the queue pair.
        qpn: Qpn,
        /// The state of the queue pair.
        state: State,
        /// The kind of request that was to be posted.
        what: &'static str,
    },
    /// The request is not valid, or not for this transport.
    #[error(
        "{operation} can't be posted to {qpn}, or not with such data and attachment: reads need \
         memory to put what is read, atomic operations take no data, keys are invalidated by sends, \
         metadata goes with writes, unreliable connections only send and write, and \
         datagrams are for queue pairs of their own"
    )]
    Unfit {
        /// The number of the queue pair.
        qpn: Qpn,
        /// The operation that the request asks for.
        operation: &'static str,
    },
    /// The message is longer than any message may be.
    #[error("a message of {len} bytes is longer than {LONGEST_MESSAGE}")]
    TooLong {
        /// How many bytes the message has.
        len: u64,
    },
}

/// A request that was not posted, and why.
#[derive(Debug, Error)]
#[error("{why}")]
pub struct Refused<R: std::fmt::Debug> {
    /// Why the request was not posted.
    pub why: PostError,
    /// The request, which is unchanged.
    pub request: Box<R>,
}
