//! Counts of what an endpoint has done.

/// What an endpoint of frames has counted since it was opened.
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
    /// Acknowledgements sent: of collections, and of whole messages.
    pub acknowledgements: u64,
    /// Frames that were dropped because no receive was posted for their message.
    pub dropped: u64,
    /// Frames that were dropped because they came before the first frame of their message, or
    /// before the messages in front of it.
    pub early: u64,
    /// Frames that had come before.
    pub repeated: u64,
    /// Frames that were dropped because as many messages as configured wait for receives.
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
    /// Frames of senders whose names are not known, and not in the frame.
    pub strangers: u64,
}
