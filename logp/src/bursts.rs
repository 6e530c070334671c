//! Sending requests in bursts, and timing them.

use crate::clock::Clock;
use crate::estimate::median;
use crate::requester::Requester;

/// The number of clock readings by which the cost of a reading is measured.
const READINGS: usize = 1001;
/// The longest duration of a piece at a steady rate, in nanoseconds, and the fewest requests that a
/// piece has even if they take longer.
const PIECE: f64 = 200_000.0;
const FEWEST: usize = 4;
/// The number of pieces in which the length of a computation is measured, and the most computations
/// of a piece.
const PIECES: usize = 33;
const COMPUTATIONS: usize = 64;

/// A requester and a clock, with what was measured of the clock itself.
pub(crate) struct Bench<R, C> {
    requester: R,
    clock: C,
    sent: u64,
    /// The nanoseconds that a reading of the clock adds to a measured time.
    reading: f64,
}

impl<R: Requester, C: Clock> Bench<R, C> {
    pub fn new(requester: R, clock: C) -> Self {
        let once = |_| {
            let begin = clock.now();
            clock.now() - begin
        };
        let reading = median((0..READINGS).map(once).collect());
        let sent = requester.answered();
        Self { requester, clock, sent, reading }
    }

    pub fn into_requester(self) -> R {
        self.requester
    }

    /// The time of a request alone, from its sending until its answer is handled.
    pub fn round_trip(&mut self) -> Result<f64, R::Error> {
        let begin = self.clock.now();
        self.send(0)?;
        self.drain()?;
        Ok(self.since(begin))
    }

    /// The time of each request of a burst, in which no answer is handled.
    pub fn short(&mut self, count: usize) -> Result<f64, R::Error> {
        let begin = self.clock.now();
        for _ in 0..count {
            self.send(0)?;
        }
        let time = self.since(begin) / count as f64;
        self.drain()?;
        Ok(time)
    }

    /// The time of each request of a burst, behind each of which answers are handled that have come.
    pub fn burst(&mut self, count: usize, computation: f64) -> Result<f64, R::Error> {
        let begin = self.clock.now();
        for _ in 0..count {
            self.one(computation, 0)?;
        }
        let time = self.since(begin) / count as f64;
        self.drain()?;
        Ok(time)
    }

    /// The median time of a request at a steady rate, of several pieces of `most` requests each, or
    /// of fewer where requests take long: a piece should be over before something disturbs it.
    pub fn steady(
        &mut self,
        (warm_up, pieces, most): (usize, usize, usize),
        computation: f64,
        bytes: usize,
    ) -> Result<f64, R::Error> {
        let begin = self.clock.now();
        for _ in 0..warm_up {
            self.one(computation, bytes)?;
        }
        let fit = PIECE / (self.since(begin) / warm_up as f64).max(1.0);
        let count = (fit as usize).clamp(FEWEST.min(most), most);
        let mut times = Vec::with_capacity(pieces);
        for _ in 0..pieces {
            let begin = self.clock.now();
            for _ in 0..count {
                self.one(computation, bytes)?;
            }
            times.push(self.since(begin) / count as f64);
        }
        self.drain()?;
        Ok(median(times))
    }

    /// The real duration in nanoseconds of a computation whose intended duration is `nanos`.
    pub fn computation(&self, nanos: f64) -> f64 {
        let count = ((PIECE / nanos.max(1.0)) as usize).clamp(1, COMPUTATIONS);
        let piece = |_| {
            let begin = self.clock.now();
            for _ in 0..count {
                self.clock.compute(nanos);
            }
            self.since(begin) / count as f64
        };
        median((0..PIECES).map(piece).collect())
    }

    #[inline]
    fn one(&mut self, computation: f64, bytes: usize) -> Result<(), R::Error> {
        self.send(bytes)?;
        if computation > 0.0 {
            self.clock.compute(computation);
        }
        self.requester.poll()
    }

    #[inline]
    fn send(&mut self, bytes: usize) -> Result<(), R::Error> {
        self.sent += 1;
        self.requester.send(bytes)
    }

    /// Handles answers until all requests are answered.
    #[inline]
    fn drain(&mut self) -> Result<(), R::Error> {
        while self.requester.answered() < self.sent {
            self.requester.poll()?;
        }
        Ok(())
    }

    #[inline]
    fn since(&self, begin: f64) -> f64 {
        (self.clock.now() - begin - self.reading).max(0.0)
    }
}
