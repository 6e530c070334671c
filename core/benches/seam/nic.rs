//! As much of the NIC as an RDMA write needs, in the shape of the whole: work requests and
//! completions in rings, keys and bounds checked, sequence numbers, coalesced acknowledgements,
//! and every request kept until the peer is known to have it.
//!
//! It recovers from no loss: it counts what a whole NIC would repair, and the seam fails if it
//! finds any.

use doorbell_core::encap::{Full, Path};
use doorbell_core::memory::Region;
use doorbell_core::payload::{Payload, WordBytes};
use doorbell_core::wire::{
    Aeth, Bth, DmaLength, Extensions, Headers, Imm, Malformed, Msn, Opcode, Operation, Packet, Psn,
    Qpn, RemoteAddr, Reth, Rkey, Syndrome, Verdict,
};

use crate::device::{Device, Flow, Inbox, Outbox};

/// Nanoseconds by the device's clock.
pub type Time = u64;

/// Receives that may be posted.
const RECEIVES: usize = 64;
const RETRY_AFTER: Time = 50_000_000;

/// What a program asks of the NIC.
pub struct WorkRequest {
    pub id: u64,
    pub address: RemoteAddr,
    pub rkey: Rkey,
    pub imm: Option<Imm>,
    /// Whether its completion is to be told.
    pub signalled: bool,
    /// Whether somebody waits for this very one.
    pub awaited: bool,
    pub data: Data,
}

/// Where the bytes of a request are.
pub enum Data {
    Inline { bytes: [u8; 16], len: u8 },
    Region { region: Region, offset: u32, len: u32 },
}

/// What became of a request, or what a receive was taken by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Completion {
    pub id: u64,
    pub len: u32,
    pub imm: Option<Imm>,
}

/// Memory that a peer may write, by its key.
pub struct Registration {
    pub rkey: Rkey,
    pub base: RemoteAddr,
    pub region: Region,
}

/// What was dropped, and why.
#[derive(Clone, Copy, Default, Debug)]
pub struct Counters {
    pub received: u64,
    pub malformed: u64,
    pub strangers: u64,
    pub out_of_sequence: u64,
    pub refused: u64,
    pub receiver_not_ready: u64,
    pub acks_sent: u64,
    pub timeouts: u64,
}

impl Counters {
    /// What a lossless run must not have seen.
    pub fn lost(&self) -> u64 {
        self.out_of_sequence + self.refused + self.receiver_not_ready + self.timeouts
    }
}

struct Requester {
    work: rtrb::Consumer<WorkRequest>,
    flight: Flight,
}

/// The requests at the head of the work queue that were sent and are not yet known to be there.
struct Flight {
    peer: Qpn,
    path: Path,
    sent: usize,
    /// The sequence number of the head; with a lossless device, counted likewise.
    first: Psn,
    /// Packets sent since an acknowledgement was last asked for.
    unasked: u32,
    /// The device's ticket of each request, by its sequence number: a power of two of them, as
    /// many as the work queue holds. That is the window, too.
    tickets: Box<[u64]>,
    timer: Timer,
}

/// When to send again what nobody has acknowledged.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Timer {
    Off,
    /// To be set when the clock is next read.
    Started,
    At(Time),
}

struct Responder {
    receives: rtrb::Consumer<u64>,
    expected: Psn,
    completed: Msn,
    unacknowledged: u32,
    ack_due: bool,
    /// After how many packets to acknowledge unasked.
    most_unacknowledged: u32,
}

struct QueuePair {
    number: Qpn,
    /// The flow whose addresses were last found to be the peer's and ours.
    known_flow: u64,
    requester: Requester,
    responder: Responder,
    completions: rtrb::Producer<Completion>,
}

/// The program's ends of a queue pair's rings.
pub struct Rings {
    /// The queue pair that they are of.
    pair: usize,
    work: rtrb::Producer<WorkRequest>,
    receives: rtrb::Producer<u64>,
    completions: rtrb::Consumer<Completion>,
}

impl Rings {
    /// Whether the work queue has room for no further request.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.work.is_full()
    }

    /// Writes a request to the work queue, which must not be full.
    #[inline]
    pub fn post(&mut self, request: WorkRequest) {
        let posted = self.work.push(request).is_ok();
        assert!(posted, "the work queue is full");
    }

    /// Posts a receive, of which there may be [`RECEIVES`].
    #[inline]
    pub fn post_receive(&mut self, id: u64) {
        assert!(self.receives.push(id).is_ok(), "the receive queue is full");
    }

    /// The next completion, if there is one.
    #[inline]
    pub fn poll_completion(&mut self) -> Option<Completion> {
        self.completions.pop().ok()
    }
}

pub struct Nic {
    pairs: Vec<QueuePair>,
    keys: Vec<Registration>,
    /// Whether something may have to be sent: an acknowledgement, or what was posted.
    pub owes: bool,
    pub counters: Counters,
}

impl Nic {
    pub fn new() -> Self {
        Self { pairs: Vec::new(), keys: Vec::new(), owes: false, counters: Counters::default() }
    }

    /// The index of a key stands in its upper bits, as adapters have it.
    pub fn register(&mut self, region: Region, base: RemoteAddr) -> Rkey {
        let rkey = Rkey((self.keys.len() as u32) << 8 | 0x5A);
        self.keys.push(Registration { rkey, base, region });
        rkey
    }

    pub fn connect(&mut self, number: Qpn, peer: Qpn, path: Path, depth: u32) -> Rings {
        let (work, work_out) = rtrb::RingBuffer::new(depth as usize);
        let (receives, receives_out) = rtrb::RingBuffer::new(RECEIVES);
        let (completions_in, completions) = rtrb::RingBuffer::new(2 * depth as usize);
        self.pairs.push(QueuePair {
            number,
            known_flow: 0,
            requester: Requester {
                work: work_out,
                flight: Flight {
                    peer,
                    path,
                    sent: 0,
                    first: Psn::new(0),
                    unasked: 0,
                    tickets: vec![0; depth as usize].into(),
                    timer: Timer::Off,
                },
            },
            responder: Responder {
                receives: receives_out,
                expected: Psn::new(0),
                completed: Msn::new(0),
                unacknowledged: 0,
                ack_due: false,
                most_unacknowledged: depth / 4,
            },
            completions: completions_in,
        });
        Rings { pair: self.pairs.len() - 1, work, receives, completions }
    }

    /// Sends what doorbells announced, then what acknowledgements are due: data first, for it is
    /// waited for.
    #[inline]
    pub fn transmit<D: Device>(&mut self, device: &mut D) {
        self.owes = false;
        for pair in &mut self.pairs {
            pair.send_requests(device);
            if !D::LOSSLESS && pair.responder.ack_due {
                self.counters.acks_sent += u64::from(pair.send_ack(device).is_ok());
            }
        }
        device.flush();
    }

    /// Sends a request while its program has the NIC in hand: straight from where it is, if none
    /// waits before it, and enters it in the work queue afterwards. What follows the frame costs
    /// its receiver nothing.
    #[inline]
    pub fn send_now<D: Device>(&mut self, device: &mut D, rings: &mut Rings, request: WorkRequest) {
        let pair = &mut self.pairs[rings.pair];
        let Requester { work, flight } = &mut pair.requester;
        let sent = work.slots() == flight.sent && flight.send(device, &request).is_ok();
        if sent {
            device.flush();
        }
        rings.post(request);
        if !sent {
            self.transmit(device);
        }
    }

    /// Completes what a lossless device has delivered.
    #[inline]
    pub fn collect<D: Device>(&mut self, device: &mut D) {
        for pair in &mut self.pairs {
            if pair.requester.flight.sent > 0 {
                let count = pair.requester.flight.delivered(device.delivered());
                pair.retire(count);
            }
        }
    }

    /// Sets and looks at the timers. The clock is read for this alone, when there is nothing
    /// better to do.
    pub fn expire(&mut self, now: Time) {
        for pair in &mut self.pairs {
            match pair.requester.flight.timer {
                Timer::Started => pair.requester.flight.timer = Timer::At(now + RETRY_AFTER),
                Timer::At(at) if at <= now => {
                    pair.requester.flight.timer = Timer::Started;
                    self.counters.timeouts += 1;
                }
                Timer::At(_) | Timer::Off => {}
            }
        }
    }
}

impl Inbox for Nic {
    #[inline]
    fn packet<P: Payload>(&mut self, flow: Flow, packet: &Packet<P>) {
        self.counters.received += 1;
        let bth = &packet.headers.bth;
        let index = bth.destination().get() as usize & 0xFF;
        let Some(pair) = self.pairs.get_mut(index) else {
            self.counters.strangers += 1;
            return;
        };
        if pair.number != bth.destination() || !pair.is_between(flow) {
            self.counters.strangers += 1;
            return;
        }
        if bth.opcode().info().is_response() {
            pair.complete(&packet.headers, &mut self.counters);
        } else {
            self.owes |= pair.respond(&self.keys, packet, &mut self.counters);
        }
    }

    fn malformed(&mut self, _: Malformed) {
        self.counters.malformed += 1;
    }
}

impl QueuePair {
    #[inline]
    fn is_between(&mut self, flow: Flow) -> bool {
        match flow {
            Flow::Wire => true,
            Flow::Network(flow, _) if flow == self.known_flow => true,
            Flow::Network(flow, outer) => {
                let (source, destination) = outer.gids();
                let ours = self.requester.flight.path.outer().gids() == (destination, source);
                self.known_flow = if ours { flow } else { self.known_flow };
                ours
            }
        }
    }
}

/// The requester's side.
impl QueuePair {
    /// Sends what stands in the work queue, which itself keeps it until it is acknowledged:
    /// nothing is copied aside.
    #[inline]
    fn send_requests<D: Device>(&mut self, device: &mut D) {
        let Requester { work, flight } = &mut self.requester;
        let waiting = work.slots();
        if waiting == flight.sent {
            return;
        }
        let Ok(chunk) = work.read_chunk(waiting) else { return };
        let (front, back) = chunk.as_slices();
        for index in flight.sent..waiting {
            let request = front.get(index).unwrap_or_else(|| &back[index - front.len()]);
            if flight.send(device, request).is_err() {
                break;
            }
        }
    }

    /// Takes an acknowledgement.
    #[inline]
    fn complete(&mut self, headers: &Headers, counters: &mut Counters) {
        let Extensions::Aeth(aeth) = headers.extensions else { return };
        if !matches!(aeth.syndrome.verdict(), Verdict::Ack(_)) {
            counters.refused += 1;
            return;
        }
        let flight = &self.requester.flight;
        let reached = headers.bth.psn().distance_from(flight.first) + 1;
        // An old acknowledgement repeats what is known; one of the future is a lie.
        if reached > 0 && reached as usize <= flight.sent {
            self.retire(reached as usize);
        }
    }

    #[inline]
    fn retire(&mut self, count: usize) {
        let Ok(chunk) = self.requester.work.read_chunk(count) else { return };
        let (front, back) = chunk.as_slices();
        for request in front.iter().chain(back).filter(|request| request.signalled) {
            let completion = Completion { id: request.id, len: 0, imm: None };
            assert!(self.completions.push(completion).is_ok(), "the program left completions lie");
        }
        chunk.commit_all();
        let flight = &mut self.requester.flight;
        flight.sent -= count;
        flight.first = flight.first.add(count as u32);
        flight.timer = if flight.sent == 0 { Timer::Off } else { Timer::Started };
    }
}

impl Flight {
    #[inline]
    fn slot(&self, index: usize) -> usize {
        self.first.add(index as u32).get() as usize & (self.tickets.len() - 1)
    }

    /// Sends the request that follows those in flight.
    #[inline]
    fn send<D: Device>(&mut self, device: &mut D, request: &WorkRequest) -> Result<(), Full> {
        let psn = self.first.add(self.sent as u32);
        let ask = request.awaited || self.unasked as usize >= self.tickets.len() / 2 - 1;
        let headers = write_headers(request, self.peer, psn, ask && !D::LOSSLESS);
        let ticket = match &request.data {
            Data::Inline { bytes, len } => {
                device.push(&self.path, headers, &bytes[..usize::from(*len)])?
            }
            Data::Region { region, offset, len } => {
                let range = *offset as usize..(*offset + *len) as usize;
                device.push(
                    &self.path,
                    headers,
                    WordBytes::new(region.words(), range).ok_or(Full)?,
                )?
            }
        };
        let slot = self.slot(self.sent);
        self.tickets[slot] = ticket;
        self.sent += 1;
        self.unasked = if ask { 0 } else { self.unasked + 1 };
        if self.timer == Timer::Off {
            self.timer = Timer::Started;
        }
        Ok(())
    }

    /// How many of those in flight a lossless device has delivered.
    #[inline]
    fn delivered(&self, delivered: u64) -> usize {
        let there = |index: usize| self.tickets[self.slot(index)] <= delivered;
        if self.sent == 0 || !there(0) {
            return 0;
        }
        // Tickets rise, so the delivered ones are a prefix.
        let (mut known, mut beyond) = (1, self.sent + 1);
        while beyond - known > 1 {
            let middle = known + (beyond - known) / 2;
            if there(middle - 1) { known = middle } else { beyond = middle }
        }
        known
    }
}

/// The responder's side.
impl QueuePair {
    /// Does as a request says. Whether an acknowledgement is due.
    #[inline]
    fn respond<P: Payload>(
        &mut self,
        keys: &[Registration],
        packet: &Packet<P>,
        counters: &mut Counters,
    ) -> bool {
        let bth = &packet.headers.bth;
        if bth.psn() != self.responder.expected {
            counters.out_of_sequence += 1;
            return false;
        }
        let (reth, imm) = match (bth.opcode().info().operation, packet.headers.extensions) {
            (Operation::Write, Extensions::Reth(reth)) => (reth, None),
            (Operation::Write, Extensions::RethImm(reth, imm)) => (reth, Some(imm)),
            _ => {
                counters.refused += 1;
                return false;
            }
        };
        let Some((region, offset)) = granted(keys, &reth, packet.payload.len()) else {
            counters.refused += 1;
            return false;
        };
        if let Some(imm) = imm {
            let Ok(id) = self.responder.receives.pop() else {
                counters.receiver_not_ready += 1;
                return false;
            };
            packet.payload.copy_to_words(region.words(), offset);
            let completion = Completion { id, len: reth.length.0, imm: Some(imm) };
            assert!(self.completions.push(completion).is_ok(), "the program left completions lie");
        } else {
            packet.payload.copy_to_words(region.words(), offset);
        }
        let responder = &mut self.responder;
        responder.expected = responder.expected.add(1);
        responder.completed = responder.completed.add(1);
        responder.unacknowledged += 1;
        responder.ack_due |=
            bth.ack_request() || responder.unacknowledged >= responder.most_unacknowledged;
        responder.ack_due
    }

    #[inline]
    fn send_ack(&mut self, outbox: &mut impl Outbox) -> Result<(), Full> {
        let last = self.responder.expected.before();
        let aeth = Aeth { syndrome: Syndrome::ACK, msn: self.responder.completed };
        let bth = Bth::new(Opcode::RcAcknowledge, self.requester.flight.peer, last);
        let headers = Headers { bth, extensions: Extensions::Aeth(aeth) };
        outbox.push(&self.requester.flight.path, headers, &[][..])?;
        self.responder.ack_due = false;
        self.responder.unacknowledged = 0;
        Ok(())
    }
}

#[inline]
fn write_headers(request: &WorkRequest, peer: Qpn, psn: Psn, ask: bool) -> Headers {
    let len = match &request.data {
        Data::Inline { len, .. } => u32::from(*len),
        Data::Region { len, .. } => *len,
    };
    let reth = Reth { address: request.address, rkey: request.rkey, length: DmaLength(len) };
    let (opcode, extensions) = match request.imm {
        None => (Opcode::RcWriteOnly, Extensions::Reth(reth)),
        Some(imm) => (Opcode::RcWriteOnlyImmediate, Extensions::RethImm(reth, imm)),
    };
    Headers { bth: Bth::new(opcode, peer, psn).with_ack_request(ask), extensions }
}

/// The memory that a request may write, if its key and bounds allow it.
#[inline]
fn granted<'k>(
    keys: &'k [Registration],
    reth: &Reth,
    payload: usize,
) -> Option<(&'k Region, usize)> {
    let registration = keys.get((reth.rkey.0 >> 8) as usize)?;
    let offset = reth.address.0.checked_sub(registration.base.0)?;
    let end = offset.checked_add(u64::from(reth.length.0))?;
    let fits = end <= registration.region.len() as u64 && payload == reth.length.0 as usize;
    (fits && registration.rkey == reth.rkey).then_some((&registration.region, offset as usize))
}
