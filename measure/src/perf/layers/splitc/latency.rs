//! The latency of reads and writes of the other process's memory, each from the call to its
//! completion.

use std::ops::Range;

use doorbell_splitc::{Carrier, Error, World};

use super::member::{Course, Member};
use super::ring::{Ring, Shape};
use crate::perf::Amount;
use crate::perf::figures::Quantity;
use crate::perf::figures::latencies::Latencies;
use crate::perf::plan::meter::Meter;
use crate::perf::plan::test::SplitC;

/// How many operations a piece has, a multiple of the batch. Each operation has a place of its own,
/// so that all of them can be checked after the piece.
fn places(size: usize, batch: u64) -> u64 {
    let fitting = (0x1_0000 / size as u64).clamp(2, 8192);
    fitting / batch * batch
}

/// How many operations are timed together, as a batch. A look at the clock takes 25 ns, and mapped
/// memory is read and written in less. The reported time is that of a batch divided by its
/// operations, so quantiles are those of batches.
fn batch(size: usize, carrier: Carrier) -> u64 {
    match carrier {
        Carrier::Mapped => (0x4000 / size as u64).clamp(1, 64),
        _ => 1,
    }
}

pub async fn run(test: SplitC, member: &Member<'_>) -> anyhow::Result<Option<(u64, Quantity)>> {
    let (size, other) = (member.plan.size, member.other());
    // Both processes are configured alike, and get the same batch.
    let batch = batch(size, member.world.carrier(other)?);
    let longest = places(size, batch);
    let ring = Ring::new(&member.world, size, longest).await?;
    if test == SplitC::GetLat {
        for place in 0..longest {
            ring.set(place, place).await?;
        }
    }
    // The amount is rounded up to whole batches.
    let (amount, batches) = match member.plan.amount {
        Amount::Times(times) => {
            let batches = times.div_ceil(batch);
            (Amount::Times(batches.saturating_mul(batch)), Amount::Times(batches))
        }
        time => (time, time),
    };
    let course = Course { amount, longest, meter: Meter::hidden() };
    if !member.leads() {
        follow(test, member, &course, ring).await?;
        return Ok(None);
    }
    let mut times = Latencies::new(batches, Meter::new(member.plan.test.name(), batches));
    let asker = Asker { test, ring, other, batch, landed: vec![0; size * batch as usize] };
    let done = asker.lead(member, &course, &mut times).await?;
    Ok(Some((done, Quantity::Latency(times.summary(batch as u32)))))
}

/// Serves the other process, and checks what it has written.
async fn follow(
    test: SplitC,
    member: &Member<'_>,
    course: &Course,
    mut ring: Ring<'_>,
) -> anyhow::Result<()> {
    let done = member.pieces(course, async |piece| {
        member.world.barrier().await?;
        match test {
            SplitC::PutLat => Ok(ring.wrong(piece.operations, |place| piece.first + place).await?),
            _ => Ok(0),
        }
    });
    done.await.map(drop)
}

/// The process that leads, with what it needs for a piece.
struct Asker<'w> {
    test: SplitC,
    ring: Ring<'w>,
    other: usize,
    batch: u64,
    /// The bytes that the last batch has read.
    landed: Vec<u8>,
}

impl Asker<'_> {
    /// Runs all pieces as the process that leads, and returns how many operations they had.
    async fn lead(
        mut self,
        member: &Member<'_>,
        course: &Course,
        times: &mut Latencies,
    ) -> anyhow::Result<u64> {
        let (test, world) = (self.test, &member.world);
        let done = member.pieces(course, async |piece| {
            let mut wrong = 0;
            if test == SplitC::PutLat {
                // The other process has checked its places by now, and does not look at them again
                // before the next piece.
                self.ring.clear(self.other, course.longest).await?;
            }
            for from in (0..piece.operations).step_by(self.batch as usize) {
                let places = from..from + self.batch;
                times.resume();
                match test {
                    SplitC::GetLat => self.read(world, places.clone()).await?,
                    _ => self.write(world, places.clone(), piece.first).await?,
                }
                times.lap();
                if test == SplitC::GetLat {
                    wrong += self.wrong(places);
                }
            }
            world.barrier().await?;
            Ok(wrong)
        });
        done.await
    }

    /// Reads the message in each of the given places of the other process.
    #[inline]
    async fn read(&mut self, world: &World, places: Range<u64>) -> Result<(), Error> {
        let (ring, other) = (&self.ring, self.other);
        if ring.shape() == Shape::Word {
            for (place, landed) in places.zip(self.landed.as_chunks_mut().0) {
                *landed = world.at(ring.word(other, place)).read().await?.to_ne_bytes();
            }
            return Ok(());
        }
        for (place, landed) in places.zip(self.landed.chunks_exact_mut(ring.size())) {
            ring.span(other, place).read_into(landed).await?;
        }
        Ok(())
    }

    /// Writes a message into each of the given places of the other process: into a place, the
    /// message whose number is `first` and the place together.
    #[inline]
    async fn write(&self, world: &World, places: Range<u64>, first: u64) -> Result<(), Error> {
        let (ring, other) = (&self.ring, self.other);
        for place in places {
            let number = first + place;
            match ring.shape() {
                Shape::Word => world.at(ring.word(other, place)).write(Ring::value(number)).await?,
                _ => ring.span(other, place).write(ring.content(number)).await?,
            }
        }
        Ok(())
    }

    /// How many of the given places were read with other contents than they have.
    fn wrong(&self, places: Range<u64>) -> u64 {
        let landed = self.landed.chunks_exact(self.ring.size());
        places.zip(landed).filter(|(place, landed)| !self.ring.is(*place, landed)).count() as u64
    }
}
