//! Shared memory beside what the machine itself does: a cache line that goes to and fro between two
//! processors, and a copy. Measured in turn and in small batches, of which the tenth of a hundred
//! from below is given: so the figures hold on a machine that has other things to do, too.
//!
//! `cargo bench -p doorbell-transports --bench shm`

use std::cell::UnsafeCell;
use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use doorbell_core::encap::{Path, PathId};
use doorbell_core::nic::{Flow, Inbox, Outbox, Way};
use doorbell_core::payload::Payload;
use doorbell_core::wire::{Bth, Extensions, Headers, Malformed, Opcode, Packet, Psn, Qpn};
use doorbell_transports::Device;
use doorbell_transports::shm::Shm;

const ROUNDS: usize = 5;
const BATCHES: u64 = 200;
/// Of one batch: messages to and fro, frames of a stream, blocks.
const MESSAGES: u64 = 500;
const FRAMES: u64 = 50_000;
const BLOCKS: u64 = 32;
const BLOCK: usize = 64 << 10;
const PACKET: usize = 4096;

/// Times each batch, and returns the nanoseconds that one of its `parts` took in a good one.
fn timed(parts: u64, mut batch: impl FnMut(u64)) -> f64 {
    let mut times: Vec<_> = (0..BATCHES)
        .map(|number| {
            let start = Instant::now();
            batch(number);
            start.elapsed().as_nanos() as f64 / parts as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 10]
}

/// Binds the calling thread to a processor.
fn pin(processor: usize) {
    // SAFETY: cpu_set_t is a plain bit set for which zero is a value; the call only reads it.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(processor, &mut set);
        assert_eq!(libc::sched_setaffinity(0, size_of_val(&set), &set), 0, "two processors");
    }
}

/// Runs one thing on each of two processors, and returns what the first returns.
fn both<R>(first: impl FnOnce() -> R, second: impl FnOnce() + Send) -> R {
    thread::scope(|scope| {
        scope.spawn(|| {
            pin(1);
            second();
        });
        pin(0);
        first()
    })
}

/// One way of a line of memory, in nanoseconds.
fn line() -> f64 {
    #[repr(align(128))]
    struct Line(AtomicU64);
    let [there, back] = [const { Line(AtomicU64::new(0)) }; 2];
    let wait = |line: &Line, value| {
        while line.0.load(Ordering::Acquire) != value {
            spin_loop();
        }
    };
    let first = || {
        timed(2 * MESSAGES, |batch| {
            for round in (batch * MESSAGES..).take(MESSAGES as usize) {
                there.0.store(round + 1, Ordering::Release);
                wait(&back, round + 1);
            }
        })
    };
    both(first, || {
        for round in 1..=BATCHES * MESSAGES {
            wait(&there, round);
            back.0.store(round, Ordering::Release);
        }
    })
}

/// Takes what comes, and counts it.
struct Taker {
    packets: u64,
    bytes: Vec<u8>,
}

impl Taker {
    fn new() -> Self {
        Self { packets: 0, bytes: vec![0; BLOCK] }
    }
}

impl Inbox for Taker {
    #[inline]
    fn packet<P: Payload>(&mut self, _: Flow<'_>, packet: &Packet<P>) {
        let at = self.packets as usize * PACKET % BLOCK;
        packet.payload.copy_to(&mut self.bytes[at..at + packet.payload.len()]);
        self.packets += 1;
    }

    fn malformed(&mut self, why: Malformed) {
        panic!("{why}");
    }

    fn gone(&mut self, _: PathId) {}
}

struct End {
    device: Shm,
    path: Path,
    taker: Taker,
}

impl End {
    fn turn(&mut self) -> usize {
        let found = self.device.receive(&mut self.taker);
        self.device.settle(|_| false);
        found
    }

    #[inline]
    fn push(&mut self, payload: &[u8]) -> bool {
        let bth = Bth::new(Opcode::RcSendOnly, Qpn::new(7), Psn::new(0));
        let headers = Headers { bth, extensions: Extensions::None };
        self.device.push(&self.path, headers, payload).is_ok()
    }

    fn wait(&mut self, packets: u64) {
        while self.taker.packets < packets {
            self.turn();
        }
    }
}

/// Two ends that are linked, each with some more links on which nothing happens.
fn ends(others: usize) -> ([End; 2], Vec<Shm>) {
    let join = |name| {
        let name = format!("bench/{}/{others}/{name}", std::process::id());
        Shm::join(&name).expect("a name of our own")
    };
    let (mut a, mut b) = (join("a".to_owned()), join("b".to_owned()));
    let mut more: Vec<_> = (0..others).map(|n| join(n.to_string())).collect();
    for other in &mut more {
        reach(other, &mut a);
        reach(other, &mut b);
    }
    let paths = [reach(&mut a, &mut b), reach(&mut b, &mut a)];
    let mut devices = [a, b].into_iter().zip(paths);
    let ends = std::array::from_fn(|_| {
        let (device, path) = devices.next().expect("two");
        End { device, path, taker: Taker::new() }
    });
    (ends, more)
}

fn reach(device: &mut Shm, peer: &mut Shm) -> Path {
    loop {
        if let Some(Way::Link(link)) = device.reach(peer.address()).expect("it is there") {
            return Path::link(link);
        }
        let _ = peer.reach(device.address());
    }
}

/// One way of a frame with 16 bytes, in nanoseconds.
fn frame([a, b]: &mut [End; 2]) -> f64 {
    let (from_a, from_b) = (a.taker.packets, b.taker.packets);
    let send = |end: &mut End| {
        assert!(end.push(b"sixteen bytes..."), "no more than one is under way");
        end.device.flush();
    };
    let first = || {
        timed(2 * MESSAGES, |batch| {
            for round in (batch * MESSAGES..).take(MESSAGES as usize) {
                send(a);
                a.wait(from_a + round + 1);
            }
        })
    };
    both(first, || {
        for round in 1..=BATCHES * MESSAGES {
            b.wait(from_b + round);
            send(b);
        }
    })
}

/// Has the first send so many payloads, a batch at a time, and the second take them; returns the
/// nanoseconds for each of `parts` of a batch, as the one who takes them sees it.
fn flow([a, b]: &mut [End; 2], payload: &[u8], packets: u64, parts: u64) -> f64 {
    let before = a.taker.packets;
    let first = || timed(parts, |batch| a.wait(before + (batch + 1) * packets));
    both(first, || {
        let mut left = BATCHES * packets;
        while left > 0 {
            let burst = (0..left.min(64)).take_while(|_| b.push(payload)).count();
            left -= burst as u64;
            b.device.flush();
            b.turn();
        }
    })
}

/// A copy of a block from and to memory of this processor's, in nanoseconds.
fn memcpy() -> f64 {
    let (from, mut to) = (vec![7u8; BLOCK], vec![0u8; BLOCK]);
    timed(BLOCKS, |_| {
        for _ in 0..BLOCKS {
            black_box(&mut to).copy_from_slice(black_box(&from));
        }
    })
}

/// The plainest stream of blocks from one processor to the other, in nanoseconds for a block: each
/// copies packets into or out of as much memory as a ring has.
fn across() -> f64 {
    const SLOTS: usize = 64;
    struct Slot(UnsafeCell<[u8; PACKET]>, AtomicU64);
    // SAFETY: its word says whose the bytes are, and is stored with release order.
    unsafe impl Sync for Slot {}
    let slots: Vec<_> =
        (0..SLOTS).map(|_| Slot(UnsafeCell::new([0; PACKET]), AtomicU64::new(0))).collect();
    let taken = AtomicU64::new(0);
    let packets = BLOCKS * (BLOCK / PACKET) as u64;
    let mut to = vec![0u8; BLOCK];
    let first = || {
        timed(BLOCKS, |batch| {
            for number in (batch * packets..).take(packets as usize) {
                let slot = &slots[number as usize % SLOTS];
                while slot.1.load(Ordering::Acquire) != number + 1 {
                    spin_loop();
                }
                let at = number as usize * PACKET % BLOCK;
                // SAFETY: it is full, and so this side's until it is counted.
                to[at..at + PACKET].copy_from_slice(unsafe { &*slot.0.get() });
                taken.store(number + 1, Ordering::Release);
            }
        })
    };
    both(first, || {
        let from = black_box([7; PACKET]);
        for number in 0..BATCHES * packets {
            while taken.load(Ordering::Acquire) + (SLOTS as u64) <= number {
                spin_loop();
            }
            let slot = &slots[number as usize % SLOTS];
            // SAFETY: it is empty, and so this side's until it says otherwise.
            unsafe { (*slot.0.get()).copy_from_slice(black_box(&from)) };
            slot.1.store(number + 1, Ordering::Release);
        }
    })
}

/// A look that finds nothing, in nanoseconds.
fn look([a, _]: &mut [End; 2]) -> f64 {
    timed(MESSAGES, |_| {
        for _ in 0..MESSAGES {
            a.turn();
        }
    })
}

fn main() {
    println!("one way in ns; a look that finds nothing in ns");
    for others in [0, 8, 64] {
        let (mut ends, _others) = ends(others);
        for _ in 0..ROUNDS {
            let (before, frame, after) = (line(), frame(&mut ends), line());
            let (line, look) = ((before + after) / 2.0, look(&mut ends));
            let ratio = frame / line;
            println!(
                "{others:>3} more peers: line {before:>4.0} and {after:>4.0}, \
                 frame {frame:>4.0}, {ratio:.2} of it; look {look:>4.1}"
            );
        }
    }
    let (mut ends, _) = ends(0);
    println!(
        "16-byte frames; 64 KiB as packets of 4096, beside copies there and away, and one here"
    );
    for _ in 0..ROUNDS {
        let stream = 1e3 / flow(&mut ends, b"sixteen bytes...", FRAMES, FRAMES);
        let gigabytes = |nanos| BLOCK as f64 / nanos;
        let packets = BLOCKS * (BLOCK / PACKET) as u64;
        let blocks = gigabytes(flow(&mut ends, &[7; PACKET], packets, BLOCKS));
        let (across, memcpy) = (gigabytes(across()), gigabytes(memcpy()));
        println!(
            "{stream:>5.1} M/s; {blocks:>5.1} GB/s: {:.2} of {across:>5.1}, {:.2} of {memcpy:>5.1}",
            blocks / across,
            blocks / memcpy
        );
    }
}
