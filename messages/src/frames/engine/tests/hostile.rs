//! Frames that no honest peer sends: random bytes, and frames of a run whose bytes were changed.

use super::host::{Faults, Random, World};
use super::{MILLI, policies};
use crate::frames::wire::Frame;

#[test]
fn frames_that_nobody_has_sent_change_no_bytes_outside_of_a_place_and_panic_nowhere() {
    for policy in policies() {
        for seed in 0..30 {
            let mut random = Random(seed);
            let mut world = World::new(seed, policy, Faults::NONE);
            world.is_checked = false;
            (0..8).for_each(|tag| world.post(1, tag));
            for tag in 0..16 {
                world.send(0, tag, random.below(20_000) as usize);
            }
            world.pass(MILLI / 20);
            for _ in 0..2000 {
                let mut bytes = match random.below(3) {
                    0 => (0..random.below(80)).map(|_| random.next() as u8).collect(),
                    _ => world.some_frame(&mut random),
                };
                for _ in 0..random.below(4) {
                    let at = random.below(bytes.len().max(1) as u64) as usize;
                    let byte = if random.below(2) == 0 { 0xff } else { random.next() as u8 };
                    bytes.get_mut(at).into_iter().for_each(|it| *it = byte);
                }
                let to = random.below(2) as usize;
                if let Some(frame) = Frame::parse(&bytes) {
                    world.handle(to, &frame);
                }
            }
            world.pass(100 * MILLI);
        }
    }
}
