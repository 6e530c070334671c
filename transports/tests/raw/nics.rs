//! Two NICs over raw devices.

use doorbell_core::encap::Path;
use doorbell_core::memory::{Buf, Region};
use doorbell_core::nic::*;
use doorbell_core::wire::{Pkey, Psn, Qpn, RemoteAddr};
use doorbell_kit::lab;
use doorbell_transports::Device;

use crate::common::{reach, until, v1, v2};

struct End<D> {
    nic: Nic,
    device: D,
    pair: QueuePairEnds,
    queue: CompletionQueue,
    region: Region,
    lent: Registration,
}

const MEMORY: usize = 1 << 20;

impl<D: Device> End<D> {
    fn new(device: D, seed: u64) -> Self {
        let mut nic = Nic::new(Config::default(), Seed::from_number(seed)).expect("a numbering");
        let domain = nic.domain();
        let (queue_id, queue) = nic.completion_queue(256).expect("room");
        let pair = nic.queue_pair(&QueuePairConfig::new(domain, queue_id)).expect("room");
        let region = Region::new(MEMORY);
        let rights = Rights::LOCAL_WRITE | Rights::REMOTE;
        let lent = nic.register(domain, region.clone(), rights).expect("room");
        Self { nic, device, pair, queue, region, lent }
    }

    fn connect(&mut self, path: Path, peer: Qpn) {
        let mtu = self.device.capabilities().mtu;
        let connection = Connection::new(peer, path, mtu, Psn::new(7));
        for change in [
            Change::Init { rights: Rights::REMOTE, pkey: Pkey::DEFAULT },
            Change::ReadyToReceive(Box::new(connection)),
            Change::ReadyToSend(Sending::new(Psn::new(7))),
        ] {
            self.nic.change(self.pair.qpn, change).expect("a new queue pair");
        }
    }

    fn turn(&mut self) {
        self.nic.advance(self.device.now());
        self.device.receive(&mut self.nic);
        self.nic.transmit(&mut self.device);
    }

    fn post(&mut self, request: WorkRequest) {
        self.pair.send.post(request).expect("room");
        self.pair.send.ring();
    }
}

/// Has both take turns until one of them has something complete.
fn complete<A: Device, B: Device>(one: &mut End<A>, other: &mut End<B>) -> Completion {
    let done = until("a completion", || {
        other.turn();
        one.turn();
        one.queue.poll()
    });
    assert!(done.outcome.is_ok(), "{done:?}");
    done
}

/// Sends, writes and reads, short and long, by two devices.
fn exchange<D: Device>(mut near: D, mut far: D) {
    let [there, back] = [reach(&mut near, &mut far), reach(&mut far, &mut near)];
    let (mut near, mut far) = (End::new(near, 1), End::new(far, 2));
    near.connect(there, far.pair.qpn);
    far.connect(back, near.pair.qpn);
    for round in 1..=20u64 {
        let short = Inline::new(&round.to_ne_bytes()).expect("few bytes");
        let (lent, rkey, half) = (far.lent.address.0, far.lent.rkey, MEMORY / 2);
        let place = |at| RemoteAddr(lent + at);
        near.region.store(half, round).expect("a word");
        let long = near.lent.segment(half as u64, half as u32);
        let memory = Memory::Buf(Buf::with_capacity(64));
        far.pair.receive.post(ReceiveRequest { id: round, memory }).expect("room");
        for number in 0..50 {
            near.post(WorkRequest::write(number, place(8 * number), rkey, short).unsignalled());
        }
        near.post(WorkRequest::write(100, place(half as u64), rkey, long).unsignalled());
        near.post(WorkRequest::send(101, short));
        let received = complete(&mut far, &mut near);
        assert_eq!(received.id, round);
        assert_eq!(complete(&mut near, &mut far).id, 101);
        // What was written before it was sent is there.
        for at in [0, 8 * 49, half] {
            assert_eq!(far.region.load(at), Ok(round));
        }
        near.region.store(half, 0).expect("a word");
        near.post(WorkRequest::read(102, place(half as u64), rkey, long));
        assert_eq!(complete(&mut near, &mut far).id, 102);
        assert_eq!(near.region.load(half), Ok(round));
    }
    for end in [near.device.statistics(), far.device.statistics()] {
        assert_eq!((end.refused, end.overrun), (0, 0), "{end:?}");
    }
}

#[test]
fn nics_exchange_by_roce_v1() {
    lab::test(|lab| {
        for (cable, mtu) in [("0", 1500), ("1", 9000)] {
            let [a, b] = ["a", "b"].map(|end| format!("{end}{cable}"));
            lab.cable(&a, &b, mtu).unwrap();
            exchange(v1(&a, 1), lab.far.within(|| v1(&b, 1)));
        }
    });
}

/// By either family, cut by the receiver, by the sender, or not at all.
#[test]
fn nics_exchange_by_roce_v2() {
    lab::test(|lab| {
        for (cable, mtu) in [(0, 1500), (1, 9000)] {
            let [a, b] = ["a", "b"].map(|end| format!("{end}{cable}"));
            lab.cable(&a, &b, mtu).unwrap();
            let ipv4 = [101, 102].map(|host| format!("10.219.{cable}.{host}/24"));
            for networks in [None, Some(&ipv4)] {
                for cut in [true, false] {
                    lab.near.offload(&a, "tx-udp-segmentation", cut).unwrap();
                    let open = || {
                        let near = v2(&a, networks.map(|[near, _]| &near[..])).unwrap();
                        let far = networks.map(|[_, far]| &far[..]);
                        (near, lab.far.within(|| v2(&b, far)).unwrap())
                    };
                    let (near, far) = open();
                    exchange(near, far);
                    let (near, far) = open();
                    exchange(near.without_offload(), far.without_offload());
                }
            }
        }
    });
}
