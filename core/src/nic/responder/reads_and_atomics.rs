//! What the responder answers with more than an acknowledgement: reads and atomic operations.
//!
//! A read is not copied when it is asked for: its answers are made from memory when they are sent,
//! a packet at a time, with the key looked at each time. So a read that comes again, whole or from
//! its middle on, is carried out again. An atomic operation is carried out once, when it is
//! asked for first, and its result remembered: as many as the peer may have under way.

use crate::nic::protection::key_table::KeyTable;
use crate::nic::protection::rights::Rights;
use crate::nic::requests::memory::LONGEST_MESSAGE;
use crate::nic::responder::outcomes::Refusal;
use crate::nic::state::common::Common;
use crate::nic::state::queue_pair::QueuePair;
use crate::nic::state::responder_resources::Response;
use crate::planted::{Bug, planted};
use crate::wire::{AtomicEth, Extensions, Headers, Opcode, Reth};

impl QueuePair {
    /// Takes a read of this side's memory, or refuses it.
    #[inline(always)]
    pub fn execute_read(&mut self, headers: Headers, keys: &KeyTable) -> Result<(), Refusal> {
        let Extensions::Reth(reth) = headers.extensions else { return Err(Refusal::INVALID) };
        self.may_read(&reth, keys)?;
        let (psn, Reth { address, rkey, length }) = (headers.bth.psn(), reth);
        let read = Response::Read { psn, address, rkey, left: length.0, begun: false };
        let r = &mut self.responder;
        if r.resources.are_full() {
            return Err(Refusal::INVALID);
        }
        r.resources.add(read);
        r.msn = r.msn.add(1);
        // It takes a number for each packet of its answer; the last is counted as others are.
        r.expected_psn = r.expected_psn.add(self.mtu.packets(length.0) - 1);
        Ok(())
    }

    #[inline(always)]
    fn may_read(&self, reth: &Reth, keys: &KeyTable) -> Result<(), Refusal> {
        let Reth { address, rkey, length } = *reth;
        if length.0 > LONGEST_MESSAGE {
            return Err(Refusal::INVALID);
        }
        self.check_rights(Rights::REMOTE_READ)?;
        // A read of nothing touches no memory, and its key is not looked at.
        if length.0 == 0 {
            return Ok(());
        }
        let len = u64::from(length.0);
        if keys.remote(self.domain, rkey, Rights::REMOTE_READ, address, len).is_err() {
            keys.lent(self.domain, rkey, address, len)
                .map_err(|why| Refusal::access_to((address, len), why))?;
        }
        Ok(())
    }

    /// Responses a read again, or a part of one: as much as was asked for before.
    pub fn repeat_read(&mut self, headers: Headers, common: &mut Common) {
        let (psn, Extensions::Reth(reth)) = (headers.bth.psn(), headers.extensions) else { return };
        let packets = self.mtu.packets(reth.length.0);
        let beyond = psn.add(packets);
        if reth.length.0 > LONGEST_MESSAGE || beyond.distance_from(self.responder.expected_psn) > 0
        {
            return;
        }
        // What looks like a repetition may be none: nothing is read without the right to.
        if reth.length.0 > 0 && !self.rights.include(Rights::REMOTE_READ) {
            return;
        }
        let Reth { address, rkey, length } = reth;
        let read = Response::Read { psn, address, rkey, left: length.0, begun: false };
        self.responder.resources.add_repeated(read, packets);
        common.list_owing(self);
    }

    /// Carries an atomic operation out, or refuses it.
    #[inline(always)]
    pub fn execute_atomic(&mut self, headers: Headers, keys: &KeyTable) -> Result<(), Refusal> {
        let Extensions::Atomic(atomic) = headers.extensions else { return Err(Refusal::INVALID) };
        let AtomicEth { address, rkey, swap_or_add, compare } = atomic;
        self.check_rights(Rights::REMOTE_ATOMIC)?;
        let (region, offset) = keys
            .remote(self.domain, rkey, Rights::REMOTE_ATOMIC, address, 8)
            .map_err(|why| Refusal::access_to((address, 8), why))?;
        let answers = &mut self.responder.resources;
        if answers.are_full() {
            return Err(Refusal::INVALID);
        }
        let done = match headers.bth.opcode() {
            Opcode::RcCompareSwap => region.compare_swap(offset, compare.0, swap_or_add.0),
            _ => region.fetch_add(offset, swap_or_add.0),
        };
        // The range was found to be the region's, so it is the address that is none of a word.
        let before = done.map_err(|_| Refusal::INVALID)?;
        let psn = headers.bth.psn();
        answers.add(Response::Atomic { psn, before });
        answers.remember(psn, before);
        self.responder.msn = self.responder.msn.add(1);
        Ok(())
    }

    /// Responses an atomic operation again, if its result is remembered.
    pub fn repeat_atomic(&mut self, headers: Headers, common: &mut Common) {
        if planted(Bug::RepeatsAtomics) {
            let _ = self.execute_atomic(headers, &common.keys);
            return common.list_owing(self);
        }
        let (psn, answers) = (headers.bth.psn(), &mut self.responder.resources);
        let Some(before) = answers.result(psn) else { return };
        answers.add_repeated(Response::Atomic { psn, before }, 1);
        common.list_owing(self);
    }
}
