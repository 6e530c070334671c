//! Datagrams, the requester's side: each message is a packet to whichever queue pair it names.

use crate::nic::config::queue_pair_state::State;
use crate::nic::device::outbox::Outbox;
use crate::nic::identifiers::AddressId;
use crate::nic::protection::segment::Domain;
use crate::nic::queues::completion_slots::Purpose;
use crate::nic::queues::posted::Posted;
use crate::nic::requests::failure::Cause;
use crate::nic::requests::gather::gather;
use crate::nic::requests::work_request::{Attachment, Operation};
use crate::nic::state::common::Common;
use crate::nic::state::queue_pair::QueuePair;
use crate::nic::state::turns::{NotSent, RequesterTurn};
use crate::wire::{Bth, Deth, Extensions, Headers, Opcode, PathMtu};

impl QueuePair {
    /// Sends the datagram at the cursor.
    #[inline(never)]
    pub fn send_datagram<O: Outbox>(
        &mut self,
        common: &mut Common,
        outbox: &mut O,
    ) -> Result<(), RequesterTurn> {
        let (source, mtu, pkey) = (self.number(), self.mtu, self.pkey);
        let (psn, posted) = self.requester.at_cursor();
        let Some(posted) = posted else { return Err(RequesterTurn::Idle) };
        if self.state == State::Draining {
            return Err(RequesterTurn::Idle);
        }
        let Operation::Datagram { to, qpn, qkey } = posted.request.operation else {
            return Err(RequesterTurn::Idle);
        };
        if !common.reserve(self.send_completions, Purpose::Send) {
            return Err(RequesterTurn::Starved);
        }
        let deth = Deth { qkey, source, reserved: 0 };
        let (opcode, extensions) = match posted.request.attached {
            Attachment::Imm(imm) => (Opcode::UdSendOnlyImmediate, Extensions::DethImm(deth, imm)),
            _ => (Opcode::UdSendOnly, Extensions::Deth(deth)),
        };
        let solicited = posted.request.solicited;
        let bth = Bth::new(opcode, qpn, psn).with_pkey(pkey).with_solicited(solicited);
        let headers = Headers { bth, extensions };
        let sent = push_datagram(common, outbox, self.domain, mtu, to, headers, posted);
        let r = &mut self.requester;
        match sent {
            Ok(ticket) => {
                r.begun += 1;
                r.advance_cursor(1, false, true, ticket, common.now);
                common.counters.sent += 1;
                self.complete_unreliable(true, common);
                Ok(())
            }
            Err(stop) => {
                match stop {
                    // The datagram is the first of the queue, for those before it are complete: it
                    // fails with its slot.
                    NotSent::Invalid(_) => r.begun += 1,
                    NotSent::TurnEnded(_) => common.release(self.send_completions, Purpose::Send),
                }
                Err(self.end_turn(stop, common))
            }
        }
    }
}

/// Gives a datagram to the device.
fn push_datagram<O: Outbox>(
    common: &Common,
    outbox: &mut O,
    domain: Domain,
    mtu: PathMtu,
    to: AddressId,
    headers: Headers,
    posted: &Posted,
) -> Result<u64, NotSent> {
    let most = mtu.bytes();
    if posted.len as usize > most {
        let cause = Cause::LongDatagram { len: posted.len, most: most as u16 };
        return Err(NotSent::Invalid(cause));
    }
    let Some(path) = common.addresses.get(to) else {
        return Err(NotSent::Invalid(Cause::NoAddress));
    };
    let data = &posted.request.data;
    let pushed = match data.bytes() {
        Some(bytes) => outbox.push(path, headers, bytes),
        None => {
            let range = 0..posted.len as usize;
            let payload = gather(&common.keys, domain, data.segments(), range);
            outbox.push(path, headers, payload.map_err(NotSent::Invalid)?)
        }
    };
    pushed.map_err(|_| NotSent::TurnEnded(RequesterTurn::DeviceFull))
}
