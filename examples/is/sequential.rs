//! The sequential program with which the parallel one is compared.

use std::time::{Duration, Instant};

use crate::problem::{ITERATIONS, Problem};
use crate::ranks::Ranks;

/// Ranks all keys as often as the parallel program does. Returns how long that took, and how many
/// tests of ranks have passed.
pub fn run(problem: &Problem) -> (Duration, u32) {
    let mut keys = problem.make_keys(0..problem.keys());
    let mut up_to = vec![0; problem.values()];
    let mut passed = 0;
    // The first time is not measured: caches are cold, and pages new.
    rank(&keys, &mut up_to);
    let start = Instant::now();
    for iteration in 1..=ITERATIONS {
        problem.change_keys(&mut keys, 0, iteration);
        let tested = problem.tested_keys(&keys, 0);
        rank(&keys, &mut up_to);
        let ranks = Ranks { first: 0, lesser: 0, up_to };
        passed += ranks.test(problem, tested, iteration);
        up_to = ranks.up_to;
    }
    (start.elapsed(), passed)
}

/// Computes, for each value, how many keys are not greater.
fn rank(keys: &[u32], up_to: &mut [u32]) {
    up_to.fill(0);
    for &key in keys {
        up_to[key as usize] += 1;
    }
    crate::ranks::add_up(up_to);
}
