//! How much of the processors' time something else takes.

use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::anyhow;

use crate::processors;

/// For how long each processor is watched.
const WATCHED: Duration = Duration::from_millis(100);
/// Two readings of the clock that are farther apart have something between them.
const PAUSE: Duration = Duration::from_micros(2);
/// The share of time from which measurements are disturbed.
const LOUD: f64 = 0.08;

/// The time that something else took from the processors, while they did nothing but read the
/// clock.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Noise {
    /// The share of their time, of the processor that was disturbed more.
    pub share: f64,
    /// The longest pause in reading the clock.
    pub longest: Duration,
}

impl Noise {
    /// Watches several processors at once.
    pub fn of(processors: &[usize]) -> anyhow::Result<Self> {
        let start = |&processor| thread::spawn(move || watch(processor));
        let watchers: Vec<_> = processors.iter().map(start).collect();
        let mut noise = Self { share: 0.0, longest: Duration::ZERO };
        for watcher in watchers {
            let found = watcher.join().map_err(|_| anyhow!("watching a processor panicked"))??;
            noise.share = noise.share.max(found.share);
            noise.longest = noise.longest.max(found.longest);
        }
        Ok(noise)
    }

    /// Whether the pauses disturb what is measured.
    pub fn is_loud(&self) -> bool {
        self.share > LOUD
    }
}

/// Reads the clock again and again on a processor, and adds up the pauses.
fn watch(processor: usize) -> anyhow::Result<Noise> {
    processors::bind(processor)?;
    let begin = Instant::now();
    let (mut last, mut paused, mut longest) = (begin, Duration::ZERO, Duration::ZERO);
    while last - begin < WATCHED {
        let now = Instant::now();
        let pause = now - last;
        if pause > PAUSE {
            paused += pause;
            longest = longest.max(pause);
        }
        last = now;
    }
    Ok(Noise { share: paused.as_secs_f64() / (last - begin).as_secs_f64(), longest })
}

impl fmt::Display for Noise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (share, longest) = (self.share * 100.0, self.longest.as_secs_f64() * 1e6);
        write!(
            f,
            "something else took {share:.1} % of a processor's time, {longest:.0} µs at a time at \
             the most"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_that_nothing_else_uses_is_not_loud_and_one_that_is_shared_in_halves_is() {
        let noise = |share| Noise { share, longest: Duration::from_micros(12) };
        assert!(!noise(0.005).is_loud());
        assert!(noise(0.5).is_loud());
        let text = noise(0.5).to_string();
        assert!(
            text.starts_with("something else took 50.0 % of a processor's time, 12 µs"),
            "{text}"
        );
    }
}
