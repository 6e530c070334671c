//! Why a request was not delivered or not answered.

use thiserror::Error;

/// The reason why a request was not delivered or not answered.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Error)]
#[non_exhaustive]
pub enum Undeliverable {
    /// The endpoint does not admit this side: it wants another tag than this side shows, or this
    /// side shows none, or the endpoint admits nobody.
    #[error(
        "the endpoint does not admit this side: it wants a tag that this side does not show, or it admits \
         nobody"
    )]
    WrongTag = 1,
    /// The endpoint has no such handler.
    #[error("the endpoint has no handler of this index: it must declare the same as its peers")]
    NoHandler,
    /// The words are not the arguments of the handler.
    #[error(
        "the endpoint's handler has other arguments, or a value is none of their types, as of an enum that has \
         other variants there: both sides must declare the same"
    )]
    Arguments,
    /// The handler of the request has panicked.
    #[error("the handler panicked, and has not replied: the peer's process has said why")]
    Panicked,
    /// The handler has not replied in time.
    #[error(
        "the handler has not replied within the patience of this endpoint \
         (`EndpointConfig::patience`)"
    )]
    NoReply,
    /// The handler has ended without a reply to a call.
    #[error("the handler has ended without a reply")]
    Unanswered,
    /// The reply of the handler is longer than the requester takes.
    #[error(
        "the handler's reply is longer than this endpoint takes in a message \
         (`EndpointConfig::payload`)"
    )]
    LongReply,
    /// The data to be placed does not fit into the endpoint's segment.
    #[error("the endpoint's segment has no room for it there")]
    Segment,
    /// The peer has gone, or the way there is cut.
    #[error("the peer has gone: whether the handler has run is not known")]
    PeerGone,
    /// Too many asynchronous handlers of the endpoint are under way, or their requests keep too much
    /// memory. The handler has not run.
    #[error(
        "the endpoint has as many asynchronous handlers under way as it may have \
         (`EndpointConfig::tasks`, `EndpointConfig::task_memory`), and this one has not run: it may be \
         tried again later"
    )]
    Busy,
}

impl Undeliverable {
    const ALL: [Self; 10] = [
        Self::WrongTag,
        Self::NoHandler,
        Self::Arguments,
        Self::Panicked,
        Self::NoReply,
        Self::Unanswered,
        Self::LongReply,
        Self::Segment,
        Self::PeerGone,
        Self::Busy,
    ];

    /// The number that stands for the reason in messages.
    pub(crate) fn code(self) -> u64 {
        self as u64
    }

    pub(crate) fn from_code(code: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|why| why.code() == code)
    }
}
