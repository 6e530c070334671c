//! What it costs to move a cache line between two processors: no message can be faster.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use doorbell_measure::processors;
use doorbell_transports::discover::Remark;

/// The number of round trips of the cache line.
const ROUNDS: u64 = 20_000;
/// The time after which the measurement is given up, since other processes use the processors.
const LONGEST: Duration = Duration::from_secs(1);
/// The time in nanoseconds below which two processors share a cache.
const NEAR: f64 = 120.0;

/// A number in a cache line of its own. The neighbouring line is fetched together with that line,
/// and has nothing else, either.
#[repr(align(128))]
struct Line(AtomicU64);

/// Measures how many nanoseconds a cache line takes one way between the first two processors that
/// this process may use. Returns `None` if there is only one processor, or if the processors are
/// too busy.
pub fn crossing() -> Option<f64> {
    let (first, second) = (processors::allowed(0).ok()?, processors::allowed(1).ok()?);
    let lines = [const { Line(AtomicU64::new(0)) }; 2];
    let [there, back] = &lines;
    let deadline = Instant::now() + LONGEST;
    thread::scope(|scope| {
        scope.spawn(|| {
            processors::bind(second).is_ok()
                && (1..=ROUNDS).all(|round| {
                    let came = comes(there, round, deadline);
                    back.0.store(round, Ordering::Release);
                    came
                })
        });
        let measured = scope.spawn(|| {
            processors::bind(first).ok()?;
            let mut times = Vec::with_capacity(ROUNDS as usize);
            for round in 1..=ROUNDS {
                let start = Instant::now();
                there.0.store(round, Ordering::Release);
                if !comes(back, round, deadline) {
                    return None;
                }
                times.push(start.elapsed());
            }
            times.sort_unstable();
            Some(times[times.len() / 2].as_nanos() as f64 / 2.0)
        });
        measured.join().ok()?
    })
}

/// Waits until the line has the number of a round. Returns whether that was before the deadline.
fn comes(line: &Line, round: u64, deadline: Instant) -> bool {
    let mut looks = 0_u32;
    while line.0.load(Ordering::Acquire) < round {
        looks += 1;
        if looks.is_multiple_of(1 << 12) && Instant::now() > deadline {
            return false;
        }
    }
    true
}

/// Says in a word how far two processors are from each other, between which a cache line takes
/// `nanos` nanoseconds.
pub fn how_far(nanos: f64) -> &'static str {
    if nanos < NEAR { "near" } else { "far" }
}

/// Returns advice on processors that share no cache; `None` for processors that do.
pub fn remark(nanos: f64) -> Option<Remark> {
    (nanos >= NEAR).then(|| Remark {
        found: format!("a cache line takes {nanos:.0} ns between these two processors"),
        advice:
            "choose two that share a cache (`lscpu -e`) with `taskset`; on a virtual machine it \
                 may pass by itself"
                .to_owned(),
    })
}
