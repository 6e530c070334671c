//! Responses to reads and atomic operations, as they are sent.

use crate::encap::Full;
use crate::nic::device::outbox::Outbox;
use crate::nic::protection::key_table::KeyTable;
use crate::nic::protection::registration::KeyError;
use crate::nic::protection::rights::Rights;
use crate::nic::requests::failure::Cause;
use crate::nic::state::common::Common;
use crate::nic::state::queue_pair::{Blamed, QueuePair};
use crate::nic::state::responder::OwedAcknowledgement;
use crate::nic::state::responder_resources::{OwedResponse, Response};
use crate::nic::state::turns::ResponderTurn;
use crate::payload::WordBytes;
use crate::wire::{
    Aeth, AtomicValue, Bth, Extensions, Headers, Nak, Opcode, Psn, RemoteAddr, Rkey, Syndrome,
};

impl QueuePair {
    /// Sends some of the responses that are owed, at `most` so many packets.
    pub fn send_responses<O: Outbox>(
        &mut self,
        common: &mut Common,
        outbox: &mut O,
        most: u32,
    ) -> ResponderTurn {
        self.turn_to_path(common.now);
        for _ in 0..most {
            let Some(&OwedResponse { response, repeated }) = self.responder.resources.front()
            else {
                break;
            };
            let sent = match response {
                Response::Atomic { psn, before } => self.send_atomic_response(psn, before, outbox),
                Response::Read { psn, address, rkey, left, begun } => {
                    let read = ReadResponse { psn, address, rkey, left, begun };
                    self.send_read_response(read, &common.keys, outbox)
                }
                Response::Refusal { psn } => self.send_access_nak(psn, outbox),
            };
            match sent {
                Ok(rest) => self.response_sent(response.psn(), rest, common),
                Err(ResponseError::DeviceFull) => return ResponderTurn::DeviceFull,
                Err(ResponseError::Refused(_)) if repeated => self.refuse_repeated(common),
                Err(ResponseError::Refused(why)) => {
                    self.refuse_accepted_read(response.psn(), why, common);
                }
            }
        }
        match self.responder.resources.is_empty() {
            true => ResponderTurn::AllSent,
            false => ResponderTurn::MoreOwed,
        }
    }

    /// Notes that a packet of the first response was sent, of which `rest` is left.
    fn response_sent(&mut self, psn: Psn, rest: Option<Response>, common: &mut Common) {
        common.counters.sent += 1;
        common.counters.answers_sent += 1;
        if let Some(paths) = &mut self.requester.paths {
            paths.sent_others(self.mtu.bytes());
        }
        let r = &mut self.responder;
        match (rest, r.resources.front_mut()) {
            (Some(rest), Some(front)) => front.response = rest,
            _ => r.resources.pop_front(),
        }
        // The response acknowledges its own packet, and all before it.
        // But it does not name those that are kept from beyond a gap.
        if r.owed == OwedAcknowledgement::Ack
            && psn.add(1) == r.expected_psn
            && !self.responder.holds()
        {
            self.responder.clear_owed();
        }
    }

    /// Refuses to answer a duplicate of a read. The peer may have received the first response,
    /// while its duplicate request was under way for long. Then the memory was rightly revoked, the
    /// peer ignores the NAK, and nothing breaks.
    #[cold]
    fn refuse_repeated(&mut self, common: &mut Common) {
        if let Some(front) = self.responder.resources.front_mut() {
            common.counters.fatal_naks_sent += 1;
            front.response = Response::Refusal { psn: front.response.psn() };
        }
    }

    /// Refuses a read after it was accepted, since its key was revoked meanwhile.
    #[cold]
    fn refuse_accepted_read(&mut self, psn: Psn, why: KeyError, common: &mut Common) {
        self.responder.resources.clear_owed();
        self.responder.expected_psn = psn;
        common.counters.fatal_naks_sent += 1;
        common.owe(self, OwedAcknowledgement::Nak(Syndrome::nak(Nak::RemoteAccess)));
        self.break_with(Cause::Access(why), Blamed::Nothing, common);
    }

    /// The AETH of a response.
    fn aeth(&self) -> Aeth {
        Aeth { syndrome: self.responder.syndrome(), msn: self.responder.msn }
    }

    /// Sends the NAK of a read that may not be repeated.
    fn send_access_nak<O: Outbox>(
        &self,
        psn: Psn,
        outbox: &mut O,
    ) -> Result<Option<Response>, ResponseError> {
        let path = self.path.as_ref().ok_or(ResponseError::DeviceFull)?;
        let bth = Bth::new(Opcode::RcAcknowledge, self.peer_qpn, psn).with_pkey(self.pkey);
        let aeth = Aeth { syndrome: Syndrome::nak(Nak::RemoteAccess), msn: self.responder.msn };
        outbox.push(path, Headers { bth, extensions: Extensions::Aeth(aeth) }, &[][..])?;
        Ok(None)
    }

    /// Sends the result of an atomic operation.
    fn send_atomic_response<O: Outbox>(
        &self,
        psn: Psn,
        before: u64,
        outbox: &mut O,
    ) -> Result<Option<Response>, ResponseError> {
        let path = self.path.as_ref().ok_or(ResponseError::DeviceFull)?;
        let bth = Bth::new(Opcode::RcAtomicAcknowledge, self.peer_qpn, psn).with_pkey(self.pkey);
        let extensions = Extensions::AethAtomicAck(self.aeth(), AtomicValue(before));
        outbox.push(path, Headers { bth, extensions }, &[][..])?;
        Ok(None)
    }

    /// Sends the next packet of the response to a read. Returns what is left of the response.
    fn send_read_response<O: Outbox>(
        &self,
        read: ReadResponse,
        keys: &KeyTable,
        outbox: &mut O,
    ) -> Result<Option<Response>, ResponseError> {
        let path = self.path.as_ref().ok_or(ResponseError::DeviceFull)?;
        let ReadResponse { psn, address, rkey, left, begun } = read;
        let len = left.min(self.mtu.bytes() as u32);
        let rest = left - len;
        let opcode = match (begun, rest > 0) {
            (false, false) => Opcode::RcReadResponseOnly,
            (false, true) => Opcode::RcReadResponseFirst,
            (true, true) => Opcode::RcReadResponseMiddle,
            (true, false) => Opcode::RcReadResponseLast,
        };
        let extensions = match opcode {
            Opcode::RcReadResponseMiddle => Extensions::None,
            _ => Extensions::Aeth(self.aeth()),
        };
        let bth = Bth::new(opcode, self.peer_qpn, psn).with_pkey(self.pkey);
        let headers = Headers { bth, extensions };
        match len {
            0 => outbox.push(path, headers, &[][..])?,
            _ => {
                let (needed, long) = (Rights::REMOTE_READ, u64::from(len));
                if let Ok((region, start)) = keys.remote(self.domain, rkey, needed, address, long) {
                    let range = start..start + len as usize;
                    let bytes =
                        WordBytes::new(region.words(), range).ok_or(KeyError::Bounds(rkey.0))?;
                    outbox.push(path, headers, bytes)?
                } else {
                    outbox.push(path, headers, keys.lent(self.domain, rkey, address, long)?)?
                }
            }
        };
        let address = RemoteAddr(address.0.wrapping_add(u64::from(len)));
        let (psn, begun) = (psn.add(1), true);
        Ok((rest > 0).then_some(Response::Read { psn, address, rkey, left: rest, begun }))
    }
}

/// The response to a read, of which the next packet is to be sent.
struct ReadResponse {
    psn: Psn,
    address: RemoteAddr,
    rkey: Rkey,
    /// How many bytes are still to be sent.
    left: u32,
    /// Whether a packet of the response was sent before.
    begun: bool,
}

/// Why a response was not sent.
enum ResponseError {
    /// The device has no room for a packet.
    DeviceFull,
    /// The memory may not be read any more.
    Refused(KeyError),
}

impl From<Full> for ResponseError {
    fn from(_: Full) -> Self {
        Self::DeviceFull
    }
}

impl From<KeyError> for ResponseError {
    fn from(why: KeyError) -> Self {
        Self::Refused(why)
    }
}
