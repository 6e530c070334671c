//! The programs whose speed is measured: a ping-pong and a stream, as a user would write them.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Instant;

use doorbell_core::encap::Path;
use doorbell_core::memory::Region;
use doorbell_core::wire::{Imm, Qpn, RemoteAddr, Rkey};

use crate::device::Device;
use crate::meet::Meeting;
use crate::nic::{Data, Nic, Rings, WorkRequest};
use crate::port::{InHand, Port};
use crate::report::Latencies;

/// Both processes register the same memory at the same address, so neither has to be told.
const BASE: RemoteAddr = RemoteAddr(0x1000_0000);
const KEY: Rkey = Rkey(0x5A);
const REGION: usize = 64 << 10;
const NUMBER: Qpn = Qpn::new(0x2A00);

/// Turns to spin before sleeping: some tenths of a second, so that a measurement never does.
pub const PATIENT: u32 = 50_000_000;
/// To sleep whenever a first burst of turns finds nothing.
pub const IMPATIENT: u32 = 0;

/// Requests in a work queue: a few for who waits for each, many for who does not.
pub const SHALLOW: u32 = 128;
pub const DEEP: u32 = 2048;

/// What a program has in its hands.
pub struct Side<D: Device> {
    pub port: Arc<Port<D>>,
    pub rings: Rings,
    pub region: Region,
}

/// How a receiver learns of a write.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// It watches the memory.
    Memory,
    /// The write brings an immediate, which takes a receive and completes it.
    Immediate,
}

/// Runs `program` with a NIC on `device`, on a worker of a runtime that has another, idle one.
///
/// # Errors
/// If the runtime fails, or the NIC saw anything that a whole one would have had to repair.
pub fn with_nic<D: Device, F, T>(
    device: D,
    path: Path,
    (depth, patience): (u32, u32),
    program: impl FnOnce(Side<D>) -> F,
) -> io::Result<T>
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let region = Region::new(REGION);
        let mut nic = Nic::new();
        let key = nic.register(region.clone(), BASE);
        assert_eq!(key, KEY, "the first registration has the key that the peer expects");
        let rings = nic.connect(NUMBER, NUMBER, path, depth);
        let port = Port::new(device, nic, patience)?;
        let watch = tokio::spawn(Arc::clone(&port).watch());
        let side = Side { port: Arc::clone(&port), rings, region };
        let result = tokio::spawn(program(side)).await.map_err(io::Error::other)?;
        watch.abort();
        let counters = port.counters();
        if counters.lost() > 0 {
            return Err(io::Error::other(format!("the NIC saw losses: {counters:?}")));
        }
        Ok(result)
    })
}

fn request(id: u64, notice: Notice, offset: u64, bytes: [u8; 16], len: u8) -> WorkRequest {
    WorkRequest {
        id,
        address: RemoteAddr(BASE.0 + offset),
        rkey: KEY,
        imm: (notice == Notice::Immediate).then_some(Imm(id as u32)),
        signalled: true,
        awaited: false,
        data: Data::Inline { bytes, len },
    }
}

/// Two words that both say which round it is.
fn stamp(round: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&round.to_ne_bytes());
    bytes[8..].copy_from_slice(&round.to_ne_bytes());
    bytes
}

/// Writes of 16 bytes, back and forth: each is posted with the NIC still in hand from the one
/// that it answers.
pub async fn ping_pong<D: Device>(
    side: Side<D>,
    meeting: Arc<Meeting>,
    notice: Notice,
    rounds: u64,
) -> Latencies {
    let Side { port, mut rings, region } = side;
    let mut times = Latencies::new(rounds);
    if notice == Notice::Immediate {
        (0..32).for_each(|id| rings.post_receive(id));
    }
    meeting.meet();
    let mut start = Instant::now();
    if meeting.leads() {
        rings.post(request(1, notice, 0, stamp(1), 16));
        port.ring();
    }
    for round in 1..=rounds {
        while rings.is_full() {
            let _ = port.until(|| rings.poll_completion()).await;
        }
        let nic = arrival(&port, &mut rings, &region, notice, round).await;
        if meeting.leads() {
            times.record_round_trip(start.elapsed());
            start = Instant::now();
        }
        let next = round + u64::from(meeting.leads());
        if next <= rounds {
            nic.post(&mut rings, request(next, notice, 0, stamp(next), 16));
        }
    }
    meeting.meet_async(&port).await;
    times
}

/// Waits for the write of a round; returns with the NIC in hand.
#[inline]
async fn arrival<'p, D: Device>(
    port: &'p Port<D>,
    rings: &mut Rings,
    region: &Region,
    notice: Notice,
    round: u64,
) -> InHand<'p, D> {
    let nic = match notice {
        Notice::Memory => {
            let came = || (region.load(8) == Ok(round)).then_some(());
            let ((), nic) = port.until(came).await;
            // Completions of what was sent come now and then, many at a time.
            while rings.poll_completion().is_some() {}
            nic
        }
        Notice::Immediate => {
            // Past all that was sent: a look that leaves something behind sleeps on it for ever.
            let received = || loop {
                let completion = rings.poll_completion()?;
                if completion.imm.is_some() {
                    break Some(completion);
                }
            };
            let (completion, nic) = port.until(received).await;
            let in_order = Some(Imm(round as u32));
            assert_eq!(completion.imm, in_order, "receives complete in the order of the writes");
            rings.post_receive(completion.id);
            nic
        }
    };
    assert_eq!(region.load(0), Ok(round), "the first word came before the last");
    nic
}

/// `count` writes of 8 bytes one way; returns how many a second were acknowledged.
pub async fn stream<D: Device>(side: Side<D>, meeting: Arc<Meeting>, count: u64) -> f64 {
    let Side { port, mut rings, region } = side;
    let slots = (REGION / 8) as u64;
    if !meeting.leads() {
        rings.post_receive(0);
        meeting.meet();
        let imm = port.until(|| rings.poll_completion()).await.0.imm;
        assert_eq!(imm, Some(Imm(count as u32)), "the last write says how many there were");
        for id in count.saturating_sub(slots) + 1..=count {
            let found = region.load((id % slots * 8) as usize);
            assert_eq!(found, Ok(id), "write {id} is where it was sent");
        }
        meeting.meet_async(&port).await;
        return 0.0;
    }
    meeting.meet();
    let last = Region::from_bytes(&count.to_ne_bytes());
    let start = Instant::now();
    let mut posted = 0;
    let mut completed = 0;
    while completed < count {
        while posted < count && !rings.is_full() {
            posted += 1;
            rings.post(stream_request(posted, count, slots, &last));
        }
        port.ring();
        // One completion stands for all the requests before it.
        completed = port.until(|| rings.poll_completion()).await.0.id;
        while let Some(completion) = rings.poll_completion() {
            completed = completion.id;
        }
    }
    let rate = count as f64 / start.elapsed().as_secs_f64();
    meeting.meet_async(&port).await;
    rate
}

/// A small write with its bytes inside; the last one brings an immediate, too, and takes its bytes
/// from registered memory.
fn stream_request(id: u64, count: u64, slots: u64, last: &Region) -> WorkRequest {
    let offset = id % slots * 8;
    if id == count {
        let data = Data::Region { region: last.clone(), offset: 0, len: 8 };
        let request = request(id, Notice::Immediate, offset, [0; 16], 8);
        return WorkRequest { awaited: true, data, ..request };
    }
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&id.to_ne_bytes());
    let signalled = id.is_multiple_of(128);
    WorkRequest { signalled, ..request(id, Notice::Memory, offset, bytes, 8) }
}
