//! Congestion control: how much a requester has under way, by what it learns of the path.
//!
//! Many senders that fill the buffer of one switch port lose packets, and keep everybody else's
//! waiting. So each sender watches how long its packets take and which of them switches have marked,
//! and has a window that shrinks and grows by that, down to less than one packet a round trip.
//!
//! An [`Algorithm`] decides about the window, once a round trip. A [`Control`](control::Control)
//! gathers what it decides by, and spaces packets out where the window is small.
//!
//! | module | content |
//! |---|---|
//! | `by_delay` | the algorithm that is used where the peer reports: it keeps the queues on the path short |
//! | `by_notifications` | the algorithm for standard peers, which send congestion notifications at most |
//! | `control` | the state of a connection that is controlled |

pub(crate) mod by_delay;
pub(crate) mod by_notifications;
pub(crate) mod control;

/// The delay, the marks and the losses that one round trip showed of the path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoundTrip {
    /// How long the packet took that took least, there and back, in nanoseconds, without the time
    /// for which the peer kept its acknowledgement back; `None` if that is not known of any.
    pub delay: Option<u64>,
    /// How long a packet takes on the path without queues, in nanoseconds.
    pub shortest: u64,
    /// How many packets arrived.
    pub arrived: u32,
    /// How many of them a switch had marked.
    pub marked: u32,
    /// How many packets were found lost.
    pub lost: u32,
    /// Whether packets take several paths. Then marks and losses may be the affair of one of them.
    pub spread: bool,
}

/// Decides about the window of a connection.
pub(crate) trait Algorithm: Send {
    /// Returns how many packets may be under way, at most `most`, given what the last round trip
    /// has shown. Less than one means that so many are sent a round trip.
    fn round_trip(&mut self, seen: &RoundTrip, most: f32) -> f32;

    /// Returns how many packets may be under way after a time-out, where they take several paths or
    /// one.
    fn timed_out(&mut self, spread: bool) -> f32;

    /// Returns how many packets may be under way when it turns out that the peer had packets before
    /// they timed out, and so many were allowed then: its host was busy.
    fn was_early(&mut self, before: f32) -> f32;
}
