//! Two NICs over raw devices.

use doorbell_core::nic::{Completion, Inline, WorkRequest};
use doorbell_core::wire::RemoteAddr;
use doorbell_kit::{Rig, joined, lab, until};
use doorbell_transports::Device;

use crate::raw::common::{v1, v2};

/// Has both take turns until one of them has something complete.
fn complete<D: Device>(one: &mut Rig<D>, other: &mut Rig<D>) -> Completion {
    let done = until("a completion", || {
        other.turn();
        one.turn();
        one.queue.poll()
    });
    assert!(done.outcome.is_ok(), "{done:?}");
    done
}

/// Sends, writes and reads, short and long, by two devices.
fn exchange<D: Device>(near: D, far: D) {
    let (mut near, mut far) = joined(near, far);
    let half = near.region.len() / 2;
    for round in 1..=20u64 {
        let short = Inline::new(&round.to_ne_bytes()).expect("few bytes");
        let (lent, rkey) = (far.lent.address.0, far.lent.rkey);
        let place = |at| RemoteAddr(lent + at);
        near.region.store(half, round).expect("a word");
        let long = near.lent.segment(half as u64, half as u32);
        far.receive(round, 64);
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
    // Of what is sent once there is never more on the way than there is room for.
    let timeouts = near.nic.counters().timeouts + far.nic.counters().timeouts;
    for end in [near.device.statistics(), far.device.statistics()] {
        assert!(end.refused == 0 && (end.overrun == 0 || timeouts > 0), "{end:?}, {timeouts}");
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
