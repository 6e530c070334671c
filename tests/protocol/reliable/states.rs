//! The states of a queue pair: which ways lead where, and what may be posted in each.

use std::time::Duration;

use doorbell_core::memory::Buf;
use doorbell_core::nic::*;
use doorbell_core::wire::{PathMtu, Pkey, Psn, Qpn};

use crate::reliable::common::{End, Setup, Two, outcomes, short};

/// The changes that lead to a state; two lead to sending, and to reset none but a reset.
fn changes(two: &Two, to: State) -> Vec<Change> {
    let path = two.fabric.path(two.a.node, two.b.node);
    let psn = Psn::new(5);
    match to {
        State::Reset => vec![],
        State::Init => vec![Change::Init { rights: Rights::NONE, pkey: Pkey::DEFAULT }],
        State::ReadyToReceive => {
            let connection = Connection::new(two.b.qpn, path, PathMtu::Mtu1024, psn);
            vec![Change::ReadyToReceive(connection.into())]
        }
        State::ReadyToSend => vec![Change::ReadyToSend(Sending::new(psn)), Change::Resume],
        State::Draining => vec![Change::Drain],
        State::Error => vec![Change::Error],
    }
}

/// A queue pair that went the customary way to a state.
fn in_state(state: State) -> Two {
    let mut two = Setup::default().unconnected();
    let way = match state {
        State::Reset => 0,
        State::Init | State::Error => 1,
        State::ReadyToReceive => 2,
        State::ReadyToSend => 3,
        State::Draining => 4,
    };
    let stations = [State::Init, State::ReadyToReceive, State::ReadyToSend, State::Draining];
    for station in stations.into_iter().take(way) {
        let change = changes(&two, station).remove(0);
        two.fabric.nic(two.a.node).change(two.a.qpn, change).unwrap();
    }
    if state == State::Error {
        two.fabric.nic(two.a.node).change(two.a.qpn, Change::Error).unwrap();
    }
    assert_eq!(two.fabric.nic(two.a.node).state(two.a.qpn), Some(state));
    two
}

#[test]
fn each_change_is_made_or_refused_with_both_states_named() {
    use State::{Draining, Error, Init, ReadyToReceive, ReadyToSend, Reset};
    let mut allowed = Vec::new();
    for from in State::ALL {
        for to in State::ALL {
            let made = changes(&in_state(from), to).len().max(1);
            for which in 0..made {
                let mut two = in_state(from);
                let qpn = two.a.qpn;
                let change = changes(&two, to).into_iter().nth(which);
                let resumes = matches!(change, Some(Change::Resume));
                let nic = two.fabric.nic(two.a.node);
                let changed = match change {
                    Some(change) => nic.change(qpn, change),
                    None => nic.reset(&mut two.a.send, &mut two.a.receive),
                };
                match changed {
                    Ok(()) => {
                        assert_eq!(nic.state(qpn), Some(to));
                        assert!(from.may_become(to));
                        assert_eq!(resumes, (from, to) == (Draining, ReadyToSend));
                        allowed.push((from, to));
                    }
                    Err(why) => {
                        assert_eq!(why, ChangeError::Transition { qpn, from, to });
                        let said = why.to_string();
                        assert!(said.contains(&format!("{from:?}")), "{said}");
                        assert!(said.contains(&format!("{to:?}")), "{said}");
                        assert_eq!(nic.state(qpn), Some(from));
                    }
                }
            }
        }
    }
    let to_reset = State::ALL.map(|from| (from, Reset));
    let to_error = State::ALL.map(|from| (from, Error));
    let others = [
        (Reset, Init),
        (Init, Init),
        (Init, ReadyToReceive),
        (ReadyToReceive, ReadyToSend),
        (Draining, ReadyToSend),
        (ReadyToSend, Draining),
    ];
    let mut expected: Vec<_> = to_reset.into_iter().chain(to_error).chain(others).collect();
    expected.retain(|way| *way != (Reset, Error));
    assert_eq!(allowed.len(), expected.len());
    assert!(expected.iter().all(|way| allowed.contains(way)), "{allowed:?}");
}

#[test]
fn what_can_be_posted_depends_on_the_state_and_a_refusal_names_it() {
    for state in State::ALL {
        let mut two = in_state(state);
        let qpn = two.a.qpn;
        let sends = matches!(state, State::ReadyToSend | State::Draining | State::Error);
        match two.a.send.post(short(3)) {
            Ok(()) => assert!(sends, "{state:?}"),
            Err(refused) => {
                assert!(!sends, "{state:?}");
                assert_eq!(refused.why, PostError::State { qpn, state, what: "a send" });
                assert_eq!(refused.request.id, 3);
            }
        }
        let memory = Buf::with_capacity(10).into();
        match two.a.receive.post(ReceiveRequest { id: 4, memory }) {
            Ok(()) => assert_ne!(state, State::Reset),
            Err(refused) => {
                assert_eq!(state, State::Reset);
                assert_eq!(refused.why, PostError::State { qpn, state, what: "a receive" });
                assert_eq!(refused.request.id, 4);
                assert_eq!(refused.request.memory.room(), 10);
            }
        }
    }
}

#[test]
fn a_window_must_be_from_one_to_half_the_sequence_numbers() {
    for (window, good) in [(0, false), (1, true), ((1 << 23) - 1, true), (1 << 23, false)] {
        let mut two = in_state(State::ReadyToReceive);
        let change = Change::ReadyToSend(Sending { window, ..Sending::new(Psn::new(0)) });
        let changed = two.fabric.nic(two.a.node).change(two.a.qpn, change);
        assert_eq!(changed, if good { Ok(()) } else { Err(ChangeError::Window(window)) });
    }
}

#[test]
fn a_queue_pair_that_there_is_not_is_not_changed() {
    let mut two = in_state(State::Reset);
    let nic = two.fabric.nic(two.a.node);
    let unknown = Qpn::new(two.a.qpn.get() ^ 1);
    let refused = Err(ChangeError::NoSuchQueuePair(unknown));
    assert_eq!(nic.change(unknown, Change::Error), refused);
    assert_eq!(nic.state(unknown), None);
    assert_eq!(nic.drop_queue_pair(unknown), Err(ResourceError::NoSuchQueuePair(unknown)));
}

#[test]
fn draining_finishes_what_was_begun_and_resuming_begins_the_rest() {
    let mut two = Setup::default().connected(|_, sending| sending.window = 2);
    two.b.receives(6, 2000);
    for id in 0..3 {
        let data = Memory::Buf(Buf::from(vec![1; 1500]));
        two.a.post(WorkRequest::send(id, data));
    }
    // One message of two packets is under way: that is the window.
    two.fabric.turn(two.a.node);
    let (node, qpn) = (two.a.node, two.a.qpn);
    two.fabric.nic(node).change(qpn, Change::Drain).unwrap();
    two.a.post(short(3));
    assert_eq!(two.fabric.nic(node).event(), None);
    two.run_for(Duration::from_millis(10));
    assert_eq!(outcomes(&two.a.poll()), [(0, Ok(Done::Sent))]);
    assert_eq!(two.fabric.nic(node).event(), Some(Event::Drained(qpn)));
    assert_eq!(two.fabric.nic(node).event(), None);
    // It still receives.
    two.a.receives(1, 10);
    two.b.post(short(50));
    let (at_a, at_b) = two.run(1, 2);
    assert_eq!(at_a[0].outcome, Ok(Done::Received));
    assert_eq!(outcomes(&at_b), [(0, Ok(Done::Received)), (50, Ok(Done::Sent))]);

    two.fabric.nic(node).change(qpn, Change::Resume).unwrap();
    let (at_a, _) = two.run(3, 3);
    assert_eq!(at_a.iter().map(|completion| completion.id).collect::<Vec<_>>(), [1, 2, 3]);

    // With nothing under way, it is drained at once.
    two.fabric.nic(node).change(qpn, Change::Drain).unwrap();
    assert_eq!(two.fabric.nic(node).event(), Some(Event::Drained(qpn)));
}

#[test]
fn a_reset_is_refused_while_anything_is_outstanding() {
    let mut two = Two::new();
    let (node, qpn) = (two.a.node, two.a.qpn);
    two.a.receives(2, 10);
    let refused = Err(ChangeError::Outstanding { qpn, outstanding: 2 });
    assert_eq!(two.a.reset(&mut two.fabric), refused);
    two.fabric.nic(node).change(qpn, Change::Error).unwrap();
    let flushed = Err(Failure::Flushed(Cause::Told));
    let (at_a, _) = two.run(2, 0);
    assert_eq!(outcomes(&at_a), [(0, flushed), (1, flushed)]);
    assert_eq!(two.a.reset(&mut two.fabric), Ok(()));
}

#[test]
fn a_reset_takes_both_ends_of_one_queue_pair_and_of_its_own_nic() {
    let setup = Setup::default();
    let mut two = setup.connected(|_, _| {});
    let mut other = End::new(&mut two.fabric, two.a.node, setup.depth, setup.capacity);
    let (a, b, third) = (two.a.qpn, two.b.qpn, other.qpn);
    let nic = two.fabric.nic(two.a.node);
    let refused = Err(ChangeError::OfAnotherNic(b));
    assert_eq!(nic.reset(&mut two.b.send, &mut two.b.receive), refused);
    assert_eq!(nic.reset(&mut two.a.send, &mut two.b.receive), refused);
    assert_eq!(nic.reset(&mut two.b.send, &mut two.a.receive), refused);
    let refused = Err(ChangeError::OfTwo { send: a, receive: third });
    assert_eq!(nic.reset(&mut two.a.send, &mut other.receive), refused);
    let refused = Err(ChangeError::OfTwo { send: third, receive: a });
    assert_eq!(nic.reset(&mut other.send, &mut two.a.receive), refused);
    assert_eq!(nic.state(a), Some(State::ReadyToSend));
    assert_eq!(nic.reset(&mut two.a.send, &mut two.a.receive), Ok(()));
    assert_eq!(nic.state(a), Some(State::Reset));
}

#[test]
fn a_queue_pair_is_used_again_after_a_reset() {
    let setup = Setup::default();
    let mut two = setup.connected(|_, _| {});
    for round in 0..5 {
        two.b.receives(3, 3000);
        for id in 0..3 {
            let data = Memory::Buf(Buf::from(vec![round; 2500]));
            two.a.post(WorkRequest::send(id, data));
        }
        // Sometimes in the middle of a message.
        let wanted = usize::from(round % 4);
        let (sent, received) = two.run(wanted, wanted);
        for (node, qpn) in [(two.a.node, two.a.qpn), (two.b.node, two.b.qpn)] {
            two.fabric.nic(node).change(qpn, Change::Error).unwrap();
        }
        two.run(3 - sent.len(), 3 - received.len());
        for end in [&mut two.a, &mut two.b] {
            end.reset(&mut two.fabric).unwrap();
        }
        let ends = ((two.a.node, two.a.qpn), (two.b.node, two.b.qpn));
        two.fabric.connect(ends.0, ends.1, setup.mtu, |_, _| {});
    }
}

/// A refusal that was owed to the old peer was once sent to the new one, with the number of the
/// packet that was expected of that: it broke the new connection.
#[test]
fn what_is_owed_to_an_old_peer_is_not_said_to_the_new_one() {
    let setup = Setup::default();
    let mut two = setup.connected(|_, _| {});
    let (_, place) = two.b.open(&mut two.fabric, 64);
    let wrong = doorbell_core::wire::Rkey(place.rkey.0 ^ 1 << 31);
    two.a.post(WorkRequest::write(0, place.address, wrong, crate::reliable::common::inline(b"no")));
    two.fabric.turn(two.a.node);
    // The frame arrives, and before the NIC has its turn it is told to forget.
    let limit = two.fabric.now() + Duration::from_millis(1);
    let (_, event) = two.fabric.network.step(limit).unwrap();
    let doorbell_simulation::Event::Frame(frame) = event else { panic!("{event:?}") };
    two.fabric.arrive(two.b.node, &frame);
    assert_eq!(two.counters().1.fatal_naks_sent, 1);
    two.b.reset(&mut two.fabric).unwrap();

    let mut third = End::new(&mut two.fabric, two.a.node, setup.depth, setup.capacity);
    let ends = ((third.node, third.qpn), (two.b.node, two.b.qpn));
    two.fabric.connect(ends.0, ends.1, PathMtu::Mtu1024, |_, _| {});
    two.b.receives(1, 2000);
    third.post(WorkRequest::send(1, Memory::Buf(Buf::from(vec![1; 2000]))));
    two.run(0, 1);
    two.run_for(Duration::from_millis(10));
    assert_eq!(outcomes(&third.poll()), [(1, Ok(Done::Sent))]);
}

#[test]
fn taking_a_queue_pair_down_flushes_it_and_frees_its_place() {
    let setup =
        Setup { config: Config { queue_pairs: 1, ..Config::default() }, ..Setup::default() };
    let mut two = setup.connected(|_, _| {});
    (0..3).for_each(|id| two.a.post(short(id)));
    two.a.receives(2, 10);
    two.fabric.turn(two.a.node);
    let nic = two.fabric.nic(two.a.node);
    let config = QueuePairConfig {
        send_depth: 1,
        receive_depth: 1,
        ..QueuePairConfig::new(two.a.domain, two.a.queue_id)
    };
    assert_eq!(nic.queue_pair(&config).err(), Some(ResourceError::QueuePairsFull(1)));
    let queue = two.a.queue_id;
    let in_use = Err(ResourceError::InUse { queue, users: 2 });
    assert_eq!(nic.drop_completion_queue(queue), in_use);

    drop((two.a.send, two.a.receive));
    nic.drop_queue_pair(two.a.qpn).unwrap();
    let flushed = Err(Failure::Flushed(Cause::Told));
    let completions: Vec<_> = std::iter::from_fn(|| two.a.queue.poll()).collect();
    assert_eq!(
        outcomes(&completions),
        [(0, flushed), (1, flushed), (2, flushed), (0, flushed), (1, flushed)]
    );
    assert_eq!(nic.state(two.a.qpn), None);
    assert_eq!(nic.next_timeout(), None);
    assert!(nic.queue_pair(&config).is_ok());
}

#[test]
fn a_queue_pair_that_can_still_be_posted_to_is_not_taken_down_and_works_as_before() {
    let mut two = Two::new();
    let (node, qpn) = (two.a.node, two.a.qpn);
    let refused = Err(ResourceError::HasEnds(qpn));
    two.b.receives(2, 8);
    two.a.post(short(0));
    assert_eq!(two.fabric.nic(node).drop_queue_pair(qpn), refused);
    assert_eq!(two.fabric.nic(node).state(qpn), Some(State::ReadyToSend));
    let (sent, _) = two.run(1, 1);
    assert_eq!(outcomes(&sent), [(0, Ok(Done::Sent))]);

    // Either end is one too many; the work that the other left goes on.
    let End { mut send, receive, mut queue, .. } = two.a;
    drop(receive);
    assert_eq!(two.fabric.nic(node).drop_queue_pair(qpn), refused);
    send.post(short(1)).unwrap();
    send.ring();
    drop(send);
    assert!(two.fabric.run_until(Duration::from_secs(1), |_| !queue.is_empty()));
    assert_eq!(queue.poll().map(|completion| completion.outcome), Some(Ok(Done::Sent)));
    assert_eq!(two.fabric.nic(node).event(), None, "nothing broke it");
    assert_eq!(two.fabric.nic(node).drop_queue_pair(qpn), Ok(()));
    let gone = Err(ResourceError::NoSuchQueuePair(qpn));
    assert_eq!(two.fabric.nic(node).drop_queue_pair(qpn), gone);
}

/// What was posted at that very moment was once lost without a completion.
#[test]
fn whatever_is_accepted_while_a_queue_pair_is_taken_down_completes() {
    const ROUNDS: u64 = 200;
    let mut setup = Setup { capacity: 4096, ..Setup::default() };
    setup.config.queue_pairs = 1;
    let mut fabric = doorbell_simulation::Fabric::new(1, setup.version, setup.config);
    let node = fabric.node();
    for round in 0..ROUNDS {
        let End { qpn, queue_id, mut queue, mut send, mut receive, .. } =
            End::new(&mut fabric, node, 64, setup.capacity);
        let peer = (fabric.path(node, node), fabric.nic(node).first_psn());
        let connection = Connection::new(qpn, peer.0, PathMtu::Mtu1024, peer.1);
        fabric.ready(node, qpn, connection, Sending::new(peer.1));
        fabric.nic(node).change(qpn, Change::Error).unwrap();
        let program = std::thread::spawn(move || {
            let mut accepted = 0;
            for id in 0..round % 50 {
                accepted += u64::from(send.post(short(id)).is_ok());
                let memory = Memory::None;
                accepted += u64::from(receive.post(ReceiveRequest { id, memory }).is_ok());
            }
            accepted
        });
        while let Err(why) = fabric.nic(node).drop_queue_pair(qpn) {
            assert_eq!(why, ResourceError::HasEnds(qpn));
            fabric.turn(node);
        }
        let completed = std::iter::from_fn(|| queue.poll()).count() as u64;
        assert_eq!(completed, program.join().unwrap());
        fabric.nic(node).drop_completion_queue(queue_id).unwrap();
    }
}

#[test]
fn a_queue_pair_stays_while_its_completions_find_no_room() {
    let mut two = Setup { capacity: 2, ..Setup::default() }.connected(|_, _| {});
    let (node, qpn, queue) = (two.a.node, two.a.qpn, two.a.queue_id);
    two.a.receives(5, 10);
    let End { send, receive, queue: mut completions, .. } = two.a;
    drop((send, receive));
    let mut poll = || std::iter::from_fn(|| completions.poll()).count();
    for left in [3, 1] {
        let refused = Err(ResourceError::Outstanding { qpn, outstanding: left });
        assert_eq!(two.fabric.nic(node).drop_queue_pair(qpn), refused);
        assert_eq!(two.fabric.nic(node).state(qpn), Some(State::Error));
        assert_eq!(poll(), 2);
    }
    assert_eq!(two.fabric.nic(node).drop_queue_pair(qpn), Ok(()));
    assert_eq!(poll(), 1);
    assert_eq!(two.fabric.nic(node).drop_completion_queue(queue), Ok(()));
    let gone = Err(ResourceError::NoSuchCompletionQueue(queue));
    assert_eq!(two.fabric.nic(node).drop_completion_queue(queue), gone);
    assert_eq!(two.fabric.nic(node).arm(queue, Notify::Any).map(drop), gone);
}
