//! NICs and their connection managers together: queue pairs that are connected by messages, used,
//! and parted again.

mod crowd;
mod link;
mod meeting;
#[cfg(feature = "planted-bugs")]
mod planted;
mod program;
mod seen;
mod splitmix;

use std::time::Duration;

use doorbell_core::cm::{Event, Extensions, Silent, Why};
use doorbell_core::encap::Version;
use doorbell_core::memory::Buf;
use doorbell_core::nic::{self, *};
use doorbell_core::wire::cm::RejectReason;
use doorbell_core::wire::{Metadata, RemoteAddr, Rkey};

use crate::reliable::common::{at, bytes, content, inline, outcomes, short};
use meeting::{METADATA, Meeting, SERVICE, Setup};

/// What an application said, with the zeros behind it.
fn said(private: &[u8], expected: &[u8]) -> bool {
    private.strip_prefix(expected).is_some_and(|rest| rest.iter().all(|&byte| byte == 0))
}

/// A send each way, and a write, a read and an addition by the one that asked.
fn use_it(meeting: &mut Meeting) {
    let Meeting { fabric, ends: [a, b], .. } = meeting;
    let (region, memory) = b.open(fabric, 64);
    let (own, into) = a.open(fabric, 64);
    a.receives(1, 16);
    b.receives(1, 16);
    a.post(short(1));
    a.post(WorkRequest::write(2, at(&memory, 0), memory.rkey, inline(&[7; 16])));
    a.post(WorkRequest::read(3, at(&memory, 0), memory.rkey, into.segment(0, 16)));
    a.post(WorkRequest::fetch_add(4, at(&memory, 8), memory.rkey, 1));
    b.post(short(9));
    let at_a = meeting.completions(0, 5);
    let mut at_b = outcomes(&meeting.completions(1, 2));
    let [a, b] = &mut meeting.ends;
    let (received, sent): (Vec<_>, Vec<_>) =
        at_a.into_iter().partition(|completion| completion.outcome == Ok(Done::Received));
    assert_eq!(bytes(&received[0]), 9_u64.to_ne_bytes());
    let before = u64::from_ne_bytes([7; 8]);
    let expected = [
        (1, Ok(Done::Sent)),
        (2, Ok(Done::Written)),
        (3, Ok(Done::Read)),
        (4, Ok(Done::Atomic { before })),
    ];
    assert_eq!(outcomes(&sent), expected);
    at_b.sort_by_key(|(id, _)| *id);
    assert_eq!(at_b, [(0, Ok(Done::Received)), (9, Ok(Done::Sent))]);
    assert_eq!(content(&own)[..16], [7; 16]);
    assert_eq!(content(&region)[8..16], (before + 1).to_ne_bytes());
    meeting.fabric.nic(a.node).deregister(into.lkey).unwrap();
    meeting.fabric.nic(b.node).deregister(memory.lkey).unwrap();
}

#[test]
fn two_queue_pairs_meet_are_used_and_part_over_every_network() {
    for version in [Version::V1, Version::V2Ipv4, Version::V2Ipv6] {
        for lossless in [false, true] {
            let mut setup = Setup { version, ..Setup::default() };
            setup.config.lossless = lossless;
            let mut meeting = Meeting::of(&setup);
            meeting.ask(b"will you?");
            let (extensions, question) = meeting.accept(b"I will");
            assert!(said(&question, b"will you?") && extensions == METADATA);
            let (agreed, answer) = meeting.ready(b"then let us");
            assert!(said(&answer, b"I will") && agreed == extensions);
            assert!(said(&meeting.stand(extensions), b"then let us"));
            use_it(&mut meeting);
            meeting.disconnect(0, b"farewell");
            let Event::Ended { why: Why::PeerLeft { private }, .. } = meeting.hear(1) else {
                panic!()
            };
            assert!(said(&private, b"farewell"));
            let ended = meeting.hear(0);
            assert!(matches!(ended, Event::Ended { why: Why::Agreed { .. }, .. }), "{ended:?}");
            meeting.leave_nothing([0, 1]);
        }
    }
}

#[test]
fn a_connection_that_is_refused_says_why() {
    let mut meeting = Meeting::new();
    meeting.ask(b"");
    let (name, _) = meeting.asked();
    meeting.fabric.manager(1).reject(name, RejectReason::CONSUMER, b"no room").unwrap();
    let Event::Failed { why: Why::Refused { reason, private, .. }, .. } = meeting.hear(0) else {
        panic!()
    };
    assert!(reason == RejectReason::CONSUMER && said(&private, b"no room"));
    meeting.leave_nothing([0, 1]);
}

#[test]
fn where_nobody_listens_a_connection_is_refused_at_once() {
    let mut meeting = Meeting::new();
    meeting.fabric.manager(1).stop(SERVICE).unwrap();
    let before = meeting.fabric.now();
    meeting.ask(b"");
    let Event::Failed { why: Why::Refused { reason, .. }, .. } = meeting.hear(0) else { panic!() };
    assert_eq!(reason, RejectReason::INVALID_SERVICE_ID);
    assert!(meeting.fabric.now().since(before) < Duration::from_micros(10));
    meeting.leave_nothing([0, 1]);
}

#[test]
fn a_connection_that_nobody_answers_times_out() {
    let mut meeting = Meeting::new();
    meeting.fabric.network.cut(meeting.link);
    meeting.ask(b"");
    let Event::Failed { why, .. } = meeting.hear(0) else { panic!() };
    assert!(matches!(why, Why::TimedOut { silence: Silent::Peer, .. }), "{why:?}");
    // 268 ms, sixteen times.
    let took = meeting.fabric.now().since(doorbell_core::time::Time::ZERO);
    assert!((4290..4300).contains(&took.as_millis()), "{took:?}");
    meeting.leave_nothing([0, 1]);
}

/// Metadata that is posted, and what becomes of it.
fn with_metadata(meeting: &mut Meeting) -> Completion {
    let Meeting { fabric, ends: [a, b], .. } = meeting;
    let (_region, memory) = b.open(fabric, 64);
    b.receives(1, 16);
    let write = WorkRequest::write(5, at(&memory, 0), memory.rkey, inline(b"data"));
    a.post(write.with_metadata(Metadata::new(b"more").unwrap()));
    let completion = meeting.completions(0, 1).remove(0);
    meeting.fabric.nic(1).deregister(memory.lkey).unwrap();
    completion
}

#[test]
fn metadata_goes_to_a_peer_that_takes_it_and_not_to_a_standard_one() {
    let none = Extensions::NONE;
    for (speak, agreed) in [
        ([METADATA, METADATA], METADATA),
        ([METADATA, none], none),
        ([none, METADATA], none),
        ([none, none], none),
    ] {
        let mut meeting = Meeting::of(&Setup { speak, ..Setup::default() });
        assert_eq!(meeting.connect(), agreed);
        let completion = with_metadata(&mut meeting);
        if agreed == METADATA {
            assert_eq!(completion.outcome, Ok(Done::Written));
            assert_eq!(meeting.completions(1, 1)[0].outcome, Ok(Done::ReceivedWrite));
        } else {
            assert_eq!(completion.outcome, Err(Failure::Broke(Cause::NoMetadata)));
            let qpn = meeting.ends[0].qpn;
            assert_eq!(meeting.hear_nic(0), nic::Event::Broken(qpn, Cause::NoMetadata));
        }
        meeting.disconnect(0, b"");
        assert!(matches!(meeting.hear(1), Event::Ended { .. }));
        assert!(matches!(meeting.hear(0), Event::Ended { .. }));
        meeting.leave_nothing([0, 1]);
    }
}

#[test]
fn data_says_that_a_connection_stands_when_the_message_is_lost() {
    let mut meeting = Meeting::new();
    meeting.ask(b"");
    let (extensions, _) = meeting.accept(b"");
    meeting.ends[1].receives(1, 16);
    meeting.ready(b"");
    // The message is on the cable.
    meeting.fabric.turn(0);
    meeting.fabric.network.cut(meeting.link);
    meeting.fabric.network.heal(meeting.link);
    meeting.ends[0].post(short(1));
    assert_eq!(meeting.hear_nic(1), nic::Event::Established(meeting.ends[1].qpn));
    assert_eq!(meeting.fabric.manager(1).event(), None);
    let name = meeting.names[1].unwrap();
    meeting.fabric.manager(1).arrived(name).unwrap();
    assert_eq!(meeting.stand(extensions), b"");
    assert_eq!(meeting.completions(1, 1)[0].outcome, Ok(Done::Received));
    meeting.ends[0].receives(1, 16);
    meeting.ends[1].post(short(2));
    assert_eq!(outcomes(&meeting.completions(1, 1)), [(2, Ok(Done::Sent))]);
    meeting.disconnect(1, b"");
    assert!(matches!(meeting.hear(0), Event::Ended { .. }));
    assert!(matches!(meeting.hear(1), Event::Ended { .. }));
    meeting.leave_nothing([0, 1]);
}

/// The NIC sent data before management datagrams: the message was overtaken by the first request,
/// and what it said was never heard.
#[test]
fn what_the_last_message_says_is_heard_though_data_is_posted_at_once() {
    let mut meeting = Meeting::new();
    meeting.ask(b"");
    let (extensions, _) = meeting.accept(b"");
    meeting.ends[1].receives(1, 16);
    meeting.ready(b"listen");
    meeting.ends[0].post(short(1));
    assert!(said(&meeting.stand(extensions), b"listen"));
    assert_eq!(meeting.completions(1, 1)[0].outcome, Ok(Done::Received));
    assert_eq!(meeting.fabric.nic(1).event(), None);
}

#[test]
fn a_connection_whose_first_request_is_refused_stands_and_ends() {
    let mut meeting = Meeting::new();
    meeting.ask(b"");
    meeting.accept(b"");
    meeting.ready(b"");
    meeting.fabric.turn(0);
    meeting.fabric.network.cut(meeting.link);
    meeting.fabric.network.heal(meeting.link);
    meeting.ends[0].post(WorkRequest::write(1, RemoteAddr(0), Rkey(0), inline(b"whose?")));
    let qpn = meeting.ends[1].qpn;
    assert_eq!(meeting.hear_nic(1), nic::Event::Established(qpn));
    let broken = meeting.hear_nic(1);
    assert!(matches!(broken, nic::Event::Broken(_, Cause::Access(_))), "{broken:?}");
    // Its queue pair can't be made ready any more; the manager is told both all the same.
    let name = meeting.names[1].unwrap();
    let manager = meeting.fabric.manager(1);
    manager.arrived(name).unwrap();
    manager.disconnect(name, b"").unwrap();
    assert!(matches!(meeting.hear(1), Event::Established { .. }));
    let completion = meeting.completions(0, 1).remove(0);
    assert_eq!(completion.outcome, Err(Failure::Broke(Cause::PeerAccess)));
    assert!(matches!(meeting.hear(0), Event::Ended { why: Why::PeerLeft { .. }, .. }));
    assert!(matches!(meeting.hear(1), Event::Ended { why: Why::Agreed { .. }, .. }));
    meeting.leave_nothing([0, 1]);
}

/// The driver's part when a queue pair broke.
fn give_up(meeting: &mut Meeting) -> Why {
    let name = meeting.names[0].unwrap();
    meeting.fabric.manager(0).disconnect(name, b"").unwrap();
    match meeting.hear(0) {
        Event::Ended { why, .. } => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_peer_that_dies_is_noticed_and_its_connection_ends() {
    let mut meeting = Meeting::new();
    meeting.connect();
    meeting.ends[0].receive(1, Buf::with_capacity(8));
    meeting.fabric.network.cut(meeting.link);
    let cause = Cause::PeerSilent { millis: 30_000, limit: Silence::Idle };
    assert_eq!(meeting.hear_nic(0), nic::Event::Broken(meeting.ends[0].qpn, cause));
    let flushed = meeting.completions(0, 1);
    assert_eq!(outcomes(&flushed), [(1, Err(Failure::Flushed(cause)))]);
    assert!(matches!(give_up(&mut meeting), Why::TimedOut { silence: Silent::End, .. }));
    meeting.leave_nothing([0]);
}

#[test]
fn a_peer_that_came_back_as_another_agrees_that_the_connection_is_over() {
    let mut meeting = Meeting::new();
    meeting.connect();
    meeting.fabric.restart(1);
    meeting.ends[0].post(short(1));
    let cause = Cause::NoAnswer { tries: 8 };
    assert_eq!(meeting.hear_nic(0), nic::Event::Broken(meeting.ends[0].qpn, cause));
    assert_eq!(meeting.completions(0, 1)[0].outcome, Err(Failure::Broke(cause)));
    assert!(matches!(give_up(&mut meeting), Why::Agreed { .. }));
    meeting.leave_nothing([0]);
}
