//! Random programs over a network with faults: each message arrives once, whole, and those of one
//! tag in order.

use std::time::Duration;

use super::host::{Faults, World};
use super::policies;
use crate::frames::policy::Policy;

fn arrives(seed: u64, policy: Policy) {
    let mut world = World::new(seed, policy, Faults::NONE);
    let faults = Faults {
        loss: world.random.below(10),
        duplication: world.random.below(10),
        reordering: world.random.below(30),
    };
    let mut world = World::new(seed, policy, faults);
    let mut tags = [Vec::new(), Vec::new()];
    for _ in 0..40 {
        let (from, tag) = (world.random.below(2) as usize, world.random.below(4));
        let len = match world.random.below(3) {
            0 => 8 + world.random.below(100),
            1 => 8 + world.random.below(10_000),
            _ => 8 + world.random.below(100_000),
        };
        let is_posted_first = world.random.below(2) == 0;
        if is_posted_first {
            world.post(1 - from, tag);
        }
        world.send(from, tag, len as usize);
        let pause = Duration::from_micros(world.random.below(3000));
        world.pass(pause);
        if !is_posted_first {
            world.post(1 - from, tag);
        }
        tags[from].push(tag);
    }
    world.pass(Duration::from_secs(9));
    for to in [0, 1] {
        let received = &world.hosts[to].received;
        let count = tags[1 - to].len();
        assert_eq!(received.len(), count, "seed {seed}, {policy:?}, to {to}");
        let mut sorted = received.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), count, "seed {seed}, {policy:?}: each once");
        assert_eq!(world.hosts[1 - to].sent.len(), count, "seed {seed}, {policy:?}");
        assert_eq!(world.hosts[to].pair.statistics().malformed, 0, "seed {seed}, {policy:?}");
    }
    assert!(world.is_idle(), "seed {seed}, {policy:?}");
}

#[test]
fn each_message_arrives_once_whatever_the_network_does() {
    for seed in 0..25 {
        policies().into_iter().for_each(|policy| arrives(seed, policy));
    }
}
