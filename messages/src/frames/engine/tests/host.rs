//! Two hosts and the network between them.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use doorbell_verbs::RemoteMemory;

use crate::frames::engine::{
    Destination, Event, Lost, Pair, Place, Receives, Time, Timing, Transmit,
};
use crate::frames::policy::Policy;
use crate::frames::wire::{Frame, Head, MessageHeader};

/// The bytes of each frame.
const STRIDE: u16 = 1400;
/// How long a frame takes.
const LATENCY: Duration = Duration::from_micros(20);

/// The longest message that receives take.
const MOST: usize = 4_000_000;

/// A Splitmix64 generator, which makes the same pseudo-random numbers on every machine.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn happens(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// The faults of the network: how many frames in a hundred each kind affects.
#[derive(Clone, Copy)]
pub struct Faults {
    pub loss: u64,
    pub duplication: u64,
    pub reordering: u64,
}

impl Faults {
    pub const NONE: Self = Self { loss: 0, duplication: 0, reordering: 0 };
}

/// The place of a message: its tag, and the bytes that have come.
pub struct Letter {
    tag: u64,
    bytes: Vec<u8>,
}

impl Place for Letter {
    fn write(&mut self, at: usize, data: &[u8]) {
        self.bytes[at..at + data.len()].copy_from_slice(data);
    }

    fn memory(&self) -> Option<RemoteMemory> {
        None
    }
}

/// The receives of a host: each takes the messages of one tag.
pub struct Posted {
    posted: Vec<u64>,
    /// Messages that wait for a receive: the number, the tag, and the length of each.
    pub noted: Vec<(u32, u64, usize)>,
    pub most_noted: usize,
}

impl Receives<Letter> for Posted {
    fn destination(&mut self, number: u32, header: &MessageHeader, _: bool) -> Destination<Letter> {
        let (tag, len) = (header.bits, header.len as usize);
        if len > MOST {
            return Destination::Nowhere;
        }
        if let Some(at) = self.posted.iter().position(|&of| of == tag) {
            self.posted.remove(at);
            return Destination::Place(Letter { tag, bytes: vec![0; len] });
        }
        if self.noted.len() == self.most_noted {
            return Destination::Full;
        }
        self.noted.push((number, tag, len));
        Destination::Waits
    }
}

/// A host, and what has become of its messages: those sent are known by their order, those received
/// by the order that their bytes tell.
pub struct Host {
    pub pair: Pair<u64, Letter>,
    pub receives: Posted,
    pub sent: Vec<u64>,
    pub received: Vec<u64>,
    pub failed: Vec<(u64, Lost)>,
    /// How the peer was found to be gone, each time.
    pub gone: Vec<Lost>,
    /// When the last frame has left.
    left: Time,
}

/// Two hosts and the frames between them.
pub struct World {
    pub hosts: [Host; 2],
    pub now: Time,
    pub random: Random,
    pub is_cut: bool,
    /// Whether the bytes of messages that are complete must be right.
    pub is_checked: bool,
    /// Frames that were sent once.
    past: Vec<Vec<u8>>,
    faults: Faults,
    /// Frames on their way: when they arrive, where, and their bytes.
    frames: Vec<(Time, usize, Vec<u8>)>,
    sends: u64,
    /// A predicate that picks one frame to be lost, if a test needs that.
    pub loses: Option<fn(&Head) -> bool>,
    pub lost: usize,
}

/// The bytes of the message with this number among all, of a length.
fn letter(number: u64, len: usize) -> Vec<u8> {
    let mut random = Random(number);
    let mut bytes: Vec<u8> = (0..len).map(|_| random.next() as u8).collect();
    let number = number.to_be_bytes();
    bytes.iter_mut().zip(number).for_each(|(byte, of)| *byte = of);
    bytes
}

impl World {
    pub fn new(seed: u64, policy: Policy, faults: Faults) -> Self {
        let hosts = [0; 2].map(|_| Host {
            pair: Pair::new(policy, Timing::default()),
            receives: Posted { posted: Vec::new(), noted: Vec::new(), most_noted: 1000 },
            sent: Vec::new(),
            received: Vec::new(),
            failed: Vec::new(),
            gone: Vec::new(),
            left: Time::ZERO,
        });
        Self {
            hosts,
            now: Time::ZERO,
            random: Random(seed),
            is_cut: false,
            is_checked: true,
            past: Vec::new(),
            faults,
            frames: Vec::new(),
            sends: 0,
            loses: None,
            lost: 0,
        }
    }

    /// Sends a message of a tag. Its number among all is in its first eight bytes.
    pub fn send(&mut self, from: usize, tag: u64, len: usize) {
        let number = self.sends;
        self.sends += 1;
        let body = Bytes::from(letter(number, len));
        let sent = self.hosts[from].pair.send((tag, body, STRIDE), number, self.now);
        sent.expect("it is short enough");
    }

    pub fn post(&mut self, at: usize, tag: u64) {
        let Host { pair, receives, .. } = &mut self.hosts[at];
        match receives.noted.iter().position(|&(_, of, _)| of == tag) {
            Some(noted) => {
                let (number, tag, len) = receives.noted.remove(noted);
                let placed = pair.place(number, Letter { tag, bytes: vec![0; len] }, self.now);
                assert!(placed.is_ok(), "it was noted");
            }
            None => receives.posted.push(tag),
        }
    }

    /// Runs the hosts and the network for a span of simulated time.
    pub fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            self.transmit();
            let arrivals = self.frames.iter().map(|&(at, ..)| at);
            let timeouts = self.hosts.iter().filter_map(|host| host.pair.next_timeout());
            let Some(next) = arrivals.chain(timeouts).min().filter(|&next| next <= end) else {
                self.now = end;
                return;
            };
            self.now = self.now.max(next);
            self.arrive();
            self.hosts.iter_mut().for_each(|host| host.pair.handle_timeout(self.now));
            self.hosts.iter_mut().for_each(|host| host.look(self.is_checked));
        }
    }

    /// Returns a copy of a frame that was sent before.
    pub fn some_frame(&self, random: &mut Random) -> Vec<u8> {
        self.past[random.below(self.past.len() as u64) as usize].clone()
    }

    /// Gives a frame to a host.
    pub fn handle(&mut self, to: usize, frame: &Frame<'_>) {
        let Host { pair, receives, .. } = &mut self.hosts[to];
        pair.handle(frame, self.now, receives);
        self.hosts[to].look(self.is_checked);
    }

    pub fn is_idle(&self) -> bool {
        self.hosts.iter().all(|host| host.pair.is_idle())
    }

    fn transmit(&mut self) {
        let Self { random, faults, .. } = self;
        for (from, host) in self.hosts.iter_mut().enumerate() {
            // Each frame takes a microsecond to leave.
            host.left = host.left.max(self.now);
            while let Some(transmit) = host.pair.poll_transmit(self.now) {
                let Transmit::Frame(head, data) = transmit else { panic!("nothing is placed") };
                let mut bytes = Vec::new();
                head.encode(from as u64, None, &mut bytes);
                bytes.extend(data);
                if self.past.len() < 1000 {
                    self.past.push(bytes.clone());
                }
                host.left += Duration::from_micros(1);
                if self.loses.is_some_and(|loses| loses(&head)) {
                    self.loses = None;
                    self.lost += 1;
                    continue;
                }
                if self.is_cut || random.happens(faults.loss) {
                    continue;
                }
                for _ in 0..1 + u32::from(random.happens(faults.duplication)) {
                    let late = random.happens(faults.reordering);
                    let late = LATENCY * u32::from(late) * random.below(20) as u32;
                    self.frames.push((host.left + LATENCY + late, 1 - from, bytes.clone()));
                }
            }
        }
    }

    fn arrive(&mut self) {
        let now = self.now;
        let mut arrived: VecDeque<_> =
            self.frames.extract_if(.., |&mut (at, ..)| at <= now).collect();
        arrived.make_contiguous().sort_by_key(|&(at, ..)| at);
        for (_, to, bytes) in arrived {
            let Host { pair, receives, .. } = &mut self.hosts[to];
            let frame = Frame::parse(&bytes).expect("it was encoded");
            pair.handle(&frame, now, receives);
        }
    }
}

impl Host {
    fn look(&mut self, is_checked: bool) {
        while let Some(event) = self.pair.poll_event() {
            match event {
                Event::Sent(number) => self.sent.push(number),
                Event::SendFailed(number, why) => self.failed.push((number, why)),
                Event::Received(Letter { bytes, .. }) => {
                    let mut number = [0; 8];
                    number[8 - bytes.len().min(8)..].copy_from_slice(&bytes[..bytes.len().min(8)]);
                    let number = u64::from_be_bytes(number);
                    if is_checked && bytes.len() >= 8 {
                        assert!(bytes == letter(number, bytes.len()), "the bytes of {number}");
                    }
                    self.received.push(number);
                }
                Event::ReceiveFailed(letter, why) => self.failed.push((letter.tag, why)),
                Event::PeerGone(why) => self.gone.push(why),
                Event::NotesVoid => self.receives.noted.clear(),
            }
        }
    }
}
