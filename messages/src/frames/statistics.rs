//! Counts of what an endpoint has done.

/// Counts of the messages and frames of an endpoint since the endpoint was opened.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Statistics {
    /// Messages whose arrival the peer has confirmed.
    pub messages_sent: u64,
    /// Messages that receives have taken.
    pub messages_received: u64,
    /// Frames sent, of all kinds.
    pub frames_sent: u64,
    /// Frames received, of all kinds, that were well formed.
    pub frames_received: u64,
    /// Frames with data that were sent again, because nothing confirmed them in time.
    pub resent: u64,
    /// Acknowledgements that were sent, of collections and of whole messages.
    pub acknowledgements: u64,
    /// Frames that were dropped because no receive was posted for their message.
    pub dropped: u64,
    /// Frames that overtook the first frame of their message, or the first frame of an older
    /// message. The endpoint drops such a frame, and its sender sends it again.
    pub early: u64,
    /// Frames that had come before.
    pub repeated: u64,
    /// First frames of messages that found neither a receive nor room for a note, because as many
    /// messages as [`EndpointBuilder::notes`](super::EndpointBuilder::notes) allows wait for
    /// receives. The endpoint drops such a frame, and its sender sends it again.
    pub crowded: u64,
    /// Clears to send that were sent, among them those that only say that no receive is posted.
    pub cleared: u64,
    /// Clears to send for frames that had been cleared and did not come in time.
    pub asked_again: u64,
    /// Messages that their receiver forgot because the sender said so.
    pub cleaned_up: u64,
    /// Messages that their receiver forgot because the sender had not said so in time.
    pub reclaimed: u64,
    /// Frames that came by RDMA writes.
    pub placed: u64,
    /// Frames whose headers make no sense, or contradict what came before.
    pub malformed: u64,
    /// Frames of senders that are not among the peers of this endpoint and could not be added,
    /// because the frame carries no name of its sender, or because the endpoint has as many peers
    /// as [`EndpointBuilder::peers`](super::EndpointBuilder::peers) allows. The endpoint drops such
    /// a frame.
    pub strangers: u64,
}

impl Statistics {
    /// Returns the sums of these counts and others.
    pub(crate) fn plus(self, other: &Self) -> Self {
        Self {
            messages_sent: self.messages_sent + other.messages_sent,
            messages_received: self.messages_received + other.messages_received,
            frames_sent: self.frames_sent + other.frames_sent,
            frames_received: self.frames_received + other.frames_received,
            resent: self.resent + other.resent,
            acknowledgements: self.acknowledgements + other.acknowledgements,
            dropped: self.dropped + other.dropped,
            early: self.early + other.early,
            repeated: self.repeated + other.repeated,
            crowded: self.crowded + other.crowded,
            cleared: self.cleared + other.cleared,
            asked_again: self.asked_again + other.asked_again,
            cleaned_up: self.cleaned_up + other.cleaned_up,
            reclaimed: self.reclaimed + other.reclaimed,
            placed: self.placed + other.placed,
            malformed: self.malformed + other.malformed,
            strangers: self.strangers + other.strangers,
        }
    }
}
