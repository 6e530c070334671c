//! What a capture holds: who said what to whom, and the messages that packets make up.

use std::fmt;

use doorbell_core::encap::{Opener, Outer};
use doorbell_core::pcap::Reader;
use doorbell_core::wire::cm::{Mad, Message as CmMessage};
use doorbell_core::wire::{
    Aeth, Deth, Ethernet, Extensions, Gid, Headers, Imm, Nak, Operation, PathMtu, Psn, Qpn,
    Service, TransactionId, Verdict,
};

/// A packet, and the frame that it was.
#[derive(Clone)]
pub struct Recorded {
    /// Its place in the capture.
    pub number: usize,
    /// Which end of its exchange sent it.
    pub from: usize,
    pub outer: Outer,
    pub headers: Headers,
    pub payload: Vec<u8>,
    pub frame: Vec<u8>,
}

/// A queue pair of a recorded station.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct End {
    pub station: Gid,
    pub qpn: Qpn,
}

/// What a capture holds.
pub struct Capture {
    pub exchanges: Vec<Exchange>,
    /// What connection managers said to each other of anything but these.
    pub management: Vec<Recorded>,
}

/// All that two queue pairs said to each other, and their managers of them.
pub struct Exchange {
    pub service: Service,
    pub ends: [End; 2],
    pub packets: Vec<Recorded>,
    pub mtu: PathMtu,
    /// What management datagrams have in common, if there are any: then the connection was made and
    /// ended by them.
    pub transaction: Option<TransactionId>,
}

/// What one end asked of the other: a message, or a read, or an atomic operation.
pub struct Message {
    /// The place of its first packet in the exchange.
    pub at: usize,
    pub first: Psn,
    pub last: Psn,
    /// Those of its first packet.
    pub headers: Headers,
    /// What stands in front of it in its receive.
    pub in_front: Vec<u8>,
    /// What it sent.
    pub content: Vec<u8>,
    pub imm: Option<Imm>,
    pub solicited: bool,
    pub fate: Fate,
    /// What a read, or an atomic operation, brought.
    pub brought: Brought,
}

/// What became of a message, by the answers that were recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It is known to have arrived; or it is what nobody answers, and arrived in the capture.
    Done,
    Refused {
        at: Psn,
        why: Nak,
    },
    Unanswered,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Brought {
    Nothing,
    Data(Vec<u8>),
    Word(u64),
}

impl fmt::Debug for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, outer, headers, payload, .. } = self;
        write!(f, "{number}: {outer:?} {headers:?}, {} bytes", payload.len())
    }
}

impl Recorded {
    /// Each packet of a frame.
    pub fn all_of(opener: &mut Opener, frame: &[u8]) -> Option<Vec<Self>> {
        // Other protocols are passed over here: `captures.rs` sees to it that none is RoCE.
        let arrival = opener.open(frame, None).ok()?;
        let outer = *arrival.outer();
        let packets = arrival.map(|packet| {
            let packet = packet.expect("a packet that verifies");
            let (headers, payload) = (packet.headers, packet.payload.to_vec());
            Self { number: 0, from: 0, outer, headers, payload, frame: frame.to_vec() }
        });
        Some(packets.collect())
    }

    pub fn service(&self) -> Service {
        self.headers.bth.opcode().info().service
    }

    /// Whether it is for a connection manager.
    pub fn is_management(&self) -> bool {
        self.headers.bth.destination() == Qpn::GSI
    }

    pub fn psn(&self) -> Psn {
        self.headers.bth.psn()
    }

    pub fn operation(&self) -> Operation {
        self.headers.bth.opcode().info().operation
    }

    pub fn is_request(&self) -> bool {
        !self.headers.bth.opcode().info().is_response()
    }

    /// What stands in front of it in its receive: of a datagram, 40 bytes for its network header,
    /// of which one of IPv4 takes the last 20.
    fn in_front(&self) -> Vec<u8> {
        let header = &self.frame[Ethernet::LEN..];
        match (self.service(), &self.outer) {
            (Service::Ud, Outer::V2Ipv4(..)) => [&[0; 20], &header[..20]].concat(),
            (Service::Ud, _) => header[..40].to_vec(),
            _ => Vec::new(),
        }
    }

    /// What it acknowledges or refuses by, if it does either.
    pub fn aeth(&self) -> Option<Aeth> {
        match self.headers.extensions {
            Extensions::Aeth(aeth) | Extensions::AethAtomicAck(aeth, _) => Some(aeth),
            _ => None,
        }
    }

    pub fn verdict(&self) -> Option<Verdict> {
        self.aeth().map(|aeth| aeth.syndrome.verdict())
    }
}

/// What a datagram says of its sender.
pub fn deth(headers: &Headers) -> Option<Deth> {
    match headers.extensions {
        Extensions::Deth(deth) | Extensions::DethImm(deth, _) => Some(deth),
        _ => None,
    }
}

/// A frame of one packet, to the last byte. The lengths in the headers around it are its own.
pub fn frame(outer: &Outer, headers: Headers, payload: &[u8]) -> Vec<u8> {
    let mut body = headers.to_bytes()[..headers.len()].to_vec();
    body.extend(payload);
    body.resize(body.len() + usize::from(headers.bth.pad()), 0);
    let mut frame = outer.to_bytes()[..outer.len()].to_vec();
    let icrc = outer.icrc(&body);
    frame.extend(body);
    frame.extend(icrc.to_le_bytes());
    frame
}

impl Message {
    pub fn operation(&self) -> Operation {
        self.headers.bth.opcode().info().operation
    }

    /// Whether a packet of this number is one of its own, or an answer to it.
    pub fn has(&self, psn: Psn) -> bool {
        psn.distance_from(self.first) >= 0 && psn.distance_from(self.last) <= 0
    }

    pub fn is_send(&self) -> bool {
        self.operation() == Operation::Send
    }

    /// Whether it is complete only when something was brought.
    pub fn asks(&self) -> bool {
        !matches!(self.operation(), Operation::Send | Operation::Write)
    }

    /// Whether its receiver needs a receive for it.
    pub fn takes_receive(&self) -> bool {
        self.is_send() || self.imm.is_some()
    }

    /// The packet with which a message is counted as complete: of a read, the first of its answers
    /// already says so.
    pub fn counted_at(&self) -> Psn {
        if self.asks() { self.first } else { self.last }
    }
}

impl Capture {
    pub fn read(file: &[u8]) -> Self {
        let mut opener = Opener::default();
        let records = Reader::new(file).expect("a capture").enumerate().map(|(index, record)| {
            let record = record.expect("a whole record");
            let packets = Recorded::all_of(&mut opener, record.data).unwrap_or_default();
            packets.into_iter().map(move |packet| Recorded { number: index + 1, ..packet })
        });
        let (management, packets): (Vec<_>, Vec<_>) =
            records.flatten().partition(Recorded::is_management);
        let mut capture = Self { exchanges: exchanges(packets), management: Vec::new() };
        for datagram in management {
            capture.add(datagram);
        }
        capture
    }

    /// Adds what one manager said to another to the exchange that it is about, in its place.
    fn add(&mut self, mut datagram: Recorded) {
        let mad = Mad::parse(&datagram.payload).expect("a kernel's datagram");
        let station = source(&datagram);
        let about = |exchange: &&mut Exchange| match mad.message {
            // It names the queue pair that asks.
            CmMessage::Req(req) => exchange.ends.contains(&End { station, qpn: req.qpn }),
            CmMessage::SidrReq(_) | CmMessage::SidrRep(_) => false,
            // All that follows is of the same transaction.
            _ => exchange.transaction == Some(mad.transaction),
        };
        let Some(exchange) = self.exchanges.iter_mut().find(about) else {
            return self.management.push(datagram);
        };
        exchange.transaction = Some(mad.transaction);
        datagram.from = usize::from(exchange.ends[1].station == station);
        let before = |packet: &Recorded| packet.number < datagram.number;
        exchange.packets.insert(exchange.packets.partition_point(before), datagram);
    }
}

fn exchanges(packets: Vec<Recorded>) -> Vec<Exchange> {
    let mut exchanges: Vec<Exchange> = Vec::new();
    for (index, packet) in packets.iter().enumerate() {
        let Some(ends) = ends(&packets, index) else { continue };
        let known = |exchange: &Exchange| exchange.ends.iter().all(|end| ends.contains(end));
        if !exchanges.iter().any(known) {
            let (service, mtu) = (packet.service(), PathMtu::Mtu256);
            let (packets, transaction) = (Vec::new(), None);
            exchanges.push(Exchange { service, ends, packets, mtu, transaction });
        }
    }
    for mut packet in packets {
        let to = destination(&packet);
        let mut whose = exchanges.iter_mut().filter(|exchange| exchange.ends.contains(&to));
        let exchange = whose.next().unwrap_or_else(|| panic!("nobody answers {packet:?}"));
        assert!(whose.next().is_none(), "{to:?} has two peers");
        packet.from = usize::from(exchange.ends[0] == to);
        exchange.packets.push(packet);
    }
    exchanges.iter_mut().for_each(Exchange::find_mtu);
    exchanges
}

/// The queue pairs that a packet goes between, as far as it tells. Packets name the one that they
/// go to, and only datagrams the one that they come from.
fn ends(packets: &[Recorded], index: usize) -> Option<[End; 2]> {
    let packet = &packets[index];
    let (station, to) = (source(packet), destination(packet));
    let goes_back =
        |other: &&Recorded| source(other) == to.station && destination(other).station == station;
    let other = match packet.service() {
        Service::Ud => return Some([End { station, qpn: deth(&packet.headers)?.source }, to]),
        // That an answer goes back which has the number of a request brings it to light.
        Service::Rc if packet.is_request() => return None,
        Service::Rc => packets[..index]
            .iter()
            .rev()
            .find(|other| other.is_request() && goes_back(other) && other.psn() == packet.psn())?,
        // Nothing is answered. There is one that goes back, and it is taken for the other half.
        _ => packets.iter().find(|other| other.service() == Service::Uc && goes_back(other))?,
    };
    Some([to, destination(other)])
}

fn source(packet: &Recorded) -> Gid {
    packet.outer.gids().0
}

fn destination(packet: &Recorded) -> End {
    End { station: packet.outer.gids().1, qpn: packet.headers.bth.destination() }
}

impl Exchange {
    /// The shortest MTU by which no packet is too long. Where a message takes several, all but the
    /// last are as long as the MTU; where none does, it is of no matter.
    fn find_mtu(&mut self) {
        let longest = self.packets.iter().map(|packet| packet.payload.len()).max().unwrap_or(0);
        let fits = |mtu: &PathMtu| mtu.bytes() >= longest;
        self.mtu = PathMtu::ALL.into_iter().find(fits).expect("no packet is longer than any MTU");
    }

    /// The requests of one end, its manager's datagrams among them, with their places in the
    /// exchange.
    pub fn requests(&self, from: usize) -> impl Iterator<Item = (usize, &Recorded)> {
        let packets = self.packets.iter().enumerate();
        packets.filter(move |(_, packet)| packet.from == from && packet.is_request())
    }

    /// The answers of one end.
    pub fn answers(&self, from: usize) -> impl Iterator<Item = &Recorded> {
        self.packets.iter().filter(move |packet| packet.from == from && !packet.is_request())
    }

    /// What one end asked of the other, in order, each once, however often it was sent.
    pub fn messages(&self, from: usize) -> Vec<Message> {
        let mut messages: Vec<Message> = Vec::new();
        for (at, packet) in self.requests(from).filter(|(_, packet)| !packet.is_management()) {
            let (psn, bth) = (packet.psn(), packet.headers.bth);
            let next = messages.last().map(|message| message.last.add(1));
            let ahead = next.map_or(0, |next| psn.distance_from(next));
            assert!(ahead <= 0, "what comes before {packet:?} was not recorded");
            if ahead < 0 {
                continue;
            }
            if bth.opcode().info().begins() {
                messages.push(Message {
                    at,
                    first: psn,
                    last: psn,
                    headers: packet.headers,
                    in_front: packet.in_front(),
                    content: Vec::new(),
                    imm: None,
                    solicited: false,
                    fate: Fate::Unanswered,
                    brought: Brought::Nothing,
                });
            }
            let message = messages.last_mut().expect("a message begins with its first packet");
            message.last = psn.add(self.numbers(packet) - 1);
            message.content.extend(&packet.payload);
            message.imm = packet.headers.extensions.immediate();
            message.solicited |= bth.solicited();
        }
        for message in &mut messages {
            message.fate = self.fate(from, message);
            message.brought = self.brought(from, message);
        }
        messages
    }

    /// How many sequence numbers a request takes.
    fn numbers(&self, request: &Recorded) -> u32 {
        match (request.operation(), request.headers.extensions) {
            (Operation::ReadRequest, Extensions::Reth(reth)) => self.mtu.packets(reth.length.0),
            _ => 1,
        }
    }

    fn fate(&self, from: usize, message: &Message) -> Fate {
        if self.service != Service::Rc {
            return Fate::Done;
        }
        for answer in self.answers(1 - from) {
            let complete = answer.psn().distance_from(message.last) >= 0;
            match answer.verdict() {
                Some(Verdict::Ack(_)) if complete => return Fate::Done,
                Some(Verdict::Nak(why)) if why != Nak::SequenceError => {
                    let at = answer.psn();
                    if at.distance_from(message.last) > 0 {
                        return Fate::Done;
                    } else if at.distance_from(message.first) >= 0 {
                        return Fate::Refused { at, why };
                    }
                }
                _ => {}
            }
        }
        Fate::Unanswered
    }

    fn brought(&self, from: usize, message: &Message) -> Brought {
        let mut brought = Brought::Nothing;
        for answer in self.answers(1 - from) {
            if !message.asks() || !message.has(answer.psn()) {
                continue;
            }
            match (answer.operation(), answer.headers.extensions, &mut brought) {
                (Operation::ReadResponse, _, Brought::Data(data)) => data.extend(&answer.payload),
                (Operation::ReadResponse, ..) => brought = Brought::Data(answer.payload.clone()),
                (_, Extensions::AethAtomicAck(_, word), _) => brought = Brought::Word(word.0),
                _ => {}
            }
        }
        brought
    }
}
