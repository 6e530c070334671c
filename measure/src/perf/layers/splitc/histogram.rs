//! The rate of atomic additions to random entries of a table that is spread over both processes.

use std::time::Instant;

use anyhow::ensure;

use super::member::Member;
use super::random::{ENTRIES, Random};
use crate::perf::Amount;
use crate::perf::figures::Quantity;

/// How many additions are made between two looks at the clock.
const LOOK: u64 = 4096;
/// How many additions are made before this task yields to the task that watches the other process,
/// which takes a microsecond or two.
const YIELD: u64 = 1 << 18;

pub async fn run(member: &Member<'_>) -> anyhow::Result<Option<(u64, Quantity)>> {
    let world = &member.world;
    let table = world.spread::<u64>(ENTRIES).await?;
    let mut random = Random::of(world.rank());
    let course = member.course(LOOK);
    world.barrier().await?;
    let began = Instant::now();
    // The number of additions that this process has made, and the sum of the indices of their
    // entries.
    let (mut updates, mut indices) = (0, 0_u64);
    loop {
        let count = match course.amount {
            Amount::Times(times) => LOOK.min(times - updates),
            Amount::For(time) if updates > 0 && began.elapsed() >= time => 0,
            Amount::For(_) => LOOK,
        };
        if count == 0 {
            break;
        }
        for _ in 0..count {
            let index = random.index();
            table.at(index).store_add(1)?;
            indices = indices.wrapping_add(index as u64);
        }
        updates += count;
        member.beat.count();
        course.meter.at(updates, began.elapsed());
        if updates.is_multiple_of(YIELD) {
            tokio::task::yield_now().await;
        }
    }
    world.all_store_sync().await?;
    let took = began.elapsed();
    let (mut found, mut found_indices) = (0_u64, 0_u64);
    for (index, &count) in table.own_indices().zip(&*table.private().await?) {
        found = found.wrapping_add(count);
        found_indices = found_indices.wrapping_add(count.wrapping_mul(index as u64));
    }
    let sums =
        |one: [u64; 4], other: [u64; 4]| std::array::from_fn(|at| one[at].wrapping_add(other[at]));
    let all = world.all_reduce([updates, indices, found, found_indices], sums).await?;
    let [updates, indices, found, found_indices] = all;
    ensure!(found == updates, "of {updates} additions {found} are in the table");
    ensure!(found_indices == indices, "some additions are in the wrong entries of the table");
    // The number for one process: where time ends the test, one may have made more than the other.
    let updates = updates / world.size() as u64;
    let rate = updates as f64 / took.as_secs_f64();
    Ok(member.leads().then_some((updates, Quantity::Rate(rate))))
}
