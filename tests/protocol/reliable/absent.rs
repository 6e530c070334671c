//! Peers that are not there, over a device that cannot lose: it delivers what nobody takes, and
//! that must not pass for done.

use std::time::Duration;

use doorbell_core::memory::Buf;
use doorbell_core::nic::*;
use doorbell_core::wire::{Bth, Extensions, Headers, Opcode, Packet, Pkey, Psn, Qkey, Qpn};
use doorbell_simulation::{Fabric, NodeId};

use crate::reliable::common::{End, Setup, Two, lossless, outcomes, pattern, short};
use crate::reliable::devices::{Held, Sent, give};

const NO_ANSWER: Cause = Cause::NoAnswer { tries: 1 };

/// Takes a queue pair down, and hands back what had completed by then.
fn take_down(fabric: &mut Fabric, end: End) -> Vec<Completion> {
    let End { node, qpn, mut queue, send, receive, .. } = end;
    drop((send, receive));
    fabric.nic(node).drop_queue_pair(qpn).unwrap();
    std::iter::from_fn(|| queue.poll()).collect()
}

/// Whether a NIC owes another a refusal, or a notice.
fn owes(two: &mut Two, from: NodeId, to: NodeId) -> bool {
    let link = two.fabric.path(from, to).id();
    two.fabric.nic(from).unsent_responses()(link)
}

/// Connects one side only.
fn connect(fabric: &mut Fabric, end: &End, to: &End) {
    let psn = fabric.nic(end.node).first_psn();
    let path = fabric.path(end.node, to.node);
    let connection = Connection::new(to.qpn, path, Setup::default().mtu, psn);
    fabric.ready(end.node, end.qpn, connection, Sending::new(psn));
}

fn init(pkey: Pkey) -> Change {
    Change::Init { rights: Rights::NONE, pkey }
}

/// The first is to blame, and all behind it are flushed.
fn assert_all_failed(completions: &[Completion], cause: Cause) {
    let mut expected = vec![Err(Failure::Flushed(cause)); completions.len()];
    expected[0] = Err(Failure::Broke(cause));
    let found: Vec<_> = completions.iter().map(|completion| completion.outcome).collect();
    assert_eq!(found, expected);
}

fn succeeded(completions: &[Completion]) -> usize {
    completions.iter().filter(|completion| completion.outcome.is_ok()).count()
}

/// It was once told as received.
#[test]
fn what_is_sent_to_a_queue_pair_that_does_not_take_it_fails() {
    type Make = fn(&mut Two);
    let unready: [(&str, Make); 6] = [
        ("reset", |_| {}),
        ("init", |two| two.fabric.nic(two.b.node).change(two.b.qpn, init(Pkey::DEFAULT)).unwrap()),
        ("broken before it was connected", |two| {
            for change in [init(Pkey::DEFAULT), Change::Error] {
                two.fabric.nic(two.b.node).change(two.b.qpn, change).unwrap();
            }
        }),
        ("another number", |two| two.b.qpn = Qpn::new(two.b.qpn.get() ^ 1)),
        ("a number of nobody", |two| two.b.qpn = Qpn::new(0)),
        ("another partition", |two| {
            let path = two.fabric.path(two.b.node, two.a.node);
            let connection = Connection::new(two.a.qpn, path, Setup::default().mtu, Psn::new(0));
            for change in [init(Pkey(0x8001)), Change::ReadyToReceive(connection.into())] {
                two.fabric.nic(two.b.node).change(two.b.qpn, change).unwrap();
            }
        }),
    ];
    for (what, make) in unready {
        let mut two = lossless().unconnected();
        make(&mut two);
        let Two { fabric, a, b, .. } = &mut two;
        connect(fabric, a, b);
        for id in 0..3 {
            a.post(WorkRequest::send(id, Memory::Buf(Buf::from(pattern(3000)))));
        }
        let (sent, _) = two.run(3, 0);
        assert_all_failed(&sent, NO_ANSWER);
        let (at_a, at_b) = two.counters();
        assert_eq!((at_a.notices_received, at_a.completed), (1, 0), "{what}");
        assert!(at_b.notices_sent > 0 && at_b.completed == 0, "{what}: {at_b:?}");
        two.run_for(Duration::from_millis(1));
        let (nic, qpn) = (two.fabric.nic(two.a.node), two.a.qpn);
        assert_eq!(nic.event(), Some(Event::Broken(qpn, NO_ANSWER)));
        assert_eq!((nic.event(), nic.has_work()), (None, false));
    }
}

/// A queue pair of another service counted what came, dropped it and said nothing.
#[test]
fn what_is_sent_to_a_queue_pair_of_another_service_fails() {
    for transport in [Transport::Unreliable, Transport::Datagram] {
        let mut two = lossless().unconnected();
        let Two { fabric, a, b, .. } = &mut two;
        *b = End::of(fabric, b.node, transport, 8, 64);
        connect(fabric, a, b);
        match transport {
            Transport::Datagram => {
                let (qkey, mtu) = (Qkey(7), Setup::default().mtu);
                for change in [init(Pkey::DEFAULT), Change::ReadyForDatagrams { qkey, mtu }] {
                    fabric.nic(b.node).change(b.qpn, change).unwrap();
                }
            }
            _ => connect(fabric, b, a),
        }
        b.receives(3, 64);
        (0..3).for_each(|id| a.post(short(id)));
        let (sent, received) = two.run(3, 0);
        assert_all_failed(&sent, NO_ANSWER);
        assert!(received.is_empty() && two.counters().1.wrong_service > 0, "{transport:?}");
    }
}

/// Another pair of queue pairs, between the same nodes.
fn neighbours(two: &mut Two, setup: &Setup) -> [End; 2] {
    let Two { fabric, a, b, .. } = two;
    let ends = [&*a, &*b].map(|end| End::new(fabric, end.node, setup.depth, setup.capacity));
    let names = [0, 1].map(|end| (ends[end].node, ends[end].qpn));
    fabric.connect(names[0], names[1], setup.mtu, |_, _| {});
    ends
}

#[test]
fn of_a_stream_to_a_peer_that_is_taken_down_only_what_it_took_succeeds() {
    let mut partial = 0;
    for nanos in (0..40_000).step_by(499) {
        let setup = Setup { seed: nanos, ..lossless() };
        let mut two = setup.connected(|_, sending| sending.window = 8);
        let [mut other, mut others_peer] = neighbours(&mut two, &setup);
        two.b.receives(30, 4000);
        others_peer.receives(30, 4000);
        for id in 0..30 {
            let request = || WorkRequest::send(id, Memory::Buf(Buf::from(pattern(2500))));
            two.a.post(request());
            other.post(request());
        }
        two.run_for(Duration::from_nanos(nanos));
        let Two { mut fabric, mut a, b, .. } = two;
        let received = succeeded(&take_down(&mut fabric, b));
        let (mut sent, mut others) = (Vec::new(), Vec::new());
        assert!(fabric.run_until(Duration::from_secs(1), |_| {
            sent.extend(a.poll());
            others.extend(other.poll());
            sent.len() == 30 && others.len() == 30
        }));
        let done = succeeded(&sent);
        assert!(done <= received, "{nanos} ns: {done} of {received}");
        if done < 30 {
            assert_all_failed(&sent[done..], NO_ANSWER);
        }
        partial += usize::from((1..30).contains(&done));
        assert_eq!((succeeded(&others), succeeded(&others_peer.poll())), (30, 30));
        let counters = *fabric.nic(a.node).counters();
        assert_eq!(counters.notices_received, u64::from(done < 30));
    }
    assert!(partial > 20, "{partial} were cut off in the middle");
}

/// Its packets are numbered otherwise than those of the new peer, which is not disturbed.
#[test]
fn who_sends_to_a_queue_pair_that_has_another_peer_by_now_fails_and_the_other_does_not() {
    let setup = lossless();
    let mut two = setup.connected(|_, _| {});
    let mut third = End::new(&mut two.fabric, two.a.node, setup.depth, setup.capacity);
    two.b.reset(&mut two.fabric).unwrap();
    let ends = ((third.node, third.qpn), (two.b.node, two.b.qpn));
    two.fabric.connect(ends.0, ends.1, setup.mtu, |_, _| {});
    two.b.receives(40, 8);
    for id in 0..20 {
        two.a.post(short(id));
        third.post(short(100 + id));
    }
    let (sent, received) = two.run(20, 20);
    assert_all_failed(&sent, NO_ANSWER);
    two.run_for(Duration::from_millis(1));
    assert_eq!(succeeded(&third.poll()), 20);
    for (index, completion) in received.iter().enumerate() {
        assert_eq!(crate::reliable::common::bytes(completion), (100 + index as u64).to_ne_bytes());
    }
}

/// The peer remembers the old connection: where it expects a packet, where it is broken, and where
/// it has refused one and lets those pass that come behind it.
#[test]
fn who_connects_anew_to_a_peer_that_does_not_fails() {
    for (ready, broken) in [(true, false), (true, true), (false, false)] {
        for seed in 0..10 {
            let setup = Setup { seed, ..lossless() };
            let mut two = setup.connected(|_, sending| sending.rnr_retries = 0);
            if ready {
                two.b.receives(10, 8);
            }
            two.a.post(short(0));
            two.run(1, usize::from(ready));
            if broken {
                two.fabric.nic(two.b.node).change(two.b.qpn, Change::Error).unwrap();
            }
            two.a.reset(&mut two.fabric).unwrap();
            connect(&mut two.fabric, &two.a, &two.b);
            two.b.poll();
            (1..4).for_each(|id| two.a.post(short(id)));
            let (sent, _) = two.run(3, 0);
            assert_all_failed(&sent, NO_ANSWER);
            assert_eq!(succeeded(&two.b.poll()), 0);
        }
    }
}

/// A notice of what was under way before says nothing of what is since.
#[test]
fn what_was_under_way_when_both_sides_began_anew_does_no_harm() {
    for nanos in (0..8_000).step_by(97) {
        let setup = Setup { seed: nanos, ..lossless() };
        let mut two = setup.connected(|_, _| {});
        two.b.receives(60, 8);
        (0..60).for_each(|id| two.a.post(short(id)));
        two.run_for(Duration::from_nanos(nanos));
        for end in [&mut two.a, &mut two.b] {
            two.fabric.nic(end.node).change(end.qpn, Change::Error).unwrap();
            two.fabric.nic(end.node).transmit(&mut Held::new(0));
            end.poll();
            end.reset(&mut two.fabric).unwrap();
        }
        let ends = ((two.a.node, two.a.qpn), (two.b.node, two.b.qpn));
        two.fabric.connect(ends.0, ends.1, setup.mtu, |_, _| {});
        two.b.receives(20, 8);
        (0..20).for_each(|id| two.a.post(short(id)));
        let (sent, received) = two.run(20, 20);
        assert_eq!((succeeded(&sent), succeeded(&received)), (20, 20), "after {nanos} ns");
    }
}

/// Until it is said, the device must not tell how far this NIC has come.
#[test]
fn a_refusal_that_is_owed_when_a_queue_pair_goes_is_owed_by_its_nic() {
    for reset in [false, true] {
        let mut two = lossless().connected(|_, _| {});
        let (a, b) = (two.a.node, two.b.node);
        let (mut to_a, mut to_b) = (Held::new(0), Held::new(9));
        two.a.post(short(0));
        two.a.post(short(1));
        two.fabric.nic(a).transmit(&mut to_b);
        give(&mut two, b, a, &to_b.take());
        give(&mut two, b, a, &to_b.take());
        assert_eq!(two.counters().1.rnr_naks_sent, 1);
        if reset {
            two.b.reset(&mut two.fabric).unwrap();
        } else {
            let another = End::new(&mut two.fabric, b, 1, 2);
            let gone = std::mem::replace(&mut two.b, another);
            take_down(&mut two.fabric, gone);
        }
        two.fabric.nic(b).transmit(&mut to_a);
        assert!(owes(&mut two, b, a) && two.fabric.nic(b).has_work());
        to_a.room = 9;
        two.fabric.nic(b).transmit(&mut to_a);
        assert!(!owes(&mut two, b, a) && !two.fabric.nic(b).has_work());

        give(&mut two, a, b, &to_a.take());
        two.fabric.nic(a).collect(&mut to_b);
        two.fabric.nic(a).transmit(&mut to_b);
        assert_all_failed(&two.a.poll(), NO_ANSWER);
        assert!(to_a.packets.is_empty());
    }
}

/// A request to a queue pair, as its peer could have sent it.
fn request(number: u32, psn: u32) -> Sent {
    let bth = Bth::new(Opcode::RcSendOnly, Qpn::new(number), Psn::new(psn));
    (Headers { bth, extensions: Extensions::None }, Vec::new())
}

#[test]
fn packets_that_follow_each_other_are_one_notice_and_those_of_others_are_others() {
    let mut two = lossless().unconnected();
    let (a, b) = (two.a.node, two.b.node);
    for index in 0..100 {
        give(&mut two, b, a, &request(7, 0xFF_FFF0 + index));
        give(&mut two, b, a, &request(7, 500 + index));
        give(&mut two, b, a, &request(8, 500 + index));
        // Again, and what is answered, and what has no connection.
        give(&mut two, b, a, &request(8, 500));
        let mut others = request(9, 1);
        for opcode in [Opcode::RcReadResponseMiddle, Opcode::UcSendOnly] {
            others.0.bth = others.0.bth.with_opcode(opcode);
            give(&mut two, b, a, &others);
        }
    }
    let mut to_a = Held::new(99);
    two.fabric.nic(b).transmit(&mut to_a);
    assert_eq!((to_a.packets.len(), two.counters().1.notices_sent), (3, 3));
    assert_eq!(two.counters().1.no_such_queue_pair, 600);
}

/// The numbers of one continue those of the other, and so one notice is about both; and whoever has
/// another peer may have any numbers.
#[test]
fn all_that_send_to_nobody_hear_of_it_however_their_numbers_lie_and_nobody_else_does() {
    let setup = lossless();
    let mut two = setup.unconnected();
    let (a, b) = (two.a.node, two.b.node);
    let (nobody, somebody) = (Qpn::new(two.b.qpn.get() ^ 1), two.b.qpn);
    let mut ends = [(nobody, 10), (nobody, 11), (somebody, 10)].map(|(peer, psn)| {
        let end = End::new(&mut two.fabric, a, setup.depth, setup.capacity);
        let (path, psn) = (two.fabric.path(a, b), Psn::new(psn));
        let connection = Connection::new(peer, path, setup.mtu, psn);
        two.fabric.ready(a, end.qpn, connection, Sending::new(psn));
        end
    });
    let (path, psn) = (two.fabric.path(b, a), Psn::new(10));
    let connection = Connection::new(ends[2].qpn, path, setup.mtu, psn);
    two.fabric.ready(b, somebody, connection, Sending::new(psn));
    two.b.receives(1, 8);
    let (mut to_a, mut to_b) = (Held::new(9), Held::new(9));
    for end in &mut ends {
        end.post(short(1));
        two.fabric.nic(a).transmit(&mut to_b);
        give(&mut two, b, a, &to_b.take());
    }
    two.fabric.nic(b).transmit(&mut to_a);
    give(&mut two, a, b, &to_a.take());
    assert!(to_a.packets.is_empty());
    to_b.delivered = to_b.pushed;
    two.fabric.nic(a).collect(&mut to_b);
    two.fabric.nic(a).transmit(&mut to_b);
    let unanswered = Err(Failure::Broke(NO_ANSWER));
    let found = ends.map(|mut end| outcomes(&end.poll()));
    assert_eq!(found, [unanswered, unanswered, Ok(Done::Sent)].map(|outcome| [(1, outcome)]));
}

/// Its own refusal says why, and must not be overtaken.
#[test]
fn who_is_refused_hears_that_before_the_notice_of_what_it_sent_behind() {
    let mut two = lossless().connected(|_, _| {});
    let (a, b) = (two.a.node, two.b.node);
    let (_, place) = two.b.open(&mut two.fabric, 8);
    let (mut to_a, mut to_b) = (Held::new(9), Held::new(9));
    give(&mut two, b, a, &request(3, 3));
    let data = Memory::Buf(Buf::from(vec![1; 9]));
    two.a.post(WorkRequest::write(0, place.address, place.rkey, data));
    (1..4).for_each(|id| two.a.post(short(id)));
    two.fabric.nic(a).transmit(&mut to_b);
    while let Some(packet) = to_b.packets.pop_front() {
        give(&mut two, b, a, &packet);
    }
    two.fabric.nic(b).transmit(&mut to_a);
    while let Some(packet) = to_a.packets.pop_front() {
        give(&mut two, a, b, &packet);
    }
    two.fabric.nic(a).transmit(&mut to_b);
    assert_all_failed(&two.a.poll(), Cause::PeerAccess);
}

/// What is not noted must not be forgotten.
#[test]
fn a_link_with_more_senders_in_vain_than_can_be_noted_is_told_that_it_may_be_any() {
    const MANY: u32 = 1000;
    let mut two = lossless().connected(|_, _| {});
    let third = two.fabric.node();
    let (a, b) = (two.a.node, two.b.node);
    let (mut to_a, mut to_b) = (Held::new(9999), Held::new(9));
    two.b.receives(3, 8);
    two.a.post(short(0));
    two.fabric.nic(a).transmit(&mut to_b);
    give(&mut two, b, third, &request(3, 1));
    for number in 0..MANY {
        give(&mut two, b, a, &request(2 * number, number));
    }
    give(&mut two, b, third, &request(4, 1));
    two.fabric.nic(b).transmit(&mut to_a);
    // Two of one link, and one of the other.
    assert_eq!(to_a.packets.len(), 3);
    let one = to_a.take();
    let any = to_a.take();
    give(&mut two, a, b, &one);
    assert_eq!(two.counters().0.stray_answers, 1);
    // It came by another link than what is under way.
    give(&mut two, a, third, &any);
    assert_eq!(two.counters().0.stray_answers, 2);
    give(&mut two, a, b, &any);
    assert_eq!(two.counters().0.notices_received, 1);
    two.fabric.nic(a).transmit(&mut to_b);
    assert_all_failed(&two.a.poll(), NO_ANSWER);
}

/// What `two.b` would say, were it not connected, of the packet that `two.a` is about to send.
fn notice(two: &mut Two) -> Sent {
    let mut there = lossless().unconnected();
    let mut device = Held::new(9);
    two.fabric.nic(two.a.node).transmit(&mut device);
    let (a, b) = (there.a.node, there.b.node);
    give(&mut there, b, a, &device.take());
    there.fabric.nic(b).transmit(&mut device);
    device.take()
}

#[test]
fn a_notice_is_believed_only_where_nothing_can_be_lost_and_from_the_link_that_it_is_about() {
    let mut lossy = Two::new();
    lossy.a.post(short(0));
    let said = notice(&mut lossy);
    let (a, b) = (lossy.a.node, lossy.b.node);
    give(&mut lossy, a, b, &said);
    assert_eq!(lossy.counters().0.no_such_queue_pair, 1);
    assert_eq!((lossy.fabric.nic(a).event(), lossy.counters().0.notices_received), (None, 0));

    let mut two = lossless().connected(|_, _| {});
    let third = two.fabric.node();
    two.a.post(short(0));
    let said = notice(&mut two);
    let outer = *Setup::default().unconnected().fabric.path(a, b).outer();
    let (headers, payload) = (said.0, &[][..]);
    two.fabric.nic(a).packet(Flow::Network(1, &outer), &Packet { headers, payload });
    assert_eq!((two.counters().0.no_such_queue_pair, owes(&mut two, a, b)), (1, false));
    give(&mut two, a, third, &said);
    assert_eq!((two.counters().0.stray_answers, two.fabric.nic(a).event()), (1, None));
    give(&mut two, a, b, &said);
    assert_eq!((two.counters().0.stray_answers, two.counters().0.notices_received), (1, 1));
    assert_eq!(two.fabric.nic(a).event(), Some(Event::Broken(two.a.qpn, NO_ANSWER)));
    give(&mut two, a, b, &said);
    assert_eq!((two.counters().0.stray_answers, two.fabric.nic(a).event()), (2, None));
    two.fabric.nic(a).transmit(&mut Held::new(0));
    assert_eq!(outcomes(&two.a.poll()), [(0, Err(Failure::Broke(NO_ANSWER)))]);
}
