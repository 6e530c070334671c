//! Packets of sends and writes, as they are given to the device.

use crate::encap::{Full, Path};
use crate::nic::device::outbox::Outbox;
use crate::nic::protection::segment::Domain;
use crate::nic::queues::posted::Posted;
use crate::nic::requester::headers::headers;
use crate::nic::requests::failure::Cause;
use crate::nic::requests::gather::gather;
use crate::nic::requests::plain::Plain;
use crate::nic::requests::work_request::{Attachment, Operation};
use crate::nic::state::common::Common;
use crate::nic::state::requester::Requester;
use crate::nic::state::turns::{NotSent, RequesterTurn};
use crate::payload::Payload;
use crate::wire::{Bth, DmaLength, Extensions, Headers, Opcode, Reth, Service};

/// The shape of a packet as far as it is known when the code that sends it is compiled: how the
/// packet is plain, if it is.
pub(crate) trait Shape {
    const PLAIN: Option<Plain>;
}

/// The shape of a plain write that is one packet.
pub(crate) struct PlainWrite;

/// The shape of a plain read that is one packet.
pub(crate) struct PlainRead;

/// The shape of a plain atomic operation.
pub(crate) struct PlainAtomic;

/// The shape of a packet of which nothing is known when this is compiled.
pub(crate) struct Any;

impl Shape for PlainWrite {
    const PLAIN: Option<Plain> = Some(Plain::Write);
}

impl Shape for PlainRead {
    const PLAIN: Option<Plain> = Some(Plain::Read);
}

impl Shape for PlainAtomic {
    const PLAIN: Option<Plain> = Some(Plain::Atomic);
}

impl Shape for Any {
    const PLAIN: Option<Plain> = None;
}

/// A request that is being sent, with the state that this takes.
#[derive(Clone, Copy)]
pub(crate) struct OutgoingRequest<'a> {
    pub r: &'a Requester,
    pub common: &'a Common,
    pub posted: &'a Posted,
    pub domain: Domain,
}

/// A packet that was given to the device.
pub(crate) struct PushedPacket {
    pub ticket: u64,
    /// Whether the packet asks for an acknowledgement.
    pub asked: bool,
    /// Whether the packet is the last of its message.
    pub ends: bool,
}

impl Requester {
    /// Whether the packet at the cursor is to ask for an acknowledgement; `ends` says whether it is
    /// the last of its message.
    #[inline(always)]
    fn asks_for_acknowledgement(&self, awaited: bool, takes_receive: bool, ends: bool) -> bool {
        ends && (awaited || self.policy.ask_each || self.next_psn != self.unsent_psn)
            || self.unasked + 1 >= self.open_window.div_ceil(2)
            || ends && takes_receive && self.exhausts_credit(self.cursor)
            || ends && self.requests_until_full(self.cursor) == 0
    }
}

/// Gives the part of a request with `len` bytes from `offset` on to the device, as one packet.
#[inline(always)]
pub(crate) fn push<S: Shape, O: Outbox>(
    request: OutgoingRequest<'_>,
    offset: u32,
    len: u32,
    path: &Path,
    service: Service,
    bth: Bth,
    outbox: &mut O,
) -> Result<PushedPacket, NotSent> {
    let OutgoingRequest { r, common, posted, domain } = request;
    let (request, data) = (&posted.request, &posted.request.data);
    let range = offset as usize..(offset + len) as usize;
    let ends = S::PLAIN.is_some() || offset + len == posted.len;
    // A long write that is split into several may count as many messages, and is worth an
    // acknowledgement anyway.
    let takes_receive = S::PLAIN != Some(Plain::Write) && (request.takes_receive() || offset > 0);
    let asked = !common.lossless
        && service == Service::Rc
        && r.asks_for_acknowledgement(request.awaited, takes_receive, ends);
    let bth = bth.with_ack_request(asked).with_solicited(ends && request.solicited);
    let pushed = match (S::PLAIN, request.operation, data.bytes()) {
        (Some(Plain::Write), Operation::Write { address, rkey }, Some(bytes)) => {
            let reth = Reth { address, rkey, length: DmaLength(posted.len) };
            let bth = bth.with_opcode(Opcode::RcWriteOnly);
            outbox.push(path, Headers { bth, extensions: Extensions::Reth(reth) }, bytes)
        }
        (_, _, bytes) => {
            let splits = common.splits_write(request, service);
            let (mut opcode, extensions) = headers(posted, offset, len, splits);
            if service == Service::Uc {
                opcode = opcode.unreliable().unwrap_or(opcode);
            }
            if let Attachment::Metadata(_) = request.attached
                && !r.policy.metadata
            {
                return Err(NotSent::Invalid(Cause::NoMetadata));
            }
            let headers = Headers { bth: bth.with_opcode(opcode), extensions };
            match bytes {
                Some(bytes) => outbox.push(path, headers, &bytes[range]),
                None => {
                    let payload = gather(&common.keys, domain, data.segments(), range);
                    push_gathered(outbox, path, headers, payload.map_err(NotSent::Invalid)?)
                }
            }
        }
    };
    match pushed {
        Ok(ticket) => Ok(PushedPacket { ticket, asked, ends }),
        Err(Full) => Err(NotSent::TurnEnded(RequesterTurn::DeviceFull)),
    }
}

/// Gives a packet to the device whose payload is gathered from registered memory. This is a
/// function of its own, so that the path of payloads in one piece stays short.
#[inline(never)]
fn push_gathered<O: Outbox>(
    outbox: &mut O,
    path: &Path,
    headers: Headers,
    payload: impl Payload,
) -> Result<u64, Full> {
    outbox.push(path, headers, payload)
}
