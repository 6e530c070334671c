//! The probe of one queue pair's peer.

use crate::time::Time;

/// A probe that is under way: the peer is asked for a sign of life on one queue pair.
#[derive(Clone, Copy)]
pub(crate) struct Probe {
    /// When the first keep-alive packet was sent. Whatever has come to the queue pair since then
    /// ends the probe.
    pub since: Time,
    /// When to send the next keep-alive packet, or to give the peer up.
    pub again: Time,
    /// How many keep-alive packets were sent. The first is sent when the clock is read next, since
    /// the time that was told last may be long ago.
    pub asked: u8,
}
