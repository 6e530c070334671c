//! Two NICs joined in memory: what the benchmarks of the NIC run on.

use doorbell_core::encap::{Full, Opener, Outer, Path, PathId, Run, shm_record};
use doorbell_core::memory::{Buf, Region};
use doorbell_core::nic::{
    Change, CompletionQueue, CompletionQueueId, Config, Connection, Domain, Inline, Memory, Nic,
    Outbox, QueuePairConfig, ReceiveQueue, ReceiveRequest, Registration, Rights, Seed, SendQueue,
    Sending, WorkRequest, receive_frame, receive_record,
};
use doorbell_core::payload::Payload;
use doorbell_core::time::Time;
use doorbell_core::wire::{Headers, IpId, Mac, PathMtu, Pkey, Psn, Qpn, RemoteAddr, Rkey, UdpPort};
use std::sync::atomic::AtomicU64;

/// The frame that is being filled, and what was sealed. It never grows once it is warm.
pub(super) struct Cable {
    memory: Vec<u8>,
    run: Option<Run>,
    most: u32,
    /// The frames of this burst, by their lengths and the sizes of their packets; they lie one
    /// behind another, each in its own part of the memory.
    sealed: Vec<(usize, Option<u16>)>,
}

/// Longer than any frame.
const PART: usize = 1 << 16;
const PARTS: usize = 160;

impl Cable {
    fn new(most: u32) -> Self {
        let memory = vec![0; PART * PARTS];
        Self { memory, run: None, most, sealed: Vec::with_capacity(PARTS) }
    }

    /// Lays a packet behind the others of the frame that is being filled, or into a new one.
    #[inline(always)]
    fn lay(&mut self, path: &Path, headers: Headers, payload: impl Payload) -> Result<(), Full> {
        let Some(frame) = self.memory.chunks_exact_mut(PART).nth(self.sealed.len()) else {
            return Err(Full);
        };
        let run = match &mut self.run {
            Some(run) => run,
            none => none.insert(Run::begin(path, frame, IpId(0), self.most)),
        };
        run.push(path, frame, headers, payload)
    }

    #[inline(never)]
    fn push_to_next(
        &mut self,
        (path, headers, payload): (&Path, Headers, impl Payload),
    ) -> Result<u64, Full> {
        if self.run.as_ref().is_none_or(|run| run.packets() == 0) {
            return Err(Full);
        }
        self.flush();
        self.lay(path, headers, payload).map(|()| 0)
    }
}

impl Outbox for Cable {
    #[inline(always)]
    fn push(&mut self, path: &Path, headers: Headers, payload: impl Payload) -> Result<u64, Full> {
        match self.lay(path, headers, payload) {
            Ok(()) => Ok(0),
            Err(Full) => self.push_to_next((path, headers, payload)),
        }
    }

    #[inline]
    fn flush(&mut self) {
        let Some(run) = &self.run else { return };
        let frame = &mut self.memory[self.sealed.len() * PART..][..PART];
        let sealed = run.seal(frame);
        self.sealed.push((sealed.len, sealed.segmentation.map(|cut| cut.segment)));
        self.run = None;
    }

    fn delivered(&mut self, _: PathId) -> u64 {
        unreachable!("frames can be lost")
    }
}

/// A ring of words that loses nothing, as two processes would share one: records of whole cache
/// lines, each with its length in its tag.
pub(super) struct Ring {
    words: Vec<AtomicU64>,
    /// Where the next record begins; and how many were ever pushed and taken.
    at: usize,
    pushed: u64,
    pub(super) taken: u64,
}

/// The words of the cache lines that so many bytes take.
#[inline]
fn whole_lines(bytes: usize) -> usize {
    bytes.div_ceil(64) * 8
}

impl Ring {
    fn new() -> Self {
        let words = (0..1 << 18).map(|_| AtomicU64::new(0)).collect();
        Self { words, at: 0, pushed: 0, taken: 0 }
    }
}

impl Outbox for Ring {
    #[inline(always)]
    fn push(&mut self, _: &Path, headers: Headers, payload: impl Payload) -> Result<u64, Full> {
        let len = shm_record::record_len(&headers, payload.len());
        let words = whole_lines(len);
        let Some(record) = self.words.get(self.at..self.at + words) else { return Err(Full) };
        shm_record::emit(record, (len as u32).to_ne_bytes(), &headers, payload);
        self.at += words;
        self.pushed += 1;
        Ok(self.pushed)
    }

    fn flush(&mut self) {}

    #[inline]
    fn delivered(&mut self, _: PathId) -> u64 {
        self.taken
    }
}

/// What a program and its NIC have at one end.
pub(super) struct End<O> {
    pub(super) nic: Nic,
    pub(super) out: O,
    opener: Opener,
    pub(super) domain: Domain,
    pub(super) queue_id: CompletionQueueId,
    pub(super) pairs: Vec<(Qpn, SendQueue, ReceiveQueue)>,
    pub(super) queue: CompletionQueue,
    pub(super) region: Region,
    pub(super) memory: Registration,
}

pub(super) const DEPTH: usize = 256;
/// Enough for a burst, and for those that are not acknowledged yet.
const RECEIVES: usize = 64;

impl<O: Outbox> End<O> {
    fn new(out: O, room: usize, pairs: usize, lossless: bool, seed: u64) -> Self {
        let config = Config { queue_pairs: room, lossless, ..Config::default() };
        let mut nic = Nic::new(config, Seed::from_number(seed)).expect("a numbering");
        let domain = nic.domain();
        let (queue_id, queue) = nic.completion_queue(4096 + room).expect("a queue");
        let region = Region::new(4 << 20);
        let rights = Rights::LOCAL_WRITE | Rights::REMOTE;
        let memory = nic.register(domain, region.clone(), rights).expect("room");
        let config = QueuePairConfig {
            send_depth: DEPTH,
            receive_depth: DEPTH,
            ..QueuePairConfig::new(domain, queue_id)
        };
        let made = |_| {
            let ends = nic.queue_pair(&config).expect("room");
            (ends.qpn, ends.send, ends.receive)
        };
        let pairs = (0..pairs).map(made).collect();
        Self { nic, out, opener: Opener::default(), domain, queue_id, pairs, queue, region, memory }
    }

    fn connect(&mut self, index: usize, peer: Qpn, outer: Outer, mtu: PathMtu) {
        let path = Path::new(PathId(0), outer);
        let init = Change::Init { rights: Rights::REMOTE, pkey: Pkey::DEFAULT };
        let connection = Connection::new(peer, path, mtu, Psn::new(0));
        let sending = Sending { window: 512, ..Sending::new(Psn::new(0)) };
        let changes =
            [init, Change::ReadyToReceive(Box::new(connection)), Change::ReadyToSend(sending)];
        for change in changes {
            self.nic.change(self.pairs[index].0, change).expect("a new queue pair");
        }
    }

    /// Posts a receive whose buffer a completion brought back, or a new one.
    #[inline]
    pub(super) fn post_receive(&mut self, index: usize, memory: Memory) {
        let receive = ReceiveRequest { id: 1, memory };
        self.pairs[index].2.post(receive).expect("room");
    }

    #[inline]
    pub(super) fn post_send(&mut self, index: usize, bytes: &[u8; 16]) {
        let inline = Inline::new(bytes).expect("few bytes");
        self.pairs[index].1.post(WorkRequest::send(2, inline)).expect("room");
    }
}

/// The headers from one end to the other; they are 1 and 2.
pub(super) fn outer(from: u8, to: u8) -> Outer {
    let mac = |n| Mac([2, 0xDB, 0, 0, 0, n]);
    let at = |n, port: UdpPort| ([10, 0, 0, n], port.0).into();
    let (from_at, to_at) = (at(from, UdpPort(0xC000)), at(to, UdpPort::ROCE_V2));
    Outer::v2((mac(from), mac(to)), from_at, to_at).expect("IPv4 both")
}

fn joined<O: Outbox>(
    out: impl Fn() -> O,
    pairs: usize,
    mtu: PathMtu,
    lossless: bool,
) -> (End<O>, End<O>) {
    let [mut a, mut b] = [1, 2].map(|seed| End::new(out(), pairs, pairs, lossless, seed));
    for index in 0..pairs {
        let (qpn_a, qpn_b) = (a.pairs[index].0, b.pairs[index].0);
        a.connect(index, qpn_b, outer(1, 2), mtu);
        b.connect(index, qpn_a, outer(2, 1), mtu);
        for _ in 0..RECEIVES {
            b.post_receive(index, Memory::Buf(Buf::with_capacity(64)));
        }
    }
    (a, b)
}

/// Two ends with RoCE v2 frames between them, of up to `most` packets.
pub(super) fn by_cable(pairs: usize, mtu: PathMtu, most: u32) -> (End<Cable>, End<Cable>) {
    joined(|| Cable::new(most), pairs, mtu, false)
}

/// The same with room for so many queue pairs, and none yet.
pub(super) fn apart(room: usize) -> (End<Cable>, End<Cable>) {
    let [a, b] = [1, 2].map(|seed| End::new(Cable::new(1), room, 0, false, seed));
    (a, b)
}

/// Two ends with rings of bare records between them.
pub(super) fn by_ring(pairs: usize, mtu: PathMtu) -> (End<Ring>, End<Ring>) {
    joined(Ring::new, pairs, mtu, true)
}

/// Has one end send, and the other receive.
pub(super) trait Carry: Outbox + Sized {
    /// Takes what one end's device was given to the other's NIC.
    fn deliver(from: &mut End<Self>, to: &mut End<Self>);

    #[inline]
    fn carry(from: &mut End<Self>, to: &mut End<Self>) {
        from.nic.transmit(&mut from.out);
        Self::deliver(from, to);
    }

    /// A turn of both ends: data, and what it called for.
    #[inline]
    fn turn(a: &mut End<Self>, b: &mut End<Self>) {
        Self::carry(a, b);
        Self::carry(b, a);
    }
}

impl Carry for Cable {
    #[inline]
    fn deliver(from: &mut End<Self>, to: &mut End<Self>) {
        for (index, (len, segment)) in from.out.sealed.drain(..).enumerate() {
            let frame = &from.out.memory[index * PART..][..len];
            receive_frame(&mut to.nic, &mut to.opener, frame, segment);
        }
    }
}

impl Carry for Ring {
    #[inline]
    fn deliver(from: &mut End<Self>, to: &mut End<Self>) {
        let ring = &mut from.out;
        let mut rest = &ring.words[..ring.at];
        while let [first, ..] = rest {
            let first = first.load(std::sync::atomic::Ordering::Acquire);
            let len = u32::from_ne_bytes(shm_record::tag(first)) as usize;
            let record;
            (record, rest) = rest.split_at(whole_lines(len));
            let len = len - shm_record::TAG_LEN;
            assert!(receive_record(&mut to.nic, PathId(0), record, first, len), "it is a packet");
        }
        (ring.at, ring.taken) = (0, ring.pushed);
        from.nic.collect(&mut from.out);
    }
}

const MESSAGE: &[u8; 16] = b"sixteen bytes...";

/// One reliable send of 16 bytes, with the NIC in hand, from the post to both completions, the
/// receive posted again.
#[inline]
pub(super) fn send<O: Carry>(a: &mut End<O>, b: &mut End<O>, index: usize) {
    let inline = Inline::new(MESSAGE).expect("few bytes");
    let request = WorkRequest::send(2, inline);
    a.nic.post(&mut a.pairs[index].1, request, &mut a.out).expect("room");
    O::deliver(a, b);
    finish(a, b, index);
}

/// One reliable write of 16 bytes, with the NIC in hand, from the post to its completion.
#[inline]
pub(super) fn write<O: Carry>(a: &mut End<O>, b: &mut End<O>, address: RemoteAddr, rkey: Rkey) {
    let inline = Inline::new(MESSAGE).expect("few bytes");
    let request = WorkRequest::write(2, address, rkey, inline);
    a.nic.post(&mut a.pairs[0].1, request, &mut a.out).expect("room");
    O::deliver(a, b);
    finish(a, b, 0);
}

/// A request that only an answer completes.
#[inline]
pub(super) fn ask<O: Carry>(a: &mut End<O>, b: &mut End<O>, request: WorkRequest) {
    a.nic.post(&mut a.pairs[0].1, request, &mut a.out).expect("room");
    O::deliver(a, b);
    O::carry(b, a);
    let completion = a.queue.poll_in_place().expect("an answer");
    assert!(completion.outcome.is_ok(), "{completion:?}");
}

/// A burst of sends, posted to the queue with one doorbell.
#[inline]
pub(super) fn send_burst<O: Carry>(a: &mut End<O>, b: &mut End<O>, index: usize, burst: usize) {
    for _ in 0..burst {
        a.post_send(index, MESSAGE);
    }
    a.pairs[index].1.ring();
    O::carry(a, b);
    finish(a, b, index);
}

#[inline]
fn finish<O: Carry>(a: &mut End<O>, b: &mut End<O>, index: usize) {
    let receives = &mut b.pairs[index].2;
    while let Some(mut completion) = b.queue.poll_in_place() {
        let memory = std::mem::take(&mut completion.memory);
        receives.post(ReceiveRequest { id: 1, memory }).expect("room");
    }
    if b.nic.has_work() {
        O::carry(b, a);
    }
    while let Some(completion) = a.queue.poll_in_place() {
        assert!(completion.outcome.is_ok(), "{completion:?}");
    }
}

/// Lets the time go on at both ends.
pub(super) fn advance<O: Outbox>(a: &mut End<O>, b: &mut End<O>, nanos: u64) {
    a.nic.advance(Time::from_nanos(nanos));
    b.nic.advance(Time::from_nanos(nanos));
}
