//! The programs of many seeds, on all cores.

use std::cell::RefCell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use super::coverage::Coverage;
use super::failure;
use super::strategy::{Failed, Random, check, program};

/// The number in a variable of the environment, if it is set.
pub fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is {text}, which is no number")))
}

/// What the programs of many seeds covered, and the first of them that failed.
struct Found<P> {
    coverage: Coverage,
    earliest: Option<(u64, Failed<P>)>,
}

fn run_all<P: Random>(first: u64, count: u64) -> Found<P> {
    let next = AtomicU64::new(first);
    let found = Mutex::new(Found { coverage: Coverage::default(), earliest: None });
    let work = || {
        let coverage = RefCell::new(Coverage::default());
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first.saturating_add(count) {
                break;
            }
            let failed = check(seed, |report| coverage.borrow_mut().add(&report.coverage));
            if let Some(failed) = failed {
                // Those who are at it finish theirs, and nobody begins another.
                next.store(u64::MAX / 2, Ordering::Relaxed);
                let earliest = &mut found.lock().expect("nobody panicked").earliest;
                if earliest.as_ref().is_none_or(|(other, _)| seed < *other) {
                    *earliest = Some((seed, failed));
                }
            }
        }
        found.lock().expect("nobody panicked").coverage.add(&coverage.borrow());
    };
    let threads = thread::available_parallelism().map_or(1, |count| count.get());
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    found.into_inner().expect("nobody panicked")
}

/// Runs so many programs, unless the environment says otherwise: `DOORBELL_SEED` gives the first
/// seed, and `DOORBELL_SEQUENCES` how many follow it. All must succeed, and so many must show
/// everything that is expected.
pub fn agree_with_the_model<P: Random>(sequences: u64, expected: &[&str]) {
    let seed = number("DOORBELL_SEED");
    let count = number("DOORBELL_SEQUENCES").unwrap_or(if seed.is_some() { 1 } else { sequences });
    let began = Instant::now();
    let Found { coverage, earliest } = run_all::<P>(seed.unwrap_or(0), count);
    if let Some((seed, failed)) = earliest {
        panic!("{}", failure::tell(seed, &failed));
    }
    println!("{count} sequences in {:?}, in which there were\n{coverage}", began.elapsed());
    if count >= sequences {
        let gaps = coverage.gaps(expected);
        assert!(gaps.is_empty(), "what the runs should cover, and do not: {gaps:#?}");
    }
}

/// Every run of a seed is the same, and no two seeds of these have the same run.
pub fn are_told_apart_by_their_seeds<P: Random>(count: u64) {
    let hash = |seed| program::<P>(seed).run().hash;
    let hashes: Vec<u64> = (0..count).map(hash).collect();
    assert_eq!(hashes, (0..count).map(hash).collect::<Vec<_>>());
    let mut different = hashes.clone();
    different.sort_unstable();
    different.dedup();
    assert_eq!(different.len(), hashes.len());
}
