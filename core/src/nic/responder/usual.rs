//! What most packets are: a message of one packet, the next that is expected.
//!
//! That takes a few comparisons to find out, in front of everything else that a packet is judged
//! by: nothing that is rare stands in the way then, and no more than what follows from them is
//! left out.

use crate::nic::common::Common;
use crate::nic::device::Flow;
use crate::nic::pair::QueuePair;
use crate::nic::states::State;
use crate::payload::Payload;
use crate::wire::{Bth, Glance, Likeness, Opcode, Psn, Service};

use super::{Attachment, Doing};

impl QueuePair {
    /// What usual packets are like in the state that it is in.
    pub fn likeness(&self) -> Likeness {
        // Two that are limited members of a partition may not talk.
        let talks = self.pkey.same_partition(self.pkey);
        if self.service() != Service::Rc || self.state != State::ReadyToSend || !talks {
            return Likeness::NONE;
        }
        let bth = Bth::new(Opcode::RcSendOnly, self.number(), Psn::new(0));
        Likeness::of(&bth.with_pkey(self.pkey))
    }

    /// Whether a packet is a usual one.
    #[inline(always)]
    pub fn is_usual(&self, flow: Flow<'_>, bth: Glance, len: usize) -> bool {
        let r = &self.responder;
        bth.is(self.usual)
            && self.comes_from_peer(flow)
            && bth.psn() == r.expected
            && len <= self.mtu.bytes()
    }

    /// Sees whether the next packet can be a usual one: whenever something may have come into its
    /// way, or got out of it.
    #[inline(always)]
    pub fn expect_usual(&mut self) {
        let r = &self.responder;
        let clear = !r.refused && matches!(r.doing, Doing::Nothing) && r.kept.is_none();
        self.usual = if clear { self.alike } else { Likeness::NONE };
    }

    /// Takes one.
    #[inline(always)]
    pub fn take_usual<P: Payload>(&mut self, bth: Glance, payload: P, common: &mut Common) {
        let len = payload.len();
        match self.take_whole(payload, Attachment::Nothing, bth.solicited(), common) {
            Ok(()) => {
                // Nothing was refused, and so there is no refusal to be taken back.
                self.responder.expected = bth.psn().add(1);
                self.owe_acknowledgement(len, bth.ack_request(), Service::Rc, common);
            }
            Err(refusal) => {
                self.refuse(refusal, common);
                self.expect_usual();
            }
        }
    }
}
