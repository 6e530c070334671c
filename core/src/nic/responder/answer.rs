//! What the peer is told of its requests.

use crate::nic::common::Common;
use crate::nic::device::Outbox;
use crate::nic::pair::QueuePair;
use crate::planted::{Bug, planted};
use crate::wire::{Aeth, Bth, Extensions, Headers, Opcode};

use super::{Answered, Due};

impl QueuePair {
    /// Sends some of the answers that are owed: first what earlier requests asked for, then whether
    /// later ones were taken.
    #[inline]
    pub fn answer<O: Outbox>(
        &mut self,
        common: &mut Common,
        outbox: &mut O,
        most: u32,
    ) -> Answered {
        if !self.responder.answers.is_empty() {
            let turn = self.send_answers(common, outbox, most);
            if turn != Answered::All {
                return turn;
            }
        }
        if self.responder.asks && self.ask_whether_there(common, outbox).is_err() {
            return Answered::DeviceFull;
        }
        let r = &mut self.responder;
        let Some(path) = &self.path else {
            r.due = Due::Nothing;
            return Answered::All;
        };
        let (psn, syndrome) = match r.due {
            Due::Nothing => return Answered::All,
            Due::Ack if planted(Bug::AcknowledgesAhead) => (r.expected, r.syndrome()),
            Due::Ack => (r.expected.before(), r.syndrome()),
            Due::Nak(syndrome) => (r.expected, syndrome),
        };
        let bth = Bth::new(Opcode::RcAcknowledge, self.peer, psn).with_pkey(self.pkey);
        let aeth = Aeth { syndrome, msn: r.completed };
        let headers = Headers { bth, extensions: Extensions::Aeth(aeth) };
        if outbox.push(path, headers, &[][..]).is_err() {
            return Answered::DeviceFull;
        }
        common.counters.sent += 1;
        common.counters.acks_sent += u64::from(r.due == Due::Ack);
        r.said();
        Answered::All
    }
}
