//! Each kind of frame is lost once, and the message arrives all the same.

use super::host::{Faults, World};
use super::{MILLI, policies};
use crate::frames::policy::{Emp, Policy, Rmpp};
use crate::frames::wire::{Head, Kind};

/// A predicate that picks the frame to be lost, by its head.
type Loses = fn(&Head) -> bool;

/// Sends a message of many frames, of which the first that `loses` says is lost.
fn arrives_without(policy: Policy, loses: Loses) -> World {
    let mut world = World::new(1, policy, Faults::NONE);
    world.post(1, 7);
    world.loses = Some(loses);
    world.send(0, 7, 60_000);
    world.pass(2000 * MILLI);
    assert_eq!(world.lost, 1, "there was such a frame");
    assert_eq!(world.hosts[1].received, [0]);
    assert_eq!(world.hosts[0].sent, [0]);
    assert!(world.is_idle());
    world
}

#[test]
fn the_first_frame_is_sent_again_when_it_is_lost() {
    for policy in policies() {
        let world = arrives_without(policy, |head| matches!(head.kind, Kind::First(..)));
        assert!(world.hosts[0].pair.statistics().resent > 0);
    }
}

#[test]
fn a_frame_in_the_middle_is_sent_again_when_it_is_lost() {
    for policy in policies() {
        arrives_without(policy, |head| matches!(head.kind, Kind::Data { frame: 9, .. }));
    }
}

#[test]
fn the_last_frame_is_sent_again_when_it_is_lost() {
    for policy in policies() {
        arrives_without(policy, |head| matches!(head.kind, Kind::Data { frame: 42, .. }));
    }
}

#[test]
fn a_collection_whose_acknowledgement_is_lost_is_sent_and_acknowledged_again() {
    for frames in [1, 3, 8] {
        let policy = Emp::default().collection(frames).into();
        let acknowledges = |head: &Head| matches!(head.kind, Kind::Acknowledged { frame: 7.. });
        let world = arrives_without(policy, acknowledges);
        let resent = world.hosts[0].pair.statistics().resent;
        assert_eq!(resent, u64::from(frames));
        assert_eq!(world.hosts[1].pair.statistics().repeated, resent);
    }
}

/// The frames of the exchange of windows, by what each does.
#[test]
fn each_step_of_the_exchange_of_windows_is_repeated_when_it_is_lost() {
    let steps: [(&str, Loses); 6] = [
        ("the first clear to send", |head| matches!(head.kind, Kind::Clear(it) if it.turn == 1)),
        ("a later clear to send", |head| matches!(head.kind, Kind::Clear(it) if it.turn == 2)),
        ("a request for more", |head| matches!(head.kind, Kind::Data { flags, .. } if flags.more)),
        ("the end", |head| matches!(head.kind, Kind::Data { flags, .. } if flags.end)),
        ("the acknowledgement", |head| head.kind == Kind::Received),
        ("the clean-up", |head| head.kind == Kind::CleanUp),
    ];
    for early in [0, 3, 6, 9, 12, 15] {
        for (what, loses) in steps {
            let world = arrives_without(Rmpp::default().early(early).into(), loses);
            let there = world.hosts[1].pair.statistics();
            let reclaimed = u64::from(what == "the clean-up");
            assert_eq!((there.reclaimed, there.cleaned_up), (reclaimed, 1 - reclaimed), "{what}");
        }
    }
}

#[test]
fn a_receiver_that_has_no_receive_says_so_again_when_that_is_lost() {
    let mut world = World::new(1, Rmpp::default().into(), Faults::NONE);
    world.loses = Some(|head| matches!(head.kind, Kind::Clear(it) if it.turn == 0));
    world.send(0, 7, 60_000);
    world.pass(100 * MILLI);
    assert_eq!((world.lost, world.hosts[1].pair.statistics().cleared), (1, 2));
    world.post(1, 7);
    world.pass(100 * MILLI);
    assert_eq!(world.hosts[1].received, [0]);
}
