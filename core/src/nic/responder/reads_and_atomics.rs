//! Reads and atomic operations of the peer's: how they are executed, and executed again for a
//! duplicate.

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
    /// Executes a read of this side's memory: enters its response among those that are owed.
    #[inline(always)]
    pub fn execute_read(&mut self, headers: Headers, keys: &KeyTable) -> Result<(), Refusal> {
        let Extensions::Reth(reth) = headers.extensions else { return Err(Refusal::INVALID) };
        self.check_read(&reth, keys)?;
        let (psn, Reth { address, rkey, length }) = (headers.bth.psn(), reth);
        let read = Response::Read { psn, address, rkey, left: length.0, begun: false };
        let r = &mut self.responder;
        if r.resources.are_full() {
            return Err(Refusal::INVALID);
        }
        r.resources.add(read);
        r.msn = r.msn.add(1);
        // A read takes a sequence number for each packet of its response, of which the last is
        // counted as that of any request is.
        r.expected_psn = r.expected_psn.add(self.mtu.packets(length.0) - 1);
        Ok(())
    }

    /// Checks whether a read is allowed.
    #[inline(always)]
    fn check_read(&self, reth: &Reth, keys: &KeyTable) -> Result<(), Refusal> {
        let Reth { address, rkey, length } = *reth;
        if length.0 > LONGEST_MESSAGE {
            return Err(Refusal::INVALID);
        }
        self.check_rights(Rights::REMOTE_READ)?;
        // A read of no bytes touches no memory, and its key is not checked.
        if length.0 == 0 {
            return Ok(());
        }
        let len = u64::from(length.0);
        if keys.remote(self.domain, rkey, Rights::REMOTE_READ, address, len).is_err() {
            keys.lent(self.domain, rkey, address, len)
                .map_err(|why| Refusal::access_to(address, len, why))?;
        }
        Ok(())
    }

    /// Answers a duplicate of a read, or of a part of one. Nothing beyond what was requested before
    /// is read.
    pub fn repeat_read(&mut self, headers: Headers, common: &mut Common) {
        let (psn, Extensions::Reth(reth)) = (headers.bth.psn(), headers.extensions) else { return };
        let packets = self.mtu.packets(reth.length.0);
        let beyond = psn.add(packets);
        if reth.length.0 > LONGEST_MESSAGE || beyond.distance_from(self.responder.expected_psn) > 0
        {
            return;
        }
        // What looks like a duplicate may be none: nothing is read without the right to.
        if reth.length.0 > 0 && !self.rights.include(Rights::REMOTE_READ) {
            return;
        }
        let Reth { address, rkey, length } = reth;
        let read = Response::Read { psn, address, rkey, left: length.0, begun: false };
        match self.responder.is_selective() {
            true => self.responder.resources.add_repair(read, self.mtu.bytes()),
            false => self.responder.resources.add_repeated(read, packets),
        }
        common.list_owing(self);
    }

    /// Executes an atomic operation, and remembers its result.
    #[inline(always)]
    pub fn execute_atomic(&mut self, headers: Headers, keys: &KeyTable) -> Result<(), Refusal> {
        let Extensions::Atomic(atomic) = headers.extensions else { return Err(Refusal::INVALID) };
        let AtomicEth { address, rkey, swap_or_add, compare } = atomic;
        self.check_rights(Rights::REMOTE_ATOMIC)?;
        let (region, offset) = keys
            .remote(self.domain, rkey, Rights::REMOTE_ATOMIC, address, 8)
            .map_err(|why| Refusal::access_to(address, 8, why))?;
        let resources = &mut self.responder.resources;
        if resources.are_full() {
            return Err(Refusal::INVALID);
        }
        let done = match headers.bth.opcode() {
            Opcode::RcCompareSwap => region.compare_swap(offset, compare.0, swap_or_add.0),
            _ => region.fetch_add(offset, swap_or_add.0),
        };
        // The range was found to lie in the region, so the address is not a multiple of 8.
        let before = done.map_err(|_| Refusal::INVALID)?;
        let psn = headers.bth.psn();
        resources.add(Response::Atomic { psn, before });
        resources.remember(psn, before);
        self.responder.msn = self.responder.msn.add(1);
        Ok(())
    }

    /// Answers a duplicate of an atomic operation, if its result is remembered.
    pub fn repeat_atomic(&mut self, headers: Headers, common: &mut Common) {
        if planted(Bug::RepeatsAtomics) {
            let _ = self.execute_atomic(headers, &common.keys);
            return common.list_owing(self);
        }
        let selective = self.responder.is_selective();
        let (psn, resources) = (headers.bth.psn(), &mut self.responder.resources);
        let Some(before) = resources.result(psn) else { return };
        match selective {
            true => resources.add_repair(Response::Atomic { psn, before }, 0),
            false => resources.add_repeated(Response::Atomic { psn, before }, 1),
        }
        common.list_owing(self);
    }
}
