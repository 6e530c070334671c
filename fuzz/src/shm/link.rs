//! A script of what an end of a link does, and what the peer writes meanwhile.

use std::sync::atomic::{AtomicU64, Ordering};

use doorbell_core::encap::PathId;
use doorbell_core::memory::Region;
use doorbell_core::nic::{Flow, Inbox};
use doorbell_core::payload::Payload;
use doorbell_core::wire::{Bth, Extensions, Headers, Malformed, Opcode, Packet, PathMtu, Psn, Qpn};
use doorbell_transports::floor::RingEnds;

/// The words of a line.
const LINE: usize = 8;
/// Where a ring's first record is.
const RING: usize = 4 * LINE;
/// How many lines have memory from the beginning.
const FIRST: u32 = 1 << 12;
/// The most lines that a record takes: any headers, and the longest payload.
const LONGEST: u64 = (4 + 64 + 4096u64).div_ceil(64);

/// Runs a script on an end of a link. The script's first byte chooses how long the rings are, and each step has a byte for its
/// kind and what that takes.
pub fn link(data: &[u8]) {
    let mut script = Script(data);
    let (lines, spare) = match script.u8() {
        0xFF => (4 * FIRST, 1 << 20),
        0xFE => (4 * FIRST, 0),
        _ => (256, 0),
    };
    let mut end = End::new(lines, spare);
    while !script.0.is_empty() && !end.broken {
        match script.u8() % 9 {
            0..=2 => end.peer_writes(&mut script),
            3 | 4 => end.takes(&mut script),
            5 => end.pushes(script.u16()),
            6 => end.is_told(),
            7 => end.reads_on(&mut script),
            _ => end.tells(),
        }
    }
}

/// An end of a link, with what is known of the end's progress.
struct End {
    ends: RingEnds,
    lines: u64,
    read: u64,
    delivered: u64,
    /// Whether its link would have been taken down.
    broken: bool,
}

impl End {
    fn new(lines: u32, spare: usize) -> Self {
        let ends = RingEnds::new(lines, spare);
        Self { ends, lines: lines.into(), read: 0, delivered: 0, broken: false }
    }

    /// The peer writes a word of either ring: any, or one that may be meant.
    fn peer_writes(&self, script: &mut Script<'_>) {
        let [incoming, outgoing] = self.ends.words();
        let which = script.u8();
        let words = if which & 0x80 == 0 { incoming } else { outgoing };
        script.write(words, which, self.read, self.lines);
    }

    /// The peer writes records that can be, one after the other, and they are taken: so the end comes
    /// to other places of the ring, and its last.
    fn reads_on(&mut self, script: &mut Script<'_>) {
        let len = 12 + u64::from(script.u16()) % 4096;
        for _ in 0..=script.u8() % 16 {
            let [incoming, _] = self.ends.words();
            let at = RING + (self.read % self.lines) as usize * LINE;
            let value = lap(self.read, self.lines) | len << 16 | 0x24 << 32 | 0xFFFF << 48;
            incoming[at].store(value, Ordering::Release);
            self.takes(&mut Script(&[]));
        }
    }

    /// Takes what there is, of which the peer changes words while it is looked at.
    fn takes(&mut self, script: &mut Script<'_>) {
        for _ in 0..=script.u8() % 16 {
            let memory = self.ends.memory();
            let (read, lines) = (self.read, self.lines);
            let mut inbox = Hostile { script: &mut *script, memory, read, lines, packets: 0 };
            let taken = self.ends.take(&mut inbox);
            let packets = inbox.packets;
            match taken {
                Ok(Some(bytes)) => {
                    assert_eq!(packets, 1, "a record is a packet");
                    assert!((16..=LONGEST * 64).contains(&(bytes as u64)), "{bytes} bytes");
                }
                Ok(None) => assert_eq!(packets, 0),
                Err(_) => {
                    assert_eq!(packets, 0, "what makes no sense is handed to nobody");
                    self.broken = true;
                }
            }
            let ahead = self.ends.read() - self.read;
            // It may have been sent to the beginning, and is never where it was.
            let most = self.lines - 1 + if packets > 0 { LONGEST } else { 0 };
            assert!(ahead <= most, "it went on by {ahead} lines");
            self.read = self.ends.read();
            if packets == 0 {
                break;
            }
        }
    }

    /// Writes a record, wherever the peer says that there is room.
    fn pushes(&mut self, number: u16) {
        let bth = Bth::new(Opcode::UcSendOnly, Qpn::GSI, Psn::new(number.into()));
        let headers = Headers { bth, extensions: Extensions::None };
        let payload = [0x5A; PathMtu::Mtu4096.bytes()];
        let before = self.ends.written();
        let pushed =
            self.ends.push(&headers, &payload[..usize::from(number) % (payload.len() + 1)]);
        let ahead = self.ends.written() - before;
        assert!(ahead <= LONGEST + self.lines, "it went on by {ahead} lines");
        assert!(pushed.is_err() || pushed == Ok(self.ends.written()));
        self.ends.must_wake();
    }

    /// Hears how far the peer says that it is.
    fn is_told(&mut self) {
        let (delivered, nonsense) = self.ends.delivered();
        let range = self.delivered..=self.ends.written();
        assert!(range.contains(&delivered), "{delivered} of {range:?}");
        (self.delivered, self.broken) = (delivered, nonsense);
    }

    fn tells(&mut self) {
        self.ends.tell();
        let [incoming, _] = self.ends.words();
        assert_eq!(incoming[0].load(Ordering::Acquire), self.read);
    }
}

/// The lap of a place, as it stands in tags.
fn lap(read: u64, lines: u64) -> u64 {
    (read / lines) % u64::from(u16::MAX) + 1
}

/// Takes packets, while the peer goes on writing.
struct Hostile<'a, 's> {
    script: &'a mut Script<'s>,
    memory: [Region; 2],
    read: u64,
    lines: u64,
    packets: usize,
}

impl Inbox for Hostile<'_, '_> {
    fn packet<P: Payload>(&mut self, _: Flow<'_>, packet: &Packet<P>) {
        self.packets += 1;
        let len = packet.payload.len();
        assert!(len <= PathMtu::Mtu4096.bytes() + 64, "a payload of {len} bytes");
        for _ in 0..self.script.u8() % 4 {
            let which = self.script.u8();
            self.script.write(self.memory[0].words(), which, self.read, self.lines);
        }
        let mut copy = vec![0; len];
        packet.payload.copy_to(&mut copy);
        assert_eq!(packet.payload.len(), len, "what is lent stays as long as it was");
    }

    fn malformed(&mut self, _: Malformed) {}

    fn gone(&mut self, _: PathId) {}
}

/// Reads numbers from the front of an input. Beyond its end there are zeros.
struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut array = [0; N];
        let (bytes, rest) = self.0.split_at(N.min(self.0.len()));
        array[..bytes.len()].copy_from_slice(bytes);
        self.0 = rest;
        array
    }

    fn u8(&mut self) -> u8 {
        self.array::<1>()[0]
    }

    fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.array())
    }

    /// Writes a word as the peer: one of those in front of the ring, one at or behind where the
    /// reader is, or any; and there a tag of this lap or near it, a header's beginning, a small
    /// number, or anything.
    fn write(&mut self, words: &[AtomicU64], which: u8, read: u64, lines: u64) {
        let line = |line: u64| RING + (line % lines) as usize * LINE;
        let at = match which % 8 {
            0 => usize::from(self.u8() % 2),
            1 => 2 * LINE,
            2..=4 => line(read) + usize::from(self.u8() % 4),
            5 => line(read + u64::from(self.u8())),
            6 => line(lines - 1 - u64::from(self.u8() % 4)),
            _ => usize::from(self.u16()) * words.len() / (1 << 16),
        };
        let lap = lap(read, lines) as u16;
        let value = match self.u8() % 8 {
            0 => 0,
            1 => u64::from(self.u16()),
            2 | 3 => {
                let lap = lap.wrapping_add(u16::from(self.u8() < 80));
                let opcode = u64::from(self.u8()) << 32;
                u64::from(lap) | u64::from(self.u16() % 4300) << 16 | opcode
            }
            // The beginning of a packet that can be.
            4 | 5 => {
                u64::from(lap) | u64::from(12 + self.u16() % 80) << 16 | 0x24 << 32 | 0xFFFF << 48
            }
            6 => read + u64::from(self.u8()),
            _ => u64::from_le_bytes(self.array()),
        };
        words[at].store(value, Ordering::Release);
    }
}
