//! Unreliable connections, the responder's side: what is lost or refused is passed over in silence.

use crate::wire::Bth;

use super::common::Common;
use super::pair::QueuePair;

impl QueuePair {
    /// Whether a packet that is not the expected one is taken: if it begins a message, and is no late
    /// copy of one that was taken or given up. What was begun before is dropped.
    #[cold]
    pub fn goes_on(&mut self, bth: &Bth, ahead: i32, common: &mut Common) -> bool {
        if ahead < 0 {
            common.counters.duplicates += 1;
            return false;
        }
        common.counters.out_of_sequence += 1;
        self.responder.drop_message();
        let begins = bth.opcode().info().begins();
        if begins {
            self.responder.expected = bth.psn();
        }
        begins
    }

    /// Drops the message that a packet is of, which can't be taken. Its other packets are no
    /// beginning, and so are passed over as well.
    #[cold]
    pub fn pass_over(&mut self, bth: &Bth, common: &mut Common) {
        common.counters.passed_over += 1;
        self.responder.drop_message();
        self.responder.expected = bth.psn().add(1);
    }
}
