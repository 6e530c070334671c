//! The time: how the NIC is told of it, what is done when timers expire, and when the next one
//! does.

use crate::nic::adapter::keep_alive::look_after_peer;
use crate::nic::adapter::nic::Nic;
use crate::nic::config::queue_pair_state::State;
use crate::nic::identifiers::{PeerId, timer_of};
use crate::nic::state::common::Common;
use crate::nic::state::queue_pair::QueuePair;
use crate::nic::state::responder::OwedAcknowledgement;
use crate::time::Time;

impl Nic {
    /// Tells the time, and processes the timers that have expired: what has waited too long for an
    /// acknowledgement is sent again or given up. So if packets may have come already,
    /// [tell](Self::set_time) the time, take these in, and call this afterwards.
    pub fn advance(&mut self, now: Time) {
        self.set_time(now);
        let Self { common, pairs, fired_timers, .. } = self;
        common.clock_jumps.note_oversleeping(
            common.timers.next(),
            common.now,
            common.peers.limits.busy,
        );
        common.timers.expire(common.now, fired_timers);
        for timer in fired_timers.drain(..) {
            match PeerId::of_timer(timer) {
                Ok(peer) => look_after_peer(peer, pairs, common),
                Err(place) => {
                    if let Some(pair) = pairs[place as usize].as_deref_mut() {
                        pair.timer_expired(common);
                    }
                }
            }
        }
    }

    /// Sets the time, and does nothing yet. Packets are sent and received at the time that was set
    /// last. That time should not be much older than what matters to time-outs; if it was,
    /// [say](Self::skip_time) so afterwards.
    #[inline]
    pub fn set_time(&mut self, now: Time) {
        self.common.now = self.common.now.max(now);
        self.common.arrived = self.common.now;
    }

    /// [Sets](Self::set_time) the time where it was not set for a while, in which requests may have
    /// been posted and packets taken in at unknown times. Their time-outs count from now.
    pub fn skip_time(&mut self, now: Time) {
        let common = &mut self.common;
        common.clock_jumps.note(common.now, now);
        self.set_time(now);
    }

    /// Has all packets acknowledged at once that were accepted and are not acknowledged yet, for a
    /// program that is about to sleep. Otherwise the timers of those acknowledgements, a fraction
    /// of a millisecond later, would wake it, and each acknowledgement would wake its peer.
    pub fn acknowledge(&mut self) {
        let Self { common, pairs, .. } = self;
        while let Some(place) = common.delaying.pop() {
            let Some(pair) = pairs[place as usize].as_deref_mut() else { continue };
            pair.responder.is_delaying = false;
            if pair.responder.look_at.take().is_some() {
                common.owe(pair, OwedAcknowledgement::Ack);
            }
            // A timer stays armed when its deadline moves to later, and would expire for nothing.
            // But the timer of a queue pair with something to do may be for a turn without any
            // deadline.
            if !pair.active && pair.state != State::Error {
                common.timers.disarm(timer_of(place));
                pair.arm(common);
            }
        }
    }

    /// The next moment at which to [advance](Self::advance), if nothing happens before.
    pub fn next_timeout(&self) -> Option<Time> {
        self.common.timers.next()
    }
}

impl QueuePair {
    /// Processes the expiry of the queue pair's timer, and arms the timer again.
    pub fn timer_expired(&mut self, common: &mut Common) {
        if self.active {
            // The queue pair may wait for a slot of a completion queue.
            common.wake_starved();
        }
        if self.state == State::Error {
            return common.activate(self);
        }
        if self.responder.is_acknowledgement_due(common.now) {
            common.owe(self, OwedAcknowledgement::Ack);
        }
        self.requester_timer_expired(common);
        self.repair_timer_expired(common);
        self.probe_timer_expired(common);
        if self.requester.is_controlled() {
            // The next packet may have waited for its time.
            common.activate(self);
        }
        // The timer of a queue pair that has broken just now is armed already.
        if self.state != State::Error {
            self.arm(common);
        }
    }
}
