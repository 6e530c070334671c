//! Unreliable connections, the responder's side: packets that are lost or refused are dropped
//! without a NAK.

use crate::nic::state::common::Common;
use crate::nic::state::queue_pair::QueuePair;
use crate::planted::{Bug, planted};
use crate::wire::Bth;

/// How many packets a network may hold back.
const LATE: i32 = 1 << 12;

impl QueuePair {
    /// Whether a packet that is not the expected one is accepted: it must begin a message, and be
    /// no late copy of a packet that was accepted or given up. The message that was begun before is
    /// dropped. A packet from far behind is no late copy, but comes from far ahead, after a long
    /// silence.
    #[cold]
    pub fn resynchronises(&mut self, bth: Bth, ahead: i32, common: &mut Common) -> bool {
        if (-LATE..0).contains(&ahead) && !planted(Bug::TakesLateCopies) {
            common.counters.duplicates += 1;
            return false;
        }
        common.counters.out_of_sequence += 1;
        let joins = planted(Bug::JoinsTornMessages);
        if !joins {
            self.responder.drop_message();
        }
        let begins = bth.opcode().info().begins() || joins;
        if begins {
            self.responder.expected_psn = bth.psn();
        }
        begins
    }

    /// Drops the message that a packet belongs to, which can't be executed. Its other packets do
    /// not begin a message, and so are dropped as well.
    #[cold]
    pub fn drop_unreliable_message(&mut self, bth: Bth, common: &mut Common) {
        common.counters.passed_over += 1;
        self.responder.drop_message();
        self.responder.expected_psn = bth.psn().add(1);
    }
}
