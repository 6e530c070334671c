//! An established connection allocates nothing, whatever is sent along it.

use std::time::Duration;

use doorbell_core::encap::{Full, Opener, Outer, Path, PathId, Run};
use doorbell_core::memory::{Buf, Region};
use doorbell_core::nic::*;
use doorbell_core::payload::Payload;
use doorbell_core::time::Time;
use doorbell_core::wire::*;
use doorbell_kit::Allocated;

/// Counts the memory that each thread allocates.
#[global_allocator]
static ALLOCATED: Allocated = Allocated::nothing();

/// Frames on their way from one NIC to the other, in memory that is used again and again.
struct Wire {
    frames: Vec<Vec<u8>>,
    lengths: Vec<usize>,
}

impl Wire {
    fn new() -> Self {
        Self { frames: vec![vec![0; 1200]; 64], lengths: Vec::with_capacity(64) }
    }

    fn deliver(&mut self, to: &mut Nic, opener: &mut Opener) {
        for (frame, len) in self.frames.iter().zip(self.lengths.drain(..)) {
            receive_frame(to, opener, &frame[..len], None);
        }
    }
}

impl Outbox for Wire {
    fn push(&mut self, path: &Path, headers: Headers, payload: impl Payload) -> Result<u64, Full> {
        let frame = self.frames.get_mut(self.lengths.len()).ok_or(Full)?;
        let mut run = Run::begin(path, frame, IpId(0), 1);
        run.push(path, frame, headers, payload)?;
        self.lengths.push(run.seal(frame).len);
        Ok(0)
    }

    fn flush(&mut self) {}

    fn delivered(&mut self, _: PathId) -> u64 {
        0
    }
}

/// Kinds of message.
const KINDS: u64 = 12;

/// A NIC and its program.
struct Side {
    nic: Nic,
    wire: Wire,
    opener: Opener,
    ends: QueuePairEnds,
    queue: CompletionQueue,
    queue_id: CompletionQueueId,
    registration: Registration,
}

impl Side {
    fn new(number: u64) -> Self {
        let config = Config { queue_pairs: 4, registrations: 4, ..Config::default() };
        let mut nic = Nic::new(config, Seed::from_number(number)).unwrap();
        let domain = nic.domain();
        let (queue_id, queue) = nic.completion_queue(64).unwrap();
        let config = QueuePairConfig {
            send_depth: 16,
            receive_depth: 16,
            ..QueuePairConfig::new(domain, queue_id)
        };
        let ends = nic.queue_pair(&config).unwrap();
        let rights = Rights::LOCAL_WRITE | Rights::REMOTE;
        let registration = nic.register(domain, Region::new(1 << 16), rights).unwrap();
        let (wire, opener) = (Wire::new(), Opener::default());
        Self { nic, wire, opener, ends, queue, queue_id, registration }
    }

    fn connect(&mut self, address: [u8; 4], peer: Qpn, peer_address: [u8; 4]) {
        let [own_mac, peer_mac] = [address, peer_address].map(|it| Mac([2, 0, 0, 0, 0, it[3]]));
        let (from, to) = ((address, 0xC000).into(), (peer_address, UdpPort::ROCE_V2.0).into());
        let outer = Outer::v2((own_mac, peer_mac), from, to).expect("IPv4 both");
        let path = Path::new(PathId(0), outer);
        let (psn, qpn) = (Psn::new(77), self.ends.qpn);
        let connection = Connection::new(peer, path, PathMtu::Mtu1024, psn);
        let init = Change::Init { rights: Rights::REMOTE, pkey: Pkey::DEFAULT };
        self.nic.change(qpn, init).unwrap();
        self.nic.change(qpn, Change::ReadyToReceive(connection.into())).unwrap();
        self.nic.change(qpn, Change::ReadyToSend(Sending::new(psn))).unwrap();
    }
}

/// Sends message `id` of twelve kinds: inline, in a buffer and from registered memory, of one
/// packet and of several, as a send, a write, a read and an atomic operation. `buf` goes along
/// where one is needed.
fn request(id: u64, to: Registration, from: Registration, buf: Option<Buf>) -> WorkRequest {
    let inline = Inline::new(&id.to_ne_bytes()).unwrap();
    let place = RemoteAddr(to.address.0 + 40);
    match (id % KINDS, buf) {
        (0, _) => WorkRequest::send(id, inline).awaited(),
        (1, _) => WorkRequest::write(id, place, to.rkey, inline),
        (2 | 6, Some(buf)) => WorkRequest::send(id, buf).with_imm(Imm(1)),
        (3, Some(buf)) => WorkRequest::write(id, place, to.rkey, buf),
        (4, _) => WorkRequest::send(id, from.segment(8, 3000)).solicited(),
        (5, _) => WorkRequest::write(id, place, to.rkey, from.segment(16, 5000)).unsignalled(),
        (7, _) => WorkRequest::write(id, place, to.rkey, inline).with_imm(Imm(2)).awaited(),
        (8, _) => WorkRequest::read(id, place, to.rkey, from.segment(24, 3000)),
        (9, Some(buf)) => WorkRequest::read(id, place, to.rkey, buf),
        (10, _) => WorkRequest::fetch_add(id, to.address, to.rkey, 1),
        (11, _) => {
            let metadata = Metadata::new(b"sixteen at most.").unwrap();
            WorkRequest::write(id, place, to.rkey, inline).with_metadata(metadata)
        }
        _ => unreachable!("a buffer is there whenever one is needed"),
    }
}

const fn takes_receive(id: u64) -> bool {
    matches!(id % KINDS, 0 | 2 | 4 | 6 | 7 | 11)
}

#[test]
fn ten_thousand_messages_allocate_nothing() {
    const WARM: u64 = 200;
    const ALL: u64 = WARM + 10_000;
    let (mut a, mut b) = (Side::new(1), Side::new(2));
    let (qpn_a, qpn_b) = (a.ends.qpn, b.ends.qpn);
    a.connect([10, 0, 0, 1], qpn_b, [10, 0, 0, 2]);
    b.connect([10, 0, 0, 2], qpn_a, [10, 0, 0, 1]);

    let mut spare: Vec<Buf> = (0..16).map(|_| Buf::from(vec![9; 2500])).collect();
    for id in 0..8 {
        let segment = b.registration.segment(8192 * (id & 3), 4096);
        let memory =
            if id & 1 == 0 { Buf::with_capacity(4096).into() } else { Memory::Segment(segment) };
        b.ends.receive.post(ReceiveRequest { id, memory }).unwrap();
    }
    let (mut posted, mut told, mut received, mut now) = (0, 0, 0, Time::ZERO);
    let mut before = 0;
    let expected = (0..ALL).filter(|&id| takes_receive(id)).count();
    while received < expected || a.nic.counters().completed < ALL {
        if posted >= WARM && before == 0 {
            before = Allocated::count_of_thread();
        }
        while posted < ALL.min(told + 6) && a.ends.send.room() > 0 {
            let needs = matches!(posted % KINDS, 2 | 3 | 6 | 9);
            let buf = if needs { spare.pop() } else { None };
            let request = request(posted, b.registration, a.registration, buf);
            a.ends.send.post(request).unwrap();
            posted += 1;
        }
        a.ends.send.ring();
        for side in [&mut a, &mut b] {
            side.nic.arm(side.queue_id, Notify::Any).unwrap();
            now = now + Duration::from_micros(3);
            side.nic.advance(now);
            side.nic.transmit(&mut side.wire);
        }
        a.wire.deliver(&mut b.nic, &mut b.opener);
        b.wire.deliver(&mut a.nic, &mut a.opener);
        while let Some(completion) = a.queue.poll() {
            assert!(completion.outcome.is_ok(), "{completion:?}");
            told = completion.id + 1;
            if let Memory::Buf(buf) = completion.memory {
                spare.push(buf);
            }
        }
        while let Some(completion) = b.queue.poll() {
            assert!(completion.outcome.is_ok(), "{completion:?}");
            received += 1;
            let (id, memory) = (completion.id, completion.memory);
            b.ends.receive.post(ReceiveRequest { id, memory }).unwrap();
        }
        while a.nic.event().or(b.nic.event()).is_some() {}
    }
    assert_eq!(
        Allocated::count_of_thread() - before,
        0,
        "allocations after the first {WARM} messages"
    );
    assert!(before > 0);
}
