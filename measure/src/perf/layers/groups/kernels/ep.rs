//! EP, embarrassingly parallel: each member makes its share of Gaussian random numbers, and two
//! all-reduces add up what they have found.

use std::ops::Range;
use std::time::{Duration, Instant};

use anyhow::Context;
use doorbell_messages::collectives::{Group, Links};

use super::deviates::{BATCH, Tally};
use super::nas::Class;
use super::verification::{uniform_pairs, verify};

/// Runs the kernel, checks the result, and returns how long it took.
pub async fn run<L: Links>(group: &Group<L>, class: Class) -> anyhow::Result<Duration> {
    let (rank, size) = (group.rank() as u64, group.size() as u64);
    let batches = uniform_pairs(class) / BATCH;
    group.barrier().await?;
    let start = Instant::now();
    let own = tally(rank * batches / size..(rank + 1) * batches / size).await;
    let sums = group.all_reduce(own.sums.to_vec(), |a, b| a + b).await?;
    let counts = group.all_reduce(own.counts.to_vec(), |a, b| a + b).await?;
    let time = start.elapsed();
    let sums = sums.try_into().ok().context("two sums")?;
    let counts = counts.try_into().ok().context("the counts of all squares")?;
    verify(class, &Tally { sums, counts })?;
    Ok(time)
}

/// The tally of some batches. The other member hears of this one in between: one that computes for
/// longer than the NIC's keep-alive time would seem to have died.
async fn tally(batches: Range<u64>) -> Tally {
    let mut tally = Tally::default();
    for batch in batches {
        let Tally { sums, counts } = Tally::of(batch..batch + 1);
        tally.sums.iter_mut().zip(sums).for_each(|(sum, more)| *sum += more);
        tally.counts.iter_mut().zip(counts).for_each(|(count, more)| *count += more);
        tokio::task::yield_now().await;
    }
    tally
}
