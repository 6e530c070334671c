//! What a capture holds of reliable connections: their packets, and the messages these make up.

use doorbell::encap::{Opener, Outer};
use doorbell::pcap::Reader;
use doorbell::wire::{
    Aeth, Extensions, Gid, Headers, Imm, Nak, Operation, PathMtu, Psn, Qpn, Service, Verdict,
};

/// A packet as it was recorded.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Which end of its exchange sent it.
    pub from: usize,
    pub outer: Outer,
    pub headers: Headers,
    pub payload: Vec<u8>,
}

/// A queue pair of a recorded station.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct End {
    pub station: Gid,
    pub qpn: Qpn,
}

/// All that the two ends of one connection said to each other.
pub struct Exchange {
    pub ends: [End; 2],
    pub packets: Vec<Recorded>,
    pub mtu: PathMtu,
}

/// What one end asked of the other: a message, or a read, or an atomic operation.
pub struct Message {
    /// The place of its first packet in the exchange.
    pub at: usize,
    pub first: Psn,
    pub last: Psn,
    /// Those of its first packet.
    pub headers: Headers,
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
    Done,
    Refused { at: Psn, why: Nak },
    Unanswered,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Brought {
    Nothing,
    Data(Vec<u8>),
    Word(u64),
}

impl Recorded {
    pub fn psn(&self) -> Psn {
        self.headers.bth.psn()
    }

    pub fn operation(&self) -> Operation {
        self.headers.bth.opcode().info().operation
    }

    pub fn is_request(&self) -> bool {
        !self.headers.bth.opcode().info().is_response()
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

/// All that a capture holds of reliable connections.
pub fn exchanges(file: &[u8]) -> Vec<Exchange> {
    let packets = reliable_packets(file);
    // Packets name the queue pair that they go to, and not the one that they come from. Who that
    // is comes to light when an answer goes back that has the number of a request.
    let mut exchanges: Vec<Exchange> = Vec::new();
    for (index, answer) in packets.iter().enumerate().filter(|(_, packet)| !packet.is_request()) {
        let (here, there) = (destination(answer), source(answer));
        let asked = |request: &&Recorded| {
            let back = source(request) == here.station && destination(request).station == there;
            request.is_request() && back && request.psn() == answer.psn()
        };
        let Some(request) = packets[..index].iter().rev().find(asked) else { continue };
        let ends = [here, destination(request)];
        let known = |exchange: &Exchange| exchange.ends.iter().all(|end| ends.contains(end));
        if !exchanges.iter().any(known) {
            exchanges.push(Exchange { ends, packets: Vec::new(), mtu: PathMtu::Mtu256 });
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

fn reliable_packets(file: &[u8]) -> Vec<Recorded> {
    let mut packets = Vec::new();
    let mut opener = Opener::default();
    for record in Reader::new(file).expect("a capture") {
        let record = record.expect("a whole record");
        // Other protocols are passed over here: `captures.rs` sees to it that none is RoCE.
        let Ok(arrival) = opener.open(record.data, None) else { continue };
        let outer = *arrival.outer();
        for packet in arrival {
            let packet = packet.expect("a packet that verifies");
            let (headers, payload) = (packet.headers, packet.payload.to_vec());
            if headers.bth.opcode().info().service == Service::Rc {
                packets.push(Recorded { from: 0, outer, headers, payload });
            }
        }
    }
    packets
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

    /// The requests of one end, with their places in the exchange.
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
        for (at, packet) in self.requests(from) {
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
