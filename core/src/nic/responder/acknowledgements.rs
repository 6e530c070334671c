//! What the peer is told of its requests.

use crate::nic::device::outbox::Outbox;
use crate::nic::state::common::Common;
use crate::nic::state::queue_pair::QueuePair;
use crate::nic::state::responder::Due;
use crate::nic::state::turns::Answered;
use crate::planted::{Bug, planted};
use crate::wire::{Aeth, Bth, Extensions, Headers, Opcode, Service};

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

    /// Counts a packet as taken, and sees to its acknowledgement.
    #[inline(always)]
    pub fn took(&mut self, len: usize, asked: bool, service: Service, common: &mut Common) {
        self.responder.next();
        self.owe_acknowledgement(len, asked, service, common);
    }

    /// Sees to the acknowledgement of a packet that was taken.
    #[inline(always)]
    pub fn owe_acknowledgement(
        &mut self,
        len: usize,
        asked: bool,
        service: Service,
        common: &mut Common,
    ) {
        if common.lossless || service == Service::Uc {
            return;
        }
        let r = &mut self.responder;
        // Long packets fill the peer's window sooner.
        r.unanswered = r.unanswered.saturating_add(1 + (len >> 10) as u16);
        if asked || r.unanswered >= r.ack_every {
            common.owe(self, Due::Ack);
        } else if r.ack_at.is_none() {
            let at = common.now.after(r.between_looks);
            (r.ack_at, r.looked, r.looks) = (Some(at), r.unanswered, 0);
            common.delay(r, self.shared.place);
            self.arm_by(at, common);
        }
    }
}
