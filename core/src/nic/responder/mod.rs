//! The responder: what the peer requests.

mod answer;
mod usual;
mod writes;

use crate::payload::Payload;
use crate::time::{Time, nanos};
use crate::wire::{
    Credits, Extensions, Headers, Msn, Nak, OpcodeInfo, Operation, Packet, Psn, Qpn, RemoteAddr,
    Rkey, RnrTimer, Service, Syndrome, Verdict,
};

use super::common::{Common, in_use};
use super::completion::{Cause, Completion, Done};
use super::gather::scatter;
use super::keys::{Domain, KeyError, Keys};
use super::pair::{Blamed, QueuePair};
use super::queues::Purpose;
use super::reads::Answers;
use super::receives::{Receives, SharedReceiveQueueId};
use super::states::{Connection, State};
use super::work::{Attachment, LONGEST_MESSAGE, Memory, ReceiveRequest};
use crate::planted::{Bug, planted};

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

/// How a turn of answering ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Answered {
    /// Nothing more is owed.
    All,
    /// There is more.
    Some,
    /// The device has no room.
    DeviceFull,
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
    receives: Receives,
    /// A receive that was taken for a message of which the rest did not come: it is for the next.
    /// Its completion has a slot.
    kept: Option<ReceiveRequest>,
    pub expected: Psn,
    pub completed: Msn,
    doing: Doing,
    /// Whether the packet that is expected was refused, and nothing else is until it comes.
    refused: bool,
    /// The packet behind the last that came since then, on a lossless device.
    beyond: Psn,
    pub due: Due,
    /// Packets taken since the last answer, and KiB of them.
    unanswered: u16,
    /// When to look whether the peer has fallen silent; how many packets there were at the look
    /// before, and how many looks there were.
    pub ack_at: Option<Time>,
    looked: u16,
    ack_every: u16,
    looks: u8,
    /// The time between two looks, in nanoseconds.
    between_looks: u64,
    not_ready: RnrTimer,
    credits: bool,
    /// Whether it has offered to take metadata.
    metadata: bool,
    /// What is to be answered by more than an acknowledgement.
    pub answers: Answers,
    /// Whether it is in the list of those that owe their peer an answer.
    pub listed: bool,
    /// Whether it is in the list of those that put an acknowledgement off.
    pub delaying: bool,
    /// Whether the peer is to be asked if it is there.
    pub asks: bool,
}

/// What a receive's completion says of its message.
pub(super) struct Message {
    pub done: Done,
    pub len: u32,
    pub attached: Attachment,
    pub solicited: bool,
}

/// How often to look whether a peer has fallen silent before it is answered in any case.
const MOST_LOOKS: u8 = 16;

/// How a requester is told that its request was taken.
enum Told {
    ByAck,
    ByAnswer,
}

/// Why a request is not taken.
pub(super) enum Refusal {
    NotReady,
    /// For good: what the peer is told, and what is noted here.
    Fatal(Nak, Cause),
}

impl Refusal {
    pub const INVALID: Self = Self::Fatal(Nak::InvalidRequest, Cause::InvalidRequest);

    pub fn access(why: KeyError) -> Self {
        Self::Fatal(Nak::RemoteAccess, Cause::Access(why))
    }

    /// Refuses the access to so many bytes at an address, and logs which.
    #[cold]
    pub fn access_to((address, len): (RemoteAddr, u64), why: KeyError) -> Self {
        tracing::debug!(%why, address = %format_args!("{:#x}", address.0), len, "refused access");
        Self::access(why)
    }
}

impl Responder {
    pub fn new(receives: Receives) -> Self {
        Self {
            receives,
            kept: None,
            expected: Psn::new(0),
            completed: Msn::new(0),
            doing: Doing::Nothing,
            refused: false,
            beyond: Psn::new(0),
            due: Due::Nothing,
            unanswered: 0,
            ack_at: None,
            looked: 0,
            looks: 0,
            ack_every: 1,
            between_looks: 0,
            not_ready: RnrTimer::from_code(0),
            credits: false,
            metadata: false,
            answers: Answers::default(),
            listed: false,
            delaying: false,
            asks: false,
        }
    }

    pub fn start(&mut self, connection: &Connection) {
        self.answers.start(connection.reads);
        self.expected = connection.expected;
        self.completed = Msn::new(0);
        self.ack_every = connection.ack_every.max(1);
        self.between_looks = nanos(connection.ack_delay / u32::from(MOST_LOOKS));
        self.not_ready = connection.not_ready;
        self.credits = connection.credits;
        self.metadata = connection.metadata;
    }

    /// Whether an acknowledgement that nobody asked for is to go: the peer is given one when it
    /// falls silent. As long as it sends, it waits for none, and each would cost both sides a
    /// packet in the midst of that.
    pub fn is_to_acknowledge(&mut self, now: Time) -> bool {
        if self.ack_at.is_none_or(|at| at > now) {
            return false;
        }
        self.looks += 1;
        let goes_on = self.unanswered != self.looked && self.looks < MOST_LOOKS;
        self.looked = self.unanswered;
        self.ack_at = goes_on.then(|| now.after(self.between_looks));
        !goes_on
    }

    pub fn forget(&mut self) {
        self.doing = Doing::Nothing;
        self.refused = false;
        self.unanswered = 0;
        self.ack_at = None;
        self.answers.forget();
        self.asks = false;
    }

    pub fn outstanding(&self) -> usize {
        let unfinished = self.kept.is_some() || matches!(self.doing, Doing::Send { .. });
        self.receives.waiting() + usize::from(unfinished)
    }

    /// The queue that it shares.
    pub fn shared(&self) -> Option<SharedReceiveQueueId> {
        match self.receives {
            Receives::Shared(queue) => Some(queue),
            Receives::Own(_) => None,
        }
    }

    /// Whether its receives come from a queue that others draw from, too.
    pub fn shares(&self) -> bool {
        self.receives.are_shared()
    }

    pub fn is_deserted(&self) -> bool {
        match &self.receives {
            Receives::Own(ring) => ring.is_deserted(),
            Receives::Shared(_) => true,
        }
    }

    pub fn pop_receive(&mut self) -> Option<ReceiveRequest> {
        if planted(Bug::FlushesNoReceives) {
            while self.receives.pop_own().is_some() {}
        }
        self.receives.pop_own()
    }

    /// Keeps a receive that was taken for the next message.
    pub fn keep(&mut self, receive: ReceiveRequest) {
        self.kept = Some(receive);
    }

    /// Drops the message that is being received; what was taken for it is kept for the next.
    pub fn drop_message(&mut self) {
        match std::mem::replace(&mut self.doing, Doing::Nothing) {
            Doing::Send { .. } if planted(Bug::LosesTornReceives) => {}
            Doing::Send { receive, .. } => self.kept = Some(receive),
            Doing::Nothing | Doing::Write { .. } => {}
        }
    }

    /// The receive of a message that did not arrive whole; its completion has a slot.
    pub fn take_unfinished(&mut self) -> Option<ReceiveRequest> {
        self.drop_message();
        self.kept.take()
    }

    /// Counts a packet as taken.
    #[inline]
    fn next(&mut self) {
        self.expected = self.expected.add(1);
        self.refused = false;
        // The refusal of a packet that has since come need not be sent any more.
        if self.due == Due::Nak(Syndrome::not_ready(self.not_ready)) {
            self.due = Due::Ack;
        }
    }

    /// An acknowledgement, and the credit that goes with it.
    pub fn syndrome(&self) -> Syndrome {
        match self.credits && !self.receives.are_shared() {
            true => Syndrome::ack_with(Credits::at_most(self.receives.waiting())),
            false => Syndrome::ACK,
        }
    }
}

impl QueuePair {
    /// Takes a request.
    #[inline(always)]
    pub fn respond<P: Payload>(
        &mut self,
        packet: &Packet<P>,
        info: OpcodeInfo,
        common: &mut Common,
    ) {
        self.judge(packet, info, common);
        self.expect_usual();
    }

    /// Takes it, refuses it or passes it over.
    #[inline(always)]
    fn judge<P: Payload>(&mut self, packet: &Packet<P>, info: OpcodeInfo, common: &mut Common) {
        let bth = packet.headers.bth;
        if self.state != State::ReadyToSend && !self.responds(bth.psn(), common) {
            return;
        }
        let ahead = bth.psn().distance_from(self.responder.expected);
        if ahead != 0 && info.service == Service::Uc {
            if !self.goes_on(bth, ahead, common) {
                return;
            }
        } else if ahead < 0 && !planted(Bug::TakesDuplicates) {
            return self.repeat((packet.headers, info), common);
        } else if ahead > 0 && !planted(Bug::IgnoresGaps) {
            return self.miss((packet.headers, info), common);
        }
        match self.take(packet, info, common) {
            Ok(Told::ByAck) => {
                self.took(packet.payload.len(), bth.ack_request(), info.service, common);
            }
            Ok(Told::ByAnswer) => {
                self.responder.next();
                common.owe_answer(self);
            }
            Err(_) if info.service == Service::Uc && !planted(Bug::BreaksInsteadOfPassingOver) => {
                self.pass_over(bth, common);
            }
            Err(refusal) => self.refuse(refusal, common),
        }
    }

    /// Whether requests are taken in a state that is not the usual one.
    #[cold]
    fn responds(&mut self, psn: Psn, common: &mut Common) -> bool {
        if self.state == State::ReadyToReceive {
            self.meet(common);
        }
        if !self.state.responds() {
            common.counters.wrong_state += 1;
            // Whoever sends on an unreliable connection does not ask what became of it.
            if common.lossless && self.service() == Service::Rc {
                self.disown(psn, common);
            }
        }
        self.state.responds()
    }

    /// Refuses the request that was expected.
    #[cold]
    fn refuse(&mut self, refusal: Refusal, common: &mut Common) {
        match refusal {
            Refusal::NotReady => self.not_ready(common),
            Refusal::Fatal(nak, cause) => {
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

    /// A request came again.
    #[cold]
    fn repeat(&mut self, (headers, info): (Headers, OpcodeInfo), common: &mut Common) {
        common.counters.duplicates += 1;
        if common.lossless {
            return self.disown(headers.bth.psn(), common);
        }
        match info.operation {
            Operation::ReadRequest => self.read_again(headers, common),
            Operation::CompareSwap | Operation::FetchAdd => {
                self.atomic_again(headers, common);
            }
            _ => common.owe(self, Due::Ack),
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
    fn miss(&mut self, (headers, info): (Headers, OpcodeInfo), common: &mut Common) {
        common.counters.out_of_sequence += 1;
        if common.lossless {
            return self.come_too_early(headers, info, common);
        }
        if !self.responder.refused || planted(Bug::RefusesEachPacket) {
            self.responder.refused = true;
            common.counters.sequence_naks_sent += 1;
            common.owe(self, Due::Nak(Syndrome::nak(Nak::SequenceError)));
        }
    }

    /// Where nothing is lost, packets that come too early are what the peer had sent behind a
    /// refused one before it heard of that, each of them the next of the one before; or not the
    /// peer's.
    fn come_too_early(&mut self, headers: Headers, info: OpcodeInfo, common: &mut Common) {
        let (psn, r) = (headers.bth.psn(), &mut self.responder);
        if r.refused && psn == r.beyond {
            // A read takes as many numbers as it asks for packets.
            let reads = info.operation == Operation::ReadRequest;
            r.beyond = psn.add(match headers.extensions {
                Extensions::Reth(reth) if reads => self.mtu.packets(reth.length.0),
                _ => 1,
            });
        } else {
            self.disown(psn, common);
        }
    }

    fn not_ready(&mut self, common: &mut Common) {
        self.responder.refused = true;
        self.responder.beyond = self.responder.expected.add(1);
        common.counters.rnr_naks_sent += 1;
        common.owe(self, Due::Nak(Syndrome::not_ready(self.responder.not_ready)));
    }

    /// Counts a packet as taken, and sees to its acknowledgement.
    #[inline(always)]
    fn took(&mut self, len: usize, asked: bool, service: Service, common: &mut Common) {
        self.responder.next();
        self.owe_acknowledgement(len, asked, service, common);
    }

    /// Sees to the acknowledgement of a packet that was taken.
    #[inline(always)]
    fn owe_acknowledgement(
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

    /// Does as the expected packet says, or nothing at all.
    #[inline(always)]
    fn take<P: Payload>(
        &mut self,
        packet: &Packet<P>,
        info: OpcodeInfo,
        common: &mut Common,
    ) -> Result<Told, Refusal> {
        let right_length = info.payload.allows(packet.payload.len(), self.mtu.bytes());
        if !right_length {
            return Err(Refusal::INVALID);
        }
        match info.operation {
            Operation::Send => self.take_send(packet, info, common)?,
            Operation::Write => self.take_write(packet, common)?,
            _ if !matches!(self.responder.doing, Doing::Nothing) => return Err(Refusal::INVALID),
            Operation::ReadRequest => {
                self.take_read(packet.headers, &common.keys)?;
                return Ok(Told::ByAnswer);
            }
            Operation::CompareSwap | Operation::FetchAdd => {
                self.take_atomic(packet.headers, &common.keys)?;
                return Ok(Told::ByAnswer);
            }
            _ => return Err(Refusal::INVALID),
        }
        Ok(Told::ByAck)
    }

    #[inline(always)]
    fn take_send<P: Payload>(
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
        if info.begins() != matches!(self.responder.doing, Doing::Nothing) {
            return Err(Refusal::INVALID);
        }
        let (domain, solicited) = (self.domain, packet.headers.bth.solicited());
        if info.begins() {
            if planted(Bug::DropsWithoutReceive) && self.responder.receives.waiting() == 0 {
                return Ok(());
            }
            if info.ends() && self.responder.kept.is_none() {
                return self.take_whole(packet.payload, attached, solicited, common);
            }
            let receive = self.take_receive(common)?;
            self.responder.doing = Doing::Send { receive, filled: 0 };
        }
        let responder = &mut self.responder;
        let Doing::Send { receive, filled } = &mut responder.doing else {
            return Err(Refusal::INVALID);
        };
        let (at, memory) = (*filled, &mut receive.memory);
        *filled = fill(memory, at, packet.payload, &common.keys, domain)?;
        if info.ends() {
            let (len, id, memory) = (*filled, receive.id, std::mem::take(memory));
            responder.doing = Doing::Nothing;
            let receive = ReceiveRequest { id, memory };
            let message = Message { done: Done::Received, len, attached, solicited };
            self.complete_receive(receive, message, common);
        }
        Ok(())
    }

    /// Takes a message of one packet, as most are: it is filled in where its receive stands in the
    /// queue, and completed at once.
    #[inline(always)]
    fn take_whole<P: Payload>(
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
                // It is the receive's fault, or may be.
                queue.reserve(Purpose::Receive);
                r.kept = Some(receive.take());
                if let Some(id) = shared {
                    common.tell_low(id);
                }
                return Err(refusal);
            }
        };
        r.completed = r.completed.add(1);
        if let Attachment::Invalidate(rkey) = attached {
            common.keys.invalidate(rkey);
        }
        receive.move_to(slot, |ReceiveRequest { id, mut memory }| {
            // Not before it is moved: what was just stored in a part would be waited for.
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
            common.tell_low(id);
        }
        Ok(())
    }

    /// The receive that the next message takes, with a promise of its completion.
    #[inline]
    pub fn take_receive(&mut self, common: &mut Common) -> Result<ReceiveRequest, Refusal> {
        let r = &mut self.responder;
        match r.kept.take() {
            Some(kept) => Ok(kept),
            None => r.receives.take(self.receive_completions, common),
        }
    }

    /// Completes a receive, whose completion was promised.
    #[inline]
    pub fn complete_receive(
        &mut self,
        receive: ReceiveRequest,
        message: Message,
        common: &mut Common,
    ) {
        let (qpn, queue, solicited) = (self.number(), self.receive_completions, message.solicited);
        let completion = self.responder.completion(receive, message, &mut common.keys, qpn);
        common.succeeded(queue, Purpose::Receive, solicited, completion);
    }
}

impl Responder {
    /// Counts a message as received, and says so.
    #[inline(always)]
    fn completion(
        &mut self,
        receive: ReceiveRequest,
        message: Message,
        keys: &mut Keys,
        qpn: Qpn,
    ) -> Completion {
        self.completed = self.completed.add(1);
        let (ReceiveRequest { id, mut memory }, Message { done, len, attached, .. }) =
            (receive, message);
        if let (Memory::Buf(buf), Done::Received | Done::ReceivedDatagram { .. }) =
            (&mut memory, done)
        {
            // It was filled so far, so there is room.
            let _ = buf.set_len(len as usize);
        }
        if let Attachment::Invalidate(rkey) = attached {
            keys.invalidate(rkey);
        }
        Completion { id, qpn, outcome: Ok(done), len, attached, memory }
    }

    /// Notes that the peer has been told all that there is to tell.
    #[inline]
    pub fn said(&mut self) {
        (self.due, self.unanswered, self.ack_at) = (Due::Nothing, 0, None);
    }
}

/// Puts a message into a receive, of whose buffer the length is still to be set. How long it is.
#[inline(always)]
fn fill_whole<P: Payload>(
    memory: &mut Memory,
    payload: P,
    keys: &Keys,
    domain: Domain,
) -> Result<u32, Refusal> {
    // Of the kind that is known, nothing has to be asked twice.
    let Memory::Buf(buf) = memory else { return fill_segments(memory, (payload, domain), keys) };
    let capacity = buf.capacity() as u64;
    let Some(to) = buf.capacity_mut().get_mut(..payload.len()) else {
        return Err(too_long(capacity));
    };
    payload.copy_to(to);
    Ok(payload.len() as u32)
}

#[inline(never)]
fn fill_segments<P: Payload>(
    memory: &mut Memory,
    (payload, domain): (P, Domain),
    keys: &Keys,
) -> Result<u32, Refusal> {
    fill(memory, 0, payload, keys, domain)
}

/// Puts a packet's payload behind what is filled of a receive. How much is filled then.
#[inline]
fn fill<P: Payload>(
    memory: &mut Memory,
    filled: u32,
    payload: P,
    keys: &Keys,
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

/// A message came that is too long for a receive with so much room.
#[cold]
fn too_long(room: u64) -> Refusal {
    let cause = Cause::TooLong { room: u32::try_from(room).unwrap_or(u32::MAX) };
    Refusal::Fatal(Nak::InvalidRequest, cause)
}
