//! The responder: what the peer requests.

use std::time::Duration;

use crate::payload::Payload;
use crate::time::Time;
use crate::wire::{
    Aeth, Bth, Credits, Extensions, Headers, Imm, Msn, Nak, Opcode, Operation, Packet, Psn,
    RemoteAddr, Reth, Rkey, RnrTimer, Service, Syndrome, Verdict,
};

use super::common::{Common, in_use};
use super::completion::{Cause, Completion, Done};
use super::device::Outbox;
use super::gather::{allowed, pieces};
use super::keys::{KeyError, Keys, Rights};
use super::pair::{Blamed, QueuePair};
use super::planted::{Bug, planted};
use super::queues::{Completions, Purpose};
use super::ring::Consumer;
use super::states::Connection;
use super::work::{LONGEST_MESSAGE, Memory, ReceiveRequest};

/// What is owed to the peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Due {
    Nothing,
    /// An acknowledgement of everything taken.
    Ack,
    /// A refusal of the packet that is expected, which acknowledges all before it.
    Nak(Syndrome),
}

impl Due {
    /// Whether it refuses for good.
    pub fn is_fatal(self) -> bool {
        let Self::Nak(syndrome) = self else { return false };
        matches!(syndrome.verdict(), Verdict::Nak(nak) if nak != Nak::SequenceError)
    }
}

/// The message that is being received.
enum Doing {
    Nothing,
    /// A send, and how much of it is there.
    Send {
        receive: ReceiveRequest,
        filled: u32,
    },
    /// A write: where the next packet goes, and how much is to come.
    Write {
        address: RemoteAddr,
        rkey: Rkey,
        left: u32,
        total: u32,
    },
}

pub(super) struct Responder {
    receives: Consumer<ReceiveRequest>,
    expected: Psn,
    completed: Msn,
    doing: Doing,
    /// Whether the packet that is expected was refused, and nothing else is until it comes.
    refused: bool,
    /// The packet behind the last that came since then, on a lossless device.
    beyond: Psn,
    pub due: Due,
    /// Packets taken since the last answer.
    unanswered: u32,
    pub ack_at: Option<Time>,
    ack_every: u32,
    ack_delay: Duration,
    not_ready: RnrTimer,
    credits: bool,
}

/// Why a request is not taken.
enum Refusal {
    NotReady,
    /// For good: what the peer is told, and what is noted here.
    Fatal(Nak, Cause),
}

impl Refusal {
    const INVALID: Self = Self::Fatal(Nak::InvalidRequest, Cause::InvalidRequest);

    fn access(why: KeyError) -> Self {
        Self::Fatal(Nak::RemoteAccess, Cause::Access(why))
    }
}

impl Responder {
    pub fn new(receives: Consumer<ReceiveRequest>) -> Self {
        Self {
            receives,
            expected: Psn::new(0),
            completed: Msn::new(0),
            doing: Doing::Nothing,
            refused: false,
            beyond: Psn::new(0),
            due: Due::Nothing,
            unanswered: 0,
            ack_at: None,
            ack_every: 1,
            ack_delay: Duration::ZERO,
            not_ready: RnrTimer::from_code(0),
            credits: false,
        }
    }

    pub fn start(&mut self, connection: &Connection) {
        self.expected = connection.expected;
        self.completed = Msn::new(0);
        self.ack_every = connection.ack_every.max(1);
        self.ack_delay = connection.ack_delay;
        self.not_ready = connection.not_ready;
        self.credits = connection.credits;
    }

    pub fn forget(&mut self) {
        self.doing = Doing::Nothing;
        self.refused = false;
        self.unanswered = 0;
        self.ack_at = None;
    }

    pub fn outstanding(&self) -> usize {
        self.receives.waiting() + usize::from(matches!(self.doing, Doing::Send { .. }))
    }

    pub fn is_deserted(&self) -> bool {
        self.receives.is_deserted()
    }

    /// The packet that is taken next.
    pub fn expected(&self) -> Psn {
        self.expected
    }

    pub fn pop_receive(&mut self) -> Option<ReceiveRequest> {
        if planted(Bug::FlushesNoReceives) {
            while self.receives.pop().is_some() {}
        }
        self.receives.pop()
    }

    /// The receive of a message that did not arrive whole; its completion has a slot.
    pub fn take_unfinished(&mut self) -> Option<ReceiveRequest> {
        match std::mem::replace(&mut self.doing, Doing::Nothing) {
            Doing::Send { receive, .. } => Some(receive),
            Doing::Nothing | Doing::Write { .. } => None,
        }
    }

    /// The number of the message that is being received, and the credit that goes with it.
    fn syndrome(&self) -> Syndrome {
        match self.credits {
            true => Syndrome::ack_with(Credits::at_most(self.receives.waiting())),
            false => Syndrome::ACK,
        }
    }
}

/// Takes a receive from the queue, and promises it a completion.
#[inline]
fn take_receive(
    receives: &mut Consumer<ReceiveRequest>,
    completions: &mut Completions,
) -> Result<ReceiveRequest, Refusal> {
    if !completions.reserve(Purpose::Receive) {
        return Err(Refusal::NotReady);
    }
    receives.pop().ok_or_else(|| {
        completions.release(Purpose::Receive);
        Refusal::NotReady
    })
}

impl QueuePair {
    /// Takes a request.
    #[inline]
    pub fn respond<P: Payload>(&mut self, packet: &Packet<P>, common: &mut Common) {
        if !self.state.responds() {
            common.counters.wrong_state += 1;
            if common.lossless {
                self.disown(packet.headers.bth.psn(), common);
            }
            return;
        }
        let bth = &packet.headers.bth;
        let ahead = bth.psn().distance_from(self.responder.expected);
        if ahead < 0 && !planted(Bug::TakesDuplicates) {
            common.counters.duplicates += 1;
            if common.lossless {
                return self.disown(bth.psn(), common);
            }
            return common.owe(self, Due::Ack);
        }
        if ahead > 0 && !planted(Bug::IgnoresGaps) {
            return self.miss(bth.psn(), common);
        }
        match self.take(packet, common) {
            Ok(()) => self.took(bth.ack_request(), common),
            Err(Refusal::NotReady) => self.not_ready(common),
            Err(Refusal::Fatal(nak, cause)) => {
                common.counters.fatal_naks_sent += 1;
                common.owe(self, Due::Nak(Syndrome::nak(nak)));
                let blamed = match cause {
                    Cause::TooLong { .. } | Cause::LocalProtection { .. } => Blamed::Receive,
                    _ => Blamed::Nothing,
                };
                self.break_with(cause, blamed, common);
            }
        }
    }

    /// Refuses a packet that a device which can't lose has delivered, and that is not taken: its
    /// sender would take it for done. If it is the one that is expected, who sent it has it under
    /// way, and understands a refusal of that. Any other is of a connection that is no more, for on
    /// such a device nothing comes twice or out of turn: its sender has to be found by its link.
    #[cold]
    fn disown(&mut self, psn: Psn, common: &mut Common) {
        if psn == self.responder.expected {
            common.owe(self, Due::Nak(Syndrome::nak(Nak::RemoteOperation)));
        } else if let Some(path) = &self.path {
            common.notify(path.id(), self.shared.qpn, psn);
        }
    }

    /// A packet came from beyond a gap.
    #[cold]
    fn miss(&mut self, psn: Psn, common: &mut Common) {
        common.counters.out_of_sequence += 1;
        if common.lossless {
            return self.come_too_early(psn, common);
        }
        if !self.responder.refused || planted(Bug::RefusesEachPacket) {
            self.responder.refused = true;
            common.counters.sequence_naks_sent += 1;
            common.owe(self, Due::Nak(Syndrome::nak(Nak::SequenceError)));
        }
    }

    /// Where nothing is lost, packets that come too early are what the peer had sent behind a refused
    /// one before it heard of that, each of them the next of the one before; or not the peer's.
    fn come_too_early(&mut self, psn: Psn, common: &mut Common) {
        let r = &mut self.responder;
        if r.refused && psn == r.beyond {
            r.beyond = psn.add(1);
        } else {
            self.disown(psn, common);
        }
    }

    #[cold]
    fn not_ready(&mut self, common: &mut Common) {
        self.responder.refused = true;
        self.responder.beyond = self.responder.expected.add(1);
        common.counters.rnr_naks_sent += 1;
        common.owe(self, Due::Nak(Syndrome::not_ready(self.responder.not_ready)));
    }

    /// Counts a packet as taken, and sees to its acknowledgement.
    #[inline]
    fn took(&mut self, asked: bool, common: &mut Common) {
        let r = &mut self.responder;
        r.expected = r.expected.add(1);
        r.refused = false;
        // The refusal of a packet that has since come need not be sent any more.
        if r.due == Due::Nak(Syndrome::not_ready(r.not_ready)) {
            r.due = Due::Ack;
        }
        if common.lossless {
            return;
        }
        r.unanswered += 1;
        if asked || r.unanswered >= r.ack_every {
            common.owe(self, Due::Ack);
        } else if r.ack_at.is_none() {
            let at = common.now + r.ack_delay;
            r.ack_at = Some(at);
            self.arm_by(at, common);
        }
    }

    /// Does as the expected packet says, or nothing at all.
    #[inline]
    fn take<P: Payload>(&mut self, packet: &Packet<P>, common: &mut Common) -> Result<(), Refusal> {
        let info = packet.headers.bth.opcode().info();
        let right_length = info.payload.allows(packet.payload.len(), self.mtu.bytes());
        if info.service != Service::Rc || !right_length {
            return Err(Refusal::INVALID);
        }
        match info.operation {
            Operation::Send => self.take_send(packet, common),
            Operation::Write => self.take_write(packet, common),
            // Neither reads nor atomics are offered yet.
            _ => Err(Refusal::INVALID),
        }
    }

    #[inline]
    fn take_send<P: Payload>(
        &mut self,
        packet: &Packet<P>,
        common: &mut Common,
    ) -> Result<(), Refusal> {
        let info = packet.headers.bth.opcode().info();
        let imm = match packet.headers.extensions {
            Extensions::None => None,
            Extensions::Imm(imm) => Some(imm),
            _ => return Err(Refusal::INVALID),
        };
        if info.begins() != matches!(self.responder.doing, Doing::Nothing) {
            return Err(Refusal::INVALID);
        }
        let (mut receive, filled) = match info.begins() {
            true if planted(Bug::DropsWithoutReceive) && self.responder.receives.waiting() == 0 => {
                return Ok(());
            }
            true => {
                let queue = in_use(&mut common.completions, self.receive_completions);
                (take_receive(&mut self.responder.receives, queue)?, 0)
            }
            false => match std::mem::replace(&mut self.responder.doing, Doing::Nothing) {
                Doing::Send { receive, filled } => (receive, filled),
                other => {
                    self.responder.doing = other;
                    return Err(Refusal::INVALID);
                }
            },
        };
        let put = self.put(&mut receive.memory, filled, packet.payload, &common.keys);
        let filled = match put {
            Ok(filled) => filled,
            Err(refusal) => {
                self.responder.doing = Doing::Send { receive, filled };
                return Err(refusal);
            }
        };
        if info.ends() {
            let solicited = packet.headers.bth.solicited();
            self.complete_receive(receive, Done::Received, filled, imm, solicited, common);
        } else {
            self.responder.doing = Doing::Send { receive, filled };
        }
        Ok(())
    }

    /// Puts a packet's payload behind what is filled of a receive. How much is filled then.
    #[inline]
    fn put<P: Payload>(
        &self,
        memory: &mut Memory,
        filled: u32,
        payload: P,
        keys: &Keys,
    ) -> Result<u32, Refusal> {
        let (room, at, len) = (memory.room(), filled as usize, payload.len());
        let end = u64::from(filled) + len as u64;
        if end > room.min(LONGEST_MESSAGE.into()) {
            let cause = Cause::TooLong { room: u32::try_from(room).unwrap_or(u32::MAX) };
            return Err(Refusal::Fatal(Nak::InvalidRequest, cause));
        }
        if let Memory::Buf(buf) = memory {
            payload.copy_to(&mut buf.capacity_mut()[at..at + len]);
            return Ok(end as u32);
        }
        self.scatter(memory, at, payload, keys)?;
        Ok(end as u32)
    }

    fn scatter<P: Payload>(
        &self,
        memory: &Memory,
        at: usize,
        payload: P,
        keys: &Keys,
    ) -> Result<(), Refusal> {
        let segments = memory.segments();
        let place = |index: usize| {
            allowed(keys, self.domain, index, &segments[index], Rights::LOCAL_WRITE)
                .map_err(|cause| Refusal::Fatal(Nak::RemoteOperation, cause))
        };
        // All or nothing: each segment is looked at before a byte is written.
        for index in 0..segments.len() {
            place(index)?;
        }
        pieces(segments, at, payload.len(), |index, from, count, done| {
            if let Ok((region, start)) = place(index) {
                payload.part(done, count).copy_to_words(region.words(), start + from);
            }
        });
        Ok(())
    }

    #[inline]
    fn take_write<P: Payload>(
        &mut self,
        packet: &Packet<P>,
        common: &mut Common,
    ) -> Result<(), Refusal> {
        let info = packet.headers.bth.opcode().info();
        let (reth, imm) = match packet.headers.extensions {
            Extensions::Reth(reth) => (Some(reth), None),
            Extensions::RethImm(reth, imm) => (Some(reth), Some(imm)),
            Extensions::Imm(imm) => (None, Some(imm)),
            _ => (None, None),
        };
        let write = match (reth, &self.responder.doing) {
            (Some(reth), Doing::Nothing) => self.begin_write(reth, &common.keys)?,
            (None, &Doing::Write { address, rkey, left, total }) => (address, rkey, left, total),
            _ => return Err(Refusal::INVALID),
        };
        let (mut address, rkey, left, total) = write;
        let len = packet.payload.len() as u32;
        if if info.ends() { len != left } else { len >= left } {
            return Err(Refusal::INVALID);
        }
        if planted(Bug::MisplacesTheLastPacket) && reth.is_none() && info.ends() {
            address = RemoteAddr(address.0 - u64::from(len));
        }
        // Key and bounds are looked at with every packet: the key may have been revoked since.
        let place = (len > 0).then(|| {
            let needed = Rights::REMOTE_WRITE;
            common.keys.remote(self.domain, rkey, needed, address, u64::from(len))
        });
        let place = place.transpose().map_err(Refusal::access)?;
        // Nothing is written before the receive is there that the completion takes, and none is
        // taken for what may not be written.
        let receive = match imm {
            Some(imm) => {
                let receives = &mut self.responder.receives;
                let queue = in_use(&mut common.completions, self.receive_completions);
                Some((take_receive(receives, queue)?, imm))
            }
            None => None,
        };
        if let Some((region, start)) = place {
            packet.payload.copy_to_words(region.words(), start);
        }
        self.responder.doing = match info.ends() {
            true => Doing::Nothing,
            false => {
                let address = RemoteAddr(address.0 + u64::from(len));
                Doing::Write { address, rkey, left: left - len, total }
            }
        };
        if let Some((receive, imm)) = receive {
            let solicited = packet.headers.bth.solicited();
            let done = Done::ReceivedWrite;
            self.complete_receive(receive, done, total, Some(imm), solicited, common);
        } else if info.ends() {
            self.responder.completed = self.responder.completed.add(1);
        }
        Ok(())
    }

    /// Whether the whole of a write is allowed: where it begins, and how long it is.
    #[inline]
    fn begin_write(
        &self,
        reth: Reth,
        keys: &Keys,
    ) -> Result<(RemoteAddr, Rkey, u32, u32), Refusal> {
        let Reth { address, rkey, length } = reth;
        if length.0 > LONGEST_MESSAGE {
            return Err(Refusal::INVALID);
        }
        // A write of nothing touches no memory, and its key is not looked at.
        if length.0 > 0 {
            if !self.rights.include(Rights::REMOTE_WRITE) {
                return Err(Refusal::access(KeyError::Rights(rkey.0)));
            }
            keys.remote(self.domain, rkey, Rights::REMOTE_WRITE, address, u64::from(length.0))
                .map_err(Refusal::access)?;
        }
        Ok((address, rkey, length.0, length.0))
    }

    #[inline]
    fn complete_receive(
        &mut self,
        receive: ReceiveRequest,
        done: Done,
        len: u32,
        imm: Option<Imm>,
        solicited: bool,
        common: &mut Common,
    ) {
        self.responder.completed = self.responder.completed.add(1);
        let ReceiveRequest { id, mut memory } = receive;
        if let (Memory::Buf(buf), Done::Received) = (&mut memory, done) {
            // It was filled so far, so there is room.
            let _ = buf.set_len(len as usize);
        }
        let (qpn, queue) = (self.number(), self.receive_completions);
        let completion = Completion { id, qpn, outcome: Ok(done), len, imm, memory };
        common.complete_with(queue, completion, Purpose::Receive, solicited);
    }

    /// Sends the answer that is owed. Whether the device took it.
    #[inline]
    pub fn answer<O: Outbox>(&mut self, common: &mut Common, outbox: &mut O) -> bool {
        let r = &mut self.responder;
        let Some(path) = &self.path else {
            r.due = Due::Nothing;
            return true;
        };
        let (psn, syndrome) = match r.due {
            Due::Nothing => return true,
            Due::Ack if planted(Bug::AcknowledgesAhead) => (r.expected, r.syndrome()),
            Due::Ack => (r.expected.add(Psn::MAX.get()), r.syndrome()),
            Due::Nak(syndrome) => (r.expected, syndrome),
        };
        let bth = Bth::new(Opcode::RcAcknowledge, self.peer, psn).with_pkey(self.pkey);
        let aeth = Aeth { syndrome, msn: r.completed };
        let headers = Headers { bth, extensions: Extensions::Aeth(aeth) };
        if outbox.push(path, headers, &[][..]).is_err() {
            return false;
        }
        common.counters.sent += 1;
        common.counters.acks_sent += u64::from(r.due == Due::Ack);
        (r.due, r.unanswered, r.ack_at) = (Due::Nothing, 0, None);
        true
    }
}
