//! Sends of the peer's, and how a message is put into its receive.

use crate::nic::protection::key_table::KeyTable;
use crate::nic::protection::segment::Domain;
use crate::nic::queues::completion_slots::{Purpose, in_use};
use crate::nic::queues::receives::Receives;
use crate::nic::requests::completion::{Completion, Done};
use crate::nic::requests::failure::Cause;
use crate::nic::requests::gather::scatter;
use crate::nic::requests::memory::{LONGEST_MESSAGE, Memory};
use crate::nic::requests::work_request::{Attachment, ReceiveRequest};
use crate::nic::responder::outcomes::{ReceivedMessage, Refusal};
use crate::nic::state::common::Common;
use crate::nic::state::queue_pair::QueuePair;
use crate::nic::state::responder::InboundMessage;
use crate::payload::Payload;
use crate::planted::{Bug, planted};
use crate::wire::{Extensions, Nak, OpcodeInfo, Packet};

impl QueuePair {
    /// Executes a packet of a send.
    #[inline(always)]
    pub fn execute_send<P: Payload>(
        &mut self,
        packet: &Packet<P>,
        info: OpcodeInfo,
        common: &mut Common,
    ) -> Result<(), Refusal> {
        let attached = match packet.headers.extensions {
            Extensions::None => Attachment::Nothing,
            Extensions::Imm(imm) => Attachment::Imm(imm),
            Extensions::Ieth(rkey) => Attachment::Invalidate(rkey),
            _ => return Err(Refusal::INVALID),
        };
        if let Attachment::Invalidate(rkey) = attached {
            common.keys.may_invalidate(self.domain, rkey).map_err(Refusal::access)?;
        }
        if info.begins() != matches!(self.responder.inbound, InboundMessage::Nothing) {
            return Err(Refusal::INVALID);
        }
        let (domain, solicited) = (self.domain, packet.headers.bth.solicited());
        if info.begins() {
            if planted(Bug::DropsWithoutReceive) && self.responder.receives.waiting() == 0 {
                return Ok(());
            }
            if info.ends() && self.responder.kept_receive.is_none() {
                return self.execute_whole_send(packet.payload, attached, solicited, common);
            }
            let receive = self.take_receive(common)?;
            self.responder.inbound = InboundMessage::Send { receive, filled: 0 };
        }
        let responder = &mut self.responder;
        let InboundMessage::Send { receive, filled } = &mut responder.inbound else {
            return Err(Refusal::INVALID);
        };
        let (at, memory) = (*filled, &mut receive.memory);
        *filled = fill(memory, at, packet.payload, &common.keys, domain)?;
        if info.ends() {
            let (len, id, memory) = (*filled, receive.id, std::mem::take(memory));
            responder.inbound = InboundMessage::Nothing;
            let receive = ReceiveRequest { id, memory };
            let message = ReceivedMessage { done: Done::Received, len, attached, solicited };
            self.complete_receive(receive, message, common);
        }
        Ok(())
    }

    /// Executes a send of one packet, as most are: the message is put into its receive where that
    /// stands in the queue, and is completed at once.
    #[inline(always)]
    pub fn execute_whole_send<P: Payload>(
        &mut self,
        payload: P,
        attached: Attachment,
        solicited: bool,
        common: &mut Common,
    ) -> Result<(), Refusal> {
        let (domain, qpn, r) = (self.domain, self.number(), &mut self.responder);
        let (ring, shared) = match &mut r.receives {
            Receives::Own(ring) => (ring, None),
            Receives::Shared(id) => {
                let shared = common.shared_receives.get_mut(id.place as usize);
                let Some(Some(queue)) = shared else { return Err(Refusal::NotReady) };
                (&mut queue.ring, Some(*id))
            }
        };
        let queue = in_use(&mut common.completions, self.receive_completions);
        let Some(slot) = queue.slot() else { return Err(Refusal::NotReady) };
        let Some(mut receive) = ring.head() else { return Err(Refusal::NotReady) };
        let len = match fill_whole(&mut receive.memory, payload, &common.keys, domain) {
            Ok(len) => len,
            Err(refusal) => {
                // The receive is kept, since the failure may be blamed on it.
                queue.reserve(Purpose::Receive);
                r.kept_receive = Some(receive.take());
                if let Some(id) = shared {
                    common.raise_if_low(id);
                }
                return Err(refusal);
            }
        };
        r.msn = r.msn.add(1);
        if let Attachment::Invalidate(rkey) = attached {
            common.keys.invalidate(rkey);
        }
        receive.move_to(slot, |ReceiveRequest { id, mut memory }| {
            // The length is set only after the receive was moved: the move would wait for a part
            // that was just stored.
            if let Memory::Buf(buf) = &mut memory {
                let _ = buf.set_len(len as usize);
            }
            let outcome = Ok(Done::Received);
            Completion { id, qpn, outcome, len, attached, memory }
        });
        common.counters.completed += 1;
        if queue.filled(solicited) {
            common.settle(self.receive_completions);
        }
        if let Some(id) = shared {
            common.raise_if_low(id);
        }
        Ok(())
    }
}

/// Puts a whole message into a receive, the length of whose buffer is still to be set. Returns how
/// many bytes the message has.
#[inline(always)]
fn fill_whole<P: Payload>(
    memory: &mut Memory,
    payload: P,
    keys: &KeyTable,
    domain: Domain,
) -> Result<u32, Refusal> {
    // For a buffer, the kind of memory need not be asked again.
    let Memory::Buf(buf) = memory else { return fill_segments(memory, payload, keys, domain) };
    let capacity = buf.capacity() as u64;
    let Some(to) = buf.capacity_mut().get_mut(..payload.len()) else {
        return Err(too_long(capacity));
    };
    payload.copy_to(to);
    Ok(payload.len() as u32)
}

/// Puts a whole message into a receive that consists of segments.
#[inline(never)]
fn fill_segments<P: Payload>(
    memory: &mut Memory,
    payload: P,
    keys: &KeyTable,
    domain: Domain,
) -> Result<u32, Refusal> {
    fill(memory, 0, payload, keys, domain)
}

/// Puts a packet's payload behind the bytes of a receive that are filled. Returns how many are
/// filled then.
#[inline]
fn fill<P: Payload>(
    memory: &mut Memory,
    filled: u32,
    payload: P,
    keys: &KeyTable,
    domain: Domain,
) -> Result<u32, Refusal> {
    let room = memory.room();
    let end = u64::from(filled) + payload.len() as u64;
    if end > room.min(LONGEST_MESSAGE.into()) {
        return Err(too_long(room));
    }
    scatter(memory, filled as usize, payload, keys, domain)
        .map_err(|cause| Refusal::Fatal(Nak::RemoteOperation, cause))?;
    Ok(end as u32)
}

/// Refuses a message that is too long for a receive with so much room.
#[cold]
fn too_long(room: u64) -> Refusal {
    let cause = Cause::TooLong { room: u32::try_from(room).unwrap_or(u32::MAX) };
    Refusal::Fatal(Nak::InvalidRequest, cause)
}
