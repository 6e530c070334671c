//! The counts of requests at which the two sides of a link began to end the connection.

/// The counts of requests at which each side of a link began to end the connection.
#[derive(Default)]
pub(super) struct ClosingCounts {
    /// The count of requests when the peer was told that this side has handled all that it sent,
    /// since the peer is about to end the connection. The peer handles those before.
    pub asked_at_answer: Option<u16>,
    /// The count of requests when this side began to close the link.
    pub asked_before: Option<u16>,
}
