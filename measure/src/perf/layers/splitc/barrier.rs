//! The latency of barriers, each timed from the call to its end.

use super::member::Member;
use crate::perf::figures::Quantity;
use crate::perf::figures::latencies::Latencies;
use crate::perf::plan::meter::Meter;

/// The most barriers of a piece.
const LONGEST: u64 = 1024;

pub async fn run(member: &Member<'_>) -> anyhow::Result<Option<(u64, Quantity)>> {
    let (world, own, other) = (&member.world, member.world.rank(), member.other());
    let seen = world.blocked::<u64>(world.size()).await?;
    let course = member.course(LONGEST);
    let mut times = Latencies::new(member.plan.amount, Meter::hidden());
    let done = member.pieces(&course, async |piece| {
        // Behind a first barrier, which is not timed, each process must find what the other wrote
        // before.
        let mark = piece.number + 1;
        seen.at(other).write(mark).await?;
        world.barrier().await?;
        let wrong = u64::from(seen.at(own).read().await? != mark);
        times.resume();
        for _ in 0..piece.operations {
            world.barrier().await?;
            times.lap();
        }
        Ok(wrong)
    });
    let done = done.await?;
    Ok(member.leads().then(|| (done, Quantity::Latency(times.summary(1)))))
}
