//! Pairs of engines, with a network between them that loses, repeats and reorders by a seed, and
//! whose time passes by itself.

mod controls;
mod host;
mod hostile;
mod seeds;

use std::time::Duration;

use host::{Faults, World};

use super::{Lost, Timing};
use crate::frames::policy::{Emp, Policy, Rmpp};

const MILLI: Duration = Duration::from_millis(1);

fn policies() -> Vec<Policy> {
    let emp = [1, 3, 8].map(|frames| Policy::from(Emp::default().collection(frames)));
    let rmpp = [0, 3, 15].map(|frames| Policy::from(Rmpp::default().early(frames)));
    [&emp[..], &rmpp[..]].concat()
}

#[test]
fn a_message_without_a_receive_is_dropped_and_delivered_once_a_receive_is_posted() {
    for policy in policies() {
        let mut world = World::new(1, policy, Faults::NONE);
        world.send(0, 7, 20_000);
        world.pass(200 * MILLI);
        let there = world.hosts[1].pair.statistics();
        assert!(there.dropped > 0 && there.messages_received == 0, "{policy:?}: {there:?}");
        assert!(world.hosts[1].received.is_empty());
        world.post(1, 7);
        world.pass(500 * MILLI);
        assert_eq!(world.hosts[1].received, [0], "{policy:?}");
        assert_eq!(world.hosts[0].sent, [0]);
        assert!(world.is_idle(), "{policy:?}");
    }
}

// The first message fills what may be on its way, if only by its size.
#[test]
fn a_message_whose_receive_is_posted_overtakes_those_that_wait_for_theirs() {
    for policy in policies() {
        let mut world = World::new(2, policy, Faults::NONE);
        world.send(0, 7, 2_000_000);
        world.send(0, 8, 20_000);
        world.post(1, 8);
        world.pass(500 * MILLI);
        assert_eq!(world.hosts[1].received, [1], "{policy:?}");
        world.post(1, 7);
        world.pass(5000 * MILLI);
        assert_eq!(world.hosts[1].received, [1, 0], "{policy:?}");
    }
}

// Probes of messages without receives once took all the room on the way, and none was left for the
// rest of the one message whose receive was posted.
#[test]
fn messages_sent_at_once_arrive_at_receives_that_are_posted_one_after_another() {
    for policy in policies() {
        let mut world = World::new(7, policy, Faults::NONE);
        (0..30).for_each(|tag| world.send(0, tag, 50_000));
        world.pass(500 * MILLI);
        for tag in 0..30 {
            world.post(1, tag);
            world.pass(300 * MILLI);
            assert_eq!(world.hosts[1].received.len() as u64, tag + 1, "{policy:?}");
        }
        assert!(world.hosts[0].failed.is_empty() && world.is_idle(), "{policy:?}");
    }
}

#[test]
fn a_peer_that_has_no_receive_but_sends_is_not_gone() {
    let mut world = World::new(9, Emp::default().into(), Faults::NONE);
    world.send(0, 7, 20_000);
    for tag in 10..16 {
        world.pass(Timing::default().patience / 3);
        world.post(0, tag);
        world.send(1, tag, 20_000);
    }
    assert_eq!(world.hosts[0].failed, [(0, Lost::Silent)]);
    assert!(world.hosts[0].gone.is_empty());
}

#[test]
fn a_message_without_a_receive_is_not_given_up_while_its_peer_answers_others() {
    for policy in policies() {
        let mut world = World::new(8, policy, Faults::NONE);
        world.send(0, 7, 20_000);
        for tag in 10..16 {
            world.pass(Timing::default().patience / 3);
            world.post(1, tag);
            world.send(0, tag, 20_000);
        }
        world.pass(500 * MILLI);
        world.post(1, 7);
        world.pass(500 * MILLI);
        assert_eq!(world.hosts[1].received, [1, 2, 3, 4, 5, 6, 0], "{policy:?}");
    }
}

#[test]
fn a_silent_peer_is_an_error_on_both_sides_and_the_next_messages_arrive() {
    for policy in policies() {
        let mut world = World::new(3, policy, Faults::NONE);
        world.post(1, 7);
        world.send(0, 7, 2_000_000);
        // Part of the message has come.
        world.pass(MILLI / 10);
        world.is_cut = true;
        world.pass(Timing::default().patience * 3);
        assert_eq!(world.hosts[0].failed, [(0, Lost::Silent)], "{policy:?}");
        assert_eq!(world.hosts[1].failed, [(7, Lost::Silent)], "{policy:?}");
        assert!(world.hosts.iter().all(|host| host.gone == [Lost::Silent]), "{policy:?}");
        world.is_cut = false;
        world.send(0, 9, 5000);
        world.post(1, 9);
        world.pass(500 * MILLI);
        assert_eq!(world.hosts[1].received, [1], "{policy:?}");
    }
}

#[test]
fn the_memory_of_notes_is_bounded_and_no_message_is_lost() {
    for policy in policies() {
        let mut world = World::new(4, policy, Faults::NONE);
        world.hosts[1].receives.most_noted = 4;
        (0..50).for_each(|tag| world.send(0, tag, 3000));
        world.pass(300 * MILLI);
        assert_eq!(world.hosts[1].receives.noted.len(), 4);
        assert!(world.hosts[1].pair.statistics().crowded > 0, "{policy:?}");
        (0..50).for_each(|tag| world.post(1, tag));
        world.pass(9000 * MILLI);
        let mut received = world.hosts[1].received.clone();
        received.sort_unstable();
        assert!(received.into_iter().eq(0..50), "{policy:?}");
    }
}

#[test]
fn without_faults_nothing_is_sent_again() {
    for policy in policies() {
        let mut world = World::new(5, policy, Faults::NONE);
        for tag in 0..20 {
            world.post(1, tag);
            world.send(0, tag, 1000 * tag as usize * tag as usize);
        }
        world.pass(1000 * MILLI);
        assert_eq!(world.hosts[1].received.len(), 20);
        for host in &world.hosts {
            let counted = host.pair.statistics();
            let odd = [counted.resent, counted.repeated, counted.malformed, counted.asked_again];
            assert_eq!(odd, [0; 4], "{policy:?}: {counted:?}");
        }
    }
}

#[test]
fn a_collection_size_is_changed_while_messages_are_under_way() {
    let mut world = World::new(6, Emp::default().into(), Faults::NONE);
    for tag in 0..20 {
        world.post(1, tag);
        world.send(0, tag, 50_000);
        let collection = Emp::default().collection(1 + tag as u8);
        world.hosts[0].pair.set_policy(collection.into());
    }
    world.pass(1000 * MILLI);
    assert_eq!(world.hosts[1].received.len(), 20);
}
