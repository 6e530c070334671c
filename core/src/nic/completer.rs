//! The completer: what the peer answers.

use crate::encap::PathId;
use crate::wire::{Aeth, Extensions, Headers, Msn, Nak, Opcode, Psn, Verdict};

use super::common::Common;
use super::completion::{Cause, Completion};
use super::notices::Untaken;
use super::pair::{Blamed, QueuePair};
use super::planted::{Bug, planted};
use super::queues::Purpose;

impl QueuePair {
    /// Takes an answer.
    #[inline]
    pub fn answered(&mut self, headers: &Headers, common: &mut Common) {
        if !self.state.requests() {
            common.counters.wrong_state += 1;
            return;
        }
        let answer = (headers.bth.opcode(), headers.extensions);
        let (Opcode::RcAcknowledge, Extensions::Aeth(aeth)) = answer else {
            // Answers to reads and atomics, which were not asked for.
            common.counters.stray_answers += 1;
            return;
        };
        let psn = headers.bth.psn();
        match aeth.syndrome.verdict() {
            Verdict::Ack(credits) => {
                let last = credits.map(|credits| aeth.msn.add(u32::from(credits.messages())));
                self.acked(psn, last, common);
            }
            Verdict::Nak(Nak::SequenceError) => self.missed(psn, common),
            Verdict::ReceiverNotReady(timer) => {
                // While nothing is sent, it can only be the same refusal again.
                if self.waits_for_receiver() {
                    common.counters.stray_answers += 1;
                } else if self.refused(psn, common) {
                    common.counters.rnr_naks_received += 1;
                    self.wait_for_receiver(psn, timer, common);
                }
            }
            Verdict::Nak(nak) => self.refused_for_good(psn, aeth, nak, common),
            Verdict::Reserved => {
                let cause = Cause::BadAnswer(aeth.syndrome.code());
                if self.refused(psn, common) {
                    self.break_with(cause, Blamed::Request, common);
                }
            }
        }
    }

    #[inline]
    fn acked(&mut self, psn: Psn, last: Option<Msn>, common: &mut Common) {
        if !self.is_under_way(psn) && !planted(Bug::BelievesAnyAcknowledgement) {
            // The newest acknowledgement again brings news of receives; others bring nothing.
            if psn.add(1) == self.oldest() {
                self.credited(last);
                common.activate(self);
            }
            common.counters.stray_answers += 1;
            return;
        }
        common.counters.acks_received += 1;
        self.credited(last);
        self.acknowledged(psn, common);
    }

    /// A packet is missing over there: everything before it has arrived.
    fn missed(&mut self, psn: Psn, common: &mut Common) {
        // While it waits for a receive, nothing is missing that was not refused before.
        if !self.refused(psn, common) || self.waits_for_receiver() {
            return;
        }
        common.counters.sequence_naks_received += 1;
        if !self.gave_up(common) {
            self.go_back(psn, common);
        }
    }

    fn refused_for_good(&mut self, psn: Psn, aeth: Aeth, nak: Nak, common: &mut Common) {
        if !self.refused(psn, common) {
            return;
        }
        common.counters.fatal_naks_received += 1;
        let cause = match nak {
            Nak::InvalidRequest | Nak::InvalidRdRequest => Cause::PeerInvalidRequest,
            Nak::RemoteAccess => Cause::PeerAccess,
            Nak::RemoteOperation => Cause::PeerOperation,
            Nak::SequenceError => Cause::BadAnswer(aeth.syndrome.code()),
        };
        self.break_with(cause, Blamed::Request, common);
    }

    /// A refusal of packet `psn` says that everything before it has arrived. Whether it is about a
    /// packet that is under way at all: what was missing may have come while the refusal waited to
    /// be sent, which then speaks of a packet that is yet to be.
    fn refused(&mut self, psn: Psn, common: &mut Common) -> bool {
        let before = psn.add(Psn::MAX.get());
        if self.is_under_way(before) {
            self.acknowledged(before, common);
        }
        let about_something = self.is_under_way(psn);
        common.counters.stray_answers += u64::from(!about_something);
        about_something
    }

    /// Whether it has packets under way by a link, and the notice that came by it is about one.
    pub(super) fn is_concerned(&self, link: PathId, untaken: Untaken) -> bool {
        let oldest = self.oldest();
        let waits = self.state.requests() && self.is_under_way(oldest);
        let by_link = self.path.as_ref().is_some_and(|path| path.id() == link);
        waits
            && by_link
            && match untaken {
                Untaken::Anything => true,
                // The one begins within the other, or the other within the one.
                Untaken::Run { number, first, last } => {
                    let within =
                        oldest.distance_from(first) >= 0 && last.distance_from(oldest) >= 0;
                    number == self.peer && (self.is_under_way(first) || within)
                }
            }
    }

    /// Completes the request at the head of the queue.
    #[inline]
    pub(super) fn complete_front(&mut self, common: &mut Common) {
        let (qpn, queue) = (self.number(), self.send_completions);
        self.requester.completed = self.requester.completed.add(1);
        let completion = self.requester.pop(|posted| {
            let request = &mut posted.request;
            request.signalled.then(|| Completion {
                id: request.id,
                qpn,
                outcome: Ok(request.operation.done()),
                len: 0,
                imm: None,
                memory: request.data.take_memory(),
            })
        });
        match completion {
            Some(Some(completion)) => common.complete(queue, completion, Purpose::Send),
            Some(None) => {
                common.counters.completed += 1;
                common.release(queue, Purpose::Send);
            }
            None => {}
        }
    }
}
