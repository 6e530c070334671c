//! A NIC of ours in the place of one end of a recorded exchange.
//!
//! It is given what the other end was recorded to send, in order, and does what this end's program
//! must have done: posts the requests that became the recorded ones, and the receives that the
//! recorded answers show to have been there. What it sends is kept, to be compared.
//!
//! Time stands still, so that nothing is sent for want of an answer, but where the peer asked to
//! be given time.

use std::time::Duration;

use doorbell_core::encap::{Full, ICRC_LEN, Opener, Outer, Path, PathId, Run};
use doorbell_core::memory::{Buf, Region};
use doorbell_core::nic::*;
use doorbell_core::payload::Payload;
use doorbell_core::time::Time;
use doorbell_core::wire::{
    AtomicEth, Bth, Extensions, Headers, IpId, Opcode, Pkey, Psn, Qkey, Qpn, Service, Verdict,
};

use crate::golden::managed::Managed;
use crate::golden::memory::{BadKey, Memory as Registered};
use crate::golden::recording::{Exchange, Fate, Message, Recorded, deth, frame};

/// What the capture does not tell, and a NIC's answers must not depend on.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    pub bad_key: BadKey,
    pub bad_receive: BadReceive,
    pub turns: Turns,
}

/// How often the NIC has its turn, and with it the occasion to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turns {
    /// With each packet.
    EachPacket,
    /// When the other end falls silent: one acknowledgement then does for several messages.
    EachBurst,
}

/// Why a send may have been refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadReceive {
    /// Its receive was a byte too short.
    TooShort,
    /// Its receive was of memory whose registration was taken back while it came.
    Revoked,
}

/// What the device here gives every frame.
pub const IDENTIFICATION: IpId = IpId(0);

/// What a NIC sends, as frames.
#[derive(Default)]
struct Frames(Vec<Vec<u8>>);

impl Outbox for Frames {
    fn push(&mut self, path: &Path, headers: Headers, payload: impl Payload) -> Result<u64, Full> {
        let room = Outer::MAX_LEN + headers.len() + payload.len() + 3 + ICRC_LEN;
        let mut frame = vec![0; room];
        let mut run = Run::begin(path, &mut frame, IDENTIFICATION, 1);
        run.push(path, &mut frame, headers, payload)?;
        let sealed = run.seal(&mut frame);
        frame.truncate(sealed.len);
        self.0.push(frame);
        Ok(0)
    }

    fn flush(&mut self) {}

    fn delivered(&mut self, _: PathId) -> u64 {
        unreachable!("frames can be lost")
    }
}

pub struct StandIn<'a> {
    exchange: &'a Exchange,
    /// Which end it stands for.
    end: usize,
    reading: Reading,
    nic: Nic,
    frames: Frames,
    arriving: Opener,
    leaving: Opener,
    domain: Domain,
    pub ends: QueuePairEnds,
    /// The way to the other end, for datagrams.
    to: AddressId,
    /// What makes and ends its connection, if that was recorded.
    pub managed: Option<Managed>,
    /// The completions of requests, and of receives.
    pub done: CompletionQueue,
    pub received: CompletionQueue,
    pub registered: Registered,
    /// What this end asks, and what the other does.
    pub ours: Vec<Message>,
    pub theirs: Vec<Message>,
    now: Time,
    /// The key that is taken back when a message comes that was refused.
    to_revoke: Option<Lkey>,
    /// How long the peer asked to be given, the last time.
    wait: Option<Duration>,
    /// What it has sent so far.
    pub sent: Vec<Recorded>,
}

impl<'a> StandIn<'a> {
    pub fn new(
        exchanges: &[Exchange],
        exchange: &'a Exchange,
        end: usize,
        reading: Reading,
    ) -> Self {
        let mut nic = Nic::new(Config::default(), Seed::from_number(1)).unwrap();
        let domain = nic.domain();
        let (ours, theirs) = (exchange.messages(end), exchange.messages(1 - end));
        let (send_completions, done) = nic.completion_queue(ours.len() + 1).unwrap();
        let (receive_completions, received) = nic.completion_queue(theirs.len() + 1).unwrap();
        let config = QueuePairConfig {
            transport: match exchange.service {
                Service::Ud => Transport::Datagram,
                Service::Uc => Transport::Unreliable,
                _ => Transport::Reliable,
            },
            receive_completions,
            send_depth: ours.len().max(1),
            receive_depth: theirs.len().max(1),
            ..QueuePairConfig::new(domain, send_completions)
        };
        let ends = nic.queue_pair(&config).unwrap();
        let to = nic.address(path(exchange, end)).unwrap();
        let station = exchange.ends[end].station;
        let registered = Registered::new(exchanges, station, reading.bad_key, &mut nic, domain);
        let managed = exchange
            .transaction
            .is_some()
            .then(|| Managed::new(exchange, end, ends.qpn, path(exchange, end)));
        if managed.is_none() {
            for change in changes(exchange, end, &ours, &theirs) {
                nic.change(ends.qpn, change).unwrap();
            }
        }
        Self {
            exchange,
            end,
            reading,
            nic,
            frames: Frames::default(),
            arriving: Opener::default(),
            leaving: Opener::default(),
            domain,
            ends,
            to,
            managed,
            done,
            received,
            registered,
            ours,
            theirs,
            now: Time::ZERO,
            to_revoke: None,
            wait: None,
            sent: Vec::new(),
        }
    }

    /// Goes through the whole exchange.
    pub fn replay(&mut self) -> Result<(), String> {
        let exchange = self.exchange;
        for (at, packet) in exchange.packets.iter().enumerate() {
            match (packet.from == self.end, packet.is_request()) {
                _ if packet.is_management() => self.manage(packet)?,
                (true, true) => self.request(at)?,
                (true, false) => {}
                (false, true) => self.respond(at, packet),
                (false, false) => self.hear(packet),
            }
            let next = exchange.packets.get(at + 1);
            let ends = next.is_none_or(|next| next.from != packet.from);
            if ends || self.reading.turns == Turns::EachPacket {
                self.transmit()?;
            }
        }
        Ok(())
    }

    /// Has the program beside the manager do what led to a datagram, or what one leads to.
    fn manage(&mut self, datagram: &Recorded) -> Result<(), String> {
        let managed = self.managed.as_mut().ok_or("nobody manages this connection")?;
        if datagram.from == self.end {
            return managed.speak(datagram, &mut self.nic);
        }
        let Recorded { outer, headers, payload, .. } = managed.renamed(datagram);
        receive_frame(&mut self.nic, &mut self.arriving, &frame(&outer, headers, &payload), None);
        managed.listen(&mut self.nic)
    }

    /// Whether its connection was ended, if it was made by a manager.
    pub fn check_end(&mut self) -> Result<(), String> {
        let Self { managed, nic, ends, .. } = self;
        managed.as_mut().map_or(Ok(()), |managed| managed.check_end(nic, ends))
    }

    /// Whether every packet was for it, and what it waited for came.
    pub fn check_counters(&self) -> Result<(), String> {
        let counters = self.nic.counters();
        let &Counters { received, malformed, no_such_queue_pair, strangers, .. } = counters;
        let &Counters { other_partition, wrong_service, wrong_state, .. } = counters;
        let &Counters { wrong_qkey, passed_over, .. } = counters;
        let &Counters { stray_answers, timeouts, duplicates, out_of_sequence, .. } = counters;
        let amiss = malformed + no_such_queue_pair + strangers + other_partition + wrong_service;
        let amiss = amiss + wrong_state + wrong_qkey + passed_over + stray_answers;
        let amiss = amiss + timeouts + duplicates + out_of_sequence;
        let given = self.exchange.packets.iter().filter(|packet| packet.from != self.end).count();
        match (received, amiss) == (given as u64, 0) {
            true => Ok(()),
            false => Err(format!("given {given} packets, it counts {counters:#?}")),
        }
    }

    /// Posts what became the request recorded here, if it is a new one; or waits until it is sent
    /// again, as the peer has asked.
    fn request(&mut self, at: usize) -> Result<(), String> {
        if let Some((id, message)) = numbered(&self.ours).find(|(_, message)| message.at == at) {
            let request = request(id, message, self.to);
            self.ends.send.post(request).map_err(|refused| refused.to_string())?;
            self.ends.send.ring();
        } else if let Some(wait) = self.wait.take() {
            let (before, end) = (self.sent.len(), self.now + wait);
            self.advance(self.now + (wait - Duration::from_nanos(1)))?;
            if self.sent.len() != before {
                return Err(format!("it did not wait for {wait:?}"));
            }
            // Its clock is coarse: it may wait a little longer.
            let at = self.nic.next_timeout().filter(|at| at.since(end) < wait);
            self.advance(at.ok_or("it waits for ever")?)?;
        }
        Ok(())
    }

    fn advance(&mut self, to: Time) -> Result<(), String> {
        self.now = to;
        self.nic.advance(to);
        self.transmit()
    }

    /// Takes a request of the peer's, having done what this end's program did before.
    fn respond(&mut self, at: usize, packet: &Recorded) {
        let psn = packet.psn();
        let message = numbered(&self.theirs).find(|(_, message)| message.has(psn));
        let (id, message) = message.expect("every request is of a message");
        // A send takes its receive with its first packet, a write with its last.
        let takes_at = if message.is_send() { message.first } else { message.last };
        if message.takes_receive() && psn == takes_at && !self.refused_for_now(at, psn) {
            let memory = self.receive(id as usize);
            self.ends.receive.post(ReceiveRequest { id, memory }).expect("room for receives");
        }
        let (message, registered) = (&self.theirs[id as usize], &mut self.registered);
        if let Fate::Refused { at, .. } = message.fate
            && at == psn
            && let Some(lkey) = self.to_revoke.take()
        {
            self.nic.deregister(lkey).expect("it was registered");
        }
        if psn == message.first {
            registered.prepare(message);
        }
        let extensions = registered.translate(packet.headers.extensions);
        if psn == message.last || message.asks() {
            registered.changed_by(message);
        }
        self.take(packet, extensions);
    }

    /// Whether this request was answered by asking for time.
    fn refused_for_now(&self, at: usize, psn: Psn) -> bool {
        let mut later = self.exchange.packets[at..].iter();
        let answer = later.find(|packet| {
            let covers = packet.psn().distance_from(psn) >= 0;
            packet.from == self.end && !packet.is_request() && covers
        });
        let verdict = answer.filter(|answer| answer.psn() == psn).and_then(Recorded::verdict);
        matches!(verdict, Some(Verdict::ReceiverNotReady(_)))
    }

    /// A receive for a message: as long as it, or bad, if it was refused. Of a write, it is not
    /// filled.
    fn receive(&mut self, id: usize) -> Memory {
        let (message, mtu) = (&self.theirs[id], self.exchange.mtu.bytes());
        if !message.is_send() {
            return Memory::None;
        }
        let len = message.in_front.len() + message.content.len();
        let Fate::Refused { at, .. } = message.fate else { return Buf::with_capacity(len).into() };
        // What the packets before it brought was taken.
        let taken = at.distance_from(message.first) as usize * mtu;
        match self.reading.bad_receive {
            BadReceive::TooShort => Buf::with_capacity(len.min(taken + mtu) - 1).into(),
            BadReceive::Revoked => {
                let (domain, rights) = (self.domain, Rights::LOCAL_WRITE);
                let place = self.nic.register(domain, Region::new(len), rights).unwrap();
                self.to_revoke = Some(place.lkey);
                place.segment(0, len as u32).into()
            }
        }
    }

    /// Takes an answer of the peer's.
    fn hear(&mut self, packet: &Recorded) {
        if let Some(Verdict::ReceiverNotReady(timer)) = packet.verdict() {
            self.wait = Some(timer.delay());
        }
        self.take(packet, packet.headers.extensions);
    }

    /// Gives the NIC a packet, as it would have been with our queue pair's number, and our memory's
    /// keys and addresses.
    fn take(&mut self, packet: &Recorded, extensions: Extensions) {
        let headers = Headers { bth: addressed(packet.headers.bth, self.ends.qpn), extensions };
        let frame = frame(&packet.outer, headers, &packet.payload);
        receive_frame(&mut self.nic, &mut self.arriving, &frame, None);
    }

    /// Has the NIC send all that it has to, and reads it.
    fn transmit(&mut self) -> Result<(), String> {
        if let Some(managed) = &mut self.managed {
            managed.transmit(&mut self.nic)?;
        }
        while self.nic.has_work() {
            self.nic.transmit(&mut self.frames);
        }
        for frame in self.frames.0.drain(..) {
            let packets = Recorded::all_of(&mut self.leaving, &frame).expect("a frame of RoCE");
            let from = self.end;
            self.sent.extend(packets.into_iter().map(|packet| Recorded { from, ..packet }));
        }
        Ok(())
    }
}

/// The same header for another queue pair.
fn addressed(bth: Bth, qpn: Qpn) -> Bth {
    let mut bytes = bth.to_bytes();
    bytes[5..8].copy_from_slice(&qpn.get().to_be_bytes()[1..]);
    Bth::from_bytes(&bytes).expect("a header that was read")
}

/// The way from one end to the other.
fn path(exchange: &Exchange, end: usize) -> Path {
    let data = |packet: &&Recorded| packet.from == end && !packet.is_management();
    let sent = exchange.packets.iter().find(data);
    Path::new(PathId(0), sent.expect("both ends say something").outer)
}

/// How the NIC's queue pair comes to be what the recorded one was.
fn changes(exchange: &Exchange, end: usize, ours: &[Message], theirs: &[Message]) -> [Change; 3] {
    let first = |messages: &[Message]| messages.first().map_or(Psn::new(0), |m| m.first);
    let receives = match exchange.service {
        Service::Ud => {
            let named = theirs.first().and_then(|message| deth(&message.headers));
            let qkey = named.map_or(Qkey(0), |deth| deth.qkey);
            Change::ReadyForDatagrams { qkey, mtu: exchange.mtu }
        }
        _ => Change::ReadyToReceive(Box::new(connection(exchange, end, first(theirs)))),
    };
    let init = Change::Init { rights: Rights::REMOTE, pkey: Pkey::DEFAULT };
    [init, receives, Change::ReadyToSend(Sending::to_standard_peer(first(ours)))]
}

fn connection(exchange: &Exchange, end: usize, expected: Psn) -> Connection {
    let (peer, path) = (exchange.ends[1 - end].qpn, path(exchange, end));
    let mut connection = Connection::new(peer, path, exchange.mtu, expected);
    for answer in exchange.answers(end) {
        if let Some(Verdict::ReceiverNotReady(timer)) = answer.verdict() {
            connection.not_ready = timer;
        }
    }
    connection
}

/// The request that becomes a message.
fn request(id: u64, message: &Message, to: AddressId) -> WorkRequest {
    let data = Buf::from(message.content.clone());
    let request = match message.headers.extensions {
        Extensions::Reth(reth) if message.asks() => {
            let into = Buf::with_capacity(reth.length.0 as usize);
            WorkRequest::read(id, reth.address, reth.rkey, into)
        }
        Extensions::Reth(reth) | Extensions::RethImm(reth, _) => {
            WorkRequest::write(id, reth.address, reth.rkey, data)
        }
        Extensions::Atomic(AtomicEth { address, rkey, swap_or_add, compare }) => {
            match message.headers.bth.opcode() {
                Opcode::RcFetchAdd => WorkRequest::fetch_add(id, address, rkey, swap_or_add.0),
                _ => WorkRequest::compare_swap(id, address, rkey, compare.0, swap_or_add.0),
            }
        }
        Extensions::Deth(deth) | Extensions::DethImm(deth, _) => {
            WorkRequest::datagram(id, (to, message.headers.bth.destination(), deth.qkey), data)
        }
        _ => WorkRequest::send(id, data),
    };
    let request = WorkRequest { solicited: message.solicited, ..request };
    match message.imm {
        Some(imm) => request.with_imm(imm),
        None => request,
    }
}

fn numbered(messages: &[Message]) -> impl Iterator<Item = (u64, &Message)> {
    (0..).zip(messages)
}
