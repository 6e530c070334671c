//! What may be posted and made, and how much of it.

use std::time::Duration;

use doorbell_core::encap::{Full, Path, PathId};
use doorbell_core::memory::{Buf, Region};
use doorbell_core::nic::*;
use doorbell_core::payload::Payload;
use doorbell_core::wire::{Headers, Psn, Qpn};

use crate::reliable::common::{End, Setup, Two, inline, outcomes, pattern, short};

fn nic(config: Config) -> Nic {
    Nic::new(config, Seed::from_number(1)).unwrap()
}

#[test]
fn a_full_queue_gives_the_request_back() {
    let mut two = Setup { depth: 4, ..Setup::default() }.connected(|_, _| {});
    let qpn = two.a.qpn;
    for id in 0..4 {
        assert_eq!((two.a.send.room(), two.a.receive.room()), (4 - id, 4 - id));
        two.a.post(short(id as u64));
        two.a.receive(id as u64, Memory::None);
    }
    let data = Memory::Buf(Buf::from(pattern(99)));
    let refused = two.a.send.post(WorkRequest::send(7, data)).unwrap_err();
    assert_eq!(refused.why, PostError::Full { qpn, depth: 4 });
    let Data::Memory(Memory::Buf(buf)) = refused.request.data else { panic!("the same data") };
    assert_eq!((refused.request.id, &buf[..]), (7, &pattern(99)[..]));
    let memory = Buf::from(pattern(33)).into();
    let refused = two.a.receive.post(ReceiveRequest { id: 8, memory }).unwrap_err();
    assert_eq!(refused.why, PostError::Full { qpn, depth: 4 });
    assert_eq!((refused.request.id, refused.request.memory.filled()), (8, 33));

    // A request leaves its place when it completes, not when it is sent.
    two.fabric.turn(two.a.node);
    assert_eq!(two.a.send.room(), 0);
    two.b.receives(4, 8);
    two.run(4, 4);
    assert_eq!(two.a.send.room(), 4);
}

#[test]
fn a_message_of_more_than_two_gibibytes_is_refused() {
    let mut two = Two::new();
    let (_, registration) = two.a.open(&mut two.fabric, 64);
    let longest = registration.segment(0, LONGEST_MESSAGE);
    let one = registration.segment(0, 1);
    for data in [
        Memory::Segment(registration.segment(0, LONGEST_MESSAGE + 1)),
        Memory::List([longest, one].into()),
        Memory::List([registration.segment(0, u32::MAX); 3].into()),
    ] {
        let len = data.filled();
        let refused = two.a.send.post(WorkRequest::send(1, data)).unwrap_err();
        assert_eq!(refused.why, PostError::TooLong { len });
        assert_eq!(refused.request.data.len(), len);
    }
    assert!(two.a.send.post(WorkRequest::send(1, longest)).is_ok());
}

#[test]
fn tables_that_are_full_say_so_and_what_is_given_back_is_used_again() {
    let mut nic = nic(Config { queue_pairs: 3, registrations: 3, ..Config::default() });
    let domain = nic.domain();
    let (id, _queue) = nic.completion_queue(5).unwrap();
    let config =
        QueuePairConfig { send_depth: 1, receive_depth: 1, ..QueuePairConfig::new(domain, id) };
    let mut pairs: Vec<_> = (0..3).map(|_| nic.queue_pair(&config).unwrap()).collect();
    let full = ResourceError::QueuePairsFull(3);
    assert_eq!(nic.queue_pair(&config).err(), Some(full));
    let qpn = pairs.remove(1).qpn;
    nic.drop_queue_pair(qpn).unwrap();
    assert!(nic.queue_pair(&config).is_ok());
    assert_eq!(nic.queue_pair(&config).err(), Some(full));

    // Rounded up to a power of two.
    let register = |nic: &mut Nic| nic.register(domain, Region::new(10), Rights::NONE);
    let kept: Vec<_> = (0..4).map(|_| register(&mut nic).unwrap()).collect();
    assert_eq!(register(&mut nic), Err(TableFull(4)));
    assert!(nic.deregister(kept[2].lkey).is_ok());
    let gone = KeyError::Unknown(kept[2].lkey.0);
    assert_eq!(nic.deregister(kept[2].lkey).err(), Some(gone));
    let again = register(&mut nic).unwrap();
    assert_eq!(register(&mut nic), Err(TableFull(4)));
    assert!(nic.deregister(kept[2].lkey).is_err(), "the old key is none for the new entry");
    assert!(nic.deregister(again.lkey).is_ok());
}

#[test]
fn queues_must_exist_and_hold_something() {
    let mut nic = nic(Config::default());
    let domain = nic.domain();
    let (good, _queue) = nic.completion_queue(2).unwrap();
    let (small, _small) = nic.completion_queue(1).unwrap();
    let (dropped, _other) = nic.completion_queue(1).unwrap();
    nic.drop_completion_queue(dropped).unwrap();
    assert_eq!(nic.completion_queue(0).err(), Some(ResourceError::Depth(0)));
    let huge = ResourceError::Depth(usize::MAX);
    assert_eq!(nic.completion_queue(usize::MAX).err(), Some(huge));
    let config = |send, receive, send_depth, receive_depth| QueuePairConfig {
        receive_completions: receive,
        send_depth,
        receive_depth,
        ..QueuePairConfig::new(domain, send)
    };
    let none = Some(ResourceError::NoSuchCompletionQueue(dropped));
    assert_eq!(nic.queue_pair(&config(good, dropped, 1, 1)).err(), none);
    assert_eq!(nic.queue_pair(&config(dropped, good, 1, 1)).err(), none);
    for (sends, receives) in [(0, 1), (1, 0)] {
        let refused = nic.queue_pair(&config(good, good, sends, receives)).err();
        assert_eq!(refused, Some(ResourceError::Depth(0)));
    }
    // One entry for what is received, and one more for what is sent.
    let too_small = |has, needs| Some(ResourceError::QueueTooSmall { queue: small, has, needs });
    assert_eq!(nic.queue_pair(&config(small, small, 1, 1)).err(), too_small(1, 2));
    // Nothing of those that failed remains.
    assert_eq!(nic.drop_completion_queue(good), Ok(()));
    assert!(nic.queue_pair(&config(small, dropped, 1, 1)).is_err());
    assert_eq!(nic.drop_completion_queue(small), Ok(()));
}

#[test]
fn queue_pair_numbers_carry_tag_and_shard_and_are_never_reserved_ones() {
    let with = |tag, tag_bits, shard, shard_bits, number| {
        let numbering = Numbering { tag, tag_bits, shard, shard_bits };
        let config =
            Config { queue_pairs: 1 << 20, registrations: 1, numbering, ..Config::default() };
        Nic::new(config, Seed::from_number(number))
    };
    assert_eq!(with(0, 17, 0, 4, 1).err(), Some(NumberingError::TooManyBits(21)));
    let huge = Some(NumberingError::TooManyBits(u32::MAX));
    assert_eq!(with(0, u32::MAX, 0, 4, 1).err(), huge);
    assert_eq!(with(8, 3, 1, 1, 1).err(), Some(NumberingError::TooLarge { tag: 8, shard: 1 }));
    assert_eq!(with(7, 3, 2, 1, 1).err(), Some(NumberingError::TooLarge { tag: 7, shard: 2 }));

    // The lowest numbers and the highest: 0, 1 and 0xFFFFFF are not given out.
    for (tag, shard, reserved) in [(0, 0, 2), (0xFFF, 0xF, 1), (0x123, 4, 0)] {
        for seed in 0..20 {
            let mut nic = with(tag, 12, shard, 4, seed).unwrap();
            let domain = nic.domain();
            let (id, _queue) = nic.completion_queue(257).unwrap();
            let config = QueuePairConfig {
                send_depth: 1,
                receive_depth: 1,
                ..QueuePairConfig::new(domain, id)
            };
            let made = std::iter::from_fn(|| nic.queue_pair(&config).ok().map(|ends| ends.qpn));
            let mut made: Vec<u32> = made.map(Qpn::get).collect();
            made.sort_unstable();
            made.dedup();
            assert_eq!(made.len(), 256 - reserved, "all that the bits allow");
            assert!(made.iter().all(|number| number >> 8 == tag << 4 | shard));
            assert!(made.iter().all(|number| ![0, 1, 0xFF_FFFF].contains(number)));
        }
    }
}

#[test]
fn unsignalled_requests_tell_nothing_but_their_failure() {
    let mut two = Two::new();
    two.b.receives(3, 10);
    for id in 0..3 {
        let request = short(id);
        two.a.post(if id == 2 { request } else { request.unsignalled() });
    }
    let (at_a, _) = two.run(1, 3);
    assert_eq!(outcomes(&at_a), [(2, Ok(Done::Sent))]);
    assert_eq!(two.counters().0.completed, 3);
    let (_, place) = two.b.open(&mut two.fabric, 8);
    let outside = crate::reliable::common::at(&place, 1);
    let data = crate::reliable::common::inline(&[1; 8]);
    two.a.post(WorkRequest::write(5, outside, place.rkey, data).unsignalled());
    two.a.post(short(6).unsignalled());
    let (at_a, _) = two.run(2, 0);
    let cause = Cause::PeerAccess;
    let expected = [(5, Err(Failure::Broke(cause))), (6, Err(Failure::Flushed(cause)))];
    assert_eq!(outcomes(&at_a), expected);
}

#[test]
fn a_fenced_request_waits_for_reads_and_atomics_and_for_nothing_else() {
    let mut two = Two::new();
    two.b.receives(4, 10);
    let (_, place) = two.b.open(&mut two.fabric, 16);
    two.a.post(short(0));
    two.a.post(short(1).fenced());
    two.a.post(WorkRequest::read(2, place.address, place.rkey, Buf::with_capacity(8)));
    two.a.post(WorkRequest::fetch_add(3, place.address, place.rkey, 1));
    two.a.post(short(4).fenced());
    two.a.post(short(5));
    two.fabric.turn(two.a.node);
    // The last waits behind the one before it.
    assert_eq!(two.counters().0.sent, 4);
    let (at_a, _) = two.run(6, 4);
    let order: Vec<u64> = at_a.iter().map(|completion| completion.id).collect();
    assert_eq!(order, [0, 1, 2, 3, 4, 5]);
}

#[test]
fn a_queue_that_is_armed_tells_once_and_of_what_was_asked() {
    let mut two = Two::new();
    let (node, queue) = (two.b.node, two.b.queue_id);
    let arrival = Event::Completion(queue);
    let hear = |two: &mut Two, notify: Option<Notify>, request: WorkRequest| {
        if let Some(notify) = notify {
            two.fabric.nic(node).arm(queue, notify).unwrap();
        }
        two.b.receive(0, Buf::with_capacity(10));
        two.a.post(request);
        two.run(1, 1);
        two.fabric.nic(node).event()
    };
    assert_eq!(hear(&mut two, None, short(0)), None);
    assert_eq!(hear(&mut two, Some(Notify::Any), short(0)), Some(arrival));
    assert_eq!(hear(&mut two, None, short(0)), None, "once only");
    assert_eq!(hear(&mut two, Some(Notify::Solicited), short(0)), None);
    assert_eq!(hear(&mut two, None, short(0).solicited()), Some(arrival), "still armed");
    assert_eq!(hear(&mut two, None, short(0).solicited()), None);

    // A failure is always worth it; what broke the queue pair is told by itself.
    two.fabric.nic(node).arm(queue, Notify::Solicited).unwrap();
    two.b.receives(2, 10);
    two.fabric.nic(node).change(two.b.qpn, Change::Error).unwrap();
    two.run_for(Duration::from_micros(1));
    let nic = two.fabric.nic(node);
    let told = [nic.event(), nic.event(), nic.event()];
    assert_eq!(told, [Some(Event::Broken(two.b.qpn, Cause::Told)), Some(arrival), None]);
}

/// Verbs once slept through completions that had come between its look at the queue and its arming:
/// for those there is no event, and nothing said so.
#[test]
fn who_arms_a_queue_is_told_of_completions_that_came_before() {
    let mut two = Two::new();
    let (node, queue) = (two.b.node, two.b.queue_id);
    assert_eq!(two.fabric.nic(node).arm(queue, Notify::Any), Ok(false));
    two.b.receive(0, Buf::with_capacity(10));
    two.a.post(short(0));
    two.run_for(Duration::from_millis(1));
    assert_eq!(two.fabric.nic(node).arm(queue, Notify::Any), Ok(true));
    two.run(1, 1);
    assert_eq!(two.fabric.nic(node).arm(queue, Notify::Any), Ok(false));
}

/// With the NIC in hand, a request leaves without a doorbell; one that stands behind others leaves
/// behind them, and one for a queue pair of another NIC rings there.
#[test]
fn what_is_posted_with_the_nic_in_hand_leaves_at_once_and_in_order() {
    struct Sent(Vec<Psn>);
    impl Outbox for Sent {
        fn push(&mut self, _: &Path, headers: Headers, _: impl Payload) -> Result<u64, Full> {
            self.0.push(headers.bth.psn());
            Ok(0)
        }

        fn flush(&mut self) {}

        fn delivered(&mut self, _: PathId) -> u64 {
            unreachable!("frames can be lost")
        }
    }

    let mut two = Setup::default().connected(|_, sending| sending.first = Psn::new(7));
    let mut sent = Sent(Vec::new());
    let End { node, send, .. } = &mut two.a;
    let nic = two.fabric.nic(*node);
    let request = |id| WorkRequest::send(id, inline(b"at once"));
    nic.post(send, request(1), &mut sent).unwrap();
    assert_eq!(sent.0, [7].map(Psn::new));
    send.post(request(2)).unwrap();
    nic.post(send, request(3), &mut sent).unwrap();
    assert_eq!(sent.0, [7, 8, 9].map(Psn::new));
    assert!(!nic.has_work());

    let theirs = two.fabric.nic(two.b.node);
    theirs.post(&mut two.a.send, request(4), &mut sent).unwrap();
    assert_eq!(sent.0.len(), 3);
    assert!(two.fabric.nic(two.a.node).has_work(), "its doorbell rings");
}
