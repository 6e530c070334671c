//! Unreliable connections, the responder's side: what is lost or refused is passed over in silence.

use crate::nic::state::common::Common;
use crate::nic::state::queue_pair::QueuePair;
use crate::planted::{Bug, planted};
use crate::wire::Bth;

/// So many packets a network may hold back.
const LATE: i32 = 1 << 12;

impl QueuePair {
    /// Whether a packet that is not the expected one is taken: if it begins a message, and is no
    /// late copy of one that was taken or given up. What was begun before is dropped. One from far
    /// behind is no late copy, but from far ahead, after a long silence.
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

    /// Drops the message that a packet is of, which can't be taken. Its other packets are no
    /// beginning, and so are passed over as well.
    #[cold]
    pub fn drop_unreliable_message(&mut self, bth: Bth, common: &mut Common) {
        common.counters.passed_over += 1;
        self.responder.drop_message();
        self.responder.expected_psn = bth.psn().add(1);
    }
}
