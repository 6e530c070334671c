//! The rate of reads of random entries of a table that is spread over both processes, many reads at
//! a time.

use std::time::{Duration, Instant};

use super::member::Member;
use super::random::{ENTRIES, Random};
use super::ring::Ring;
use crate::perf::figures::Quantity;

/// The most entries that one call reads.
const LONGEST: u64 = 1 << 16;

pub async fn run(member: &Member<'_>) -> anyhow::Result<Option<(u64, Quantity)>> {
    let world = &member.world;
    let table = world.spread::<u64>(ENTRIES).await?;
    for (index, entry) in table.own_indices().zip(&mut *table.private().await?) {
        *entry = Ring::value(index as u64);
    }
    table.share().await?;
    let mut random = Random::of(world.rank());
    let mut chosen: Vec<usize> = (0..LONGEST).map(|_| random.index()).collect();
    let mut took = Duration::ZERO;
    let course = member.course(LONGEST);
    let done = member.pieces(&course, async |piece| {
        let indices = &chosen[..piece.operations as usize];
        let began = Instant::now();
        let values = table.gather(indices)?.done().await?;
        took += began.elapsed();
        // The other process may still be reading, and is served while this one waits.
        world.barrier().await?;
        let both = indices.iter().zip(&values);
        let wrong = both.filter(|&(&index, &value)| value != Ring::value(index as u64)).count();
        let missing = indices.len().abs_diff(values.len());
        chosen.fill_with(|| random.index());
        Ok((wrong + missing) as u64)
    });
    let done = done.await?;
    let rate = done as f64 / took.as_secs_f64();
    Ok(member.leads().then_some((done, Quantity::Rate(rate))))
}
