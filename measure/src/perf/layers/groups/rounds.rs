//! Rounds of something that both members do, timed.

use std::time::{Duration, Instant};

use bytes::Bytes;
use doorbell_messages::collectives::{Group, Links};

/// The most rounds, and the fewest, that are timed.
const MOST: f64 = 20_000.0;
const FEWEST: f64 = 6.0;
/// The rounds that warm up caches and connections.
const COLD: u32 = 4;

/// Does something again and again for about as long as the budget says. Returns the median time of
/// a round in microseconds, as this member has seen it, and how many rounds there were.
///
/// A round is what each member does with each root in turn. Both members do as many rounds: the
/// first says how many.
pub async fn timed<L: Links>(
    group: &Group<L>,
    budget: Duration,
    mut round: impl AsyncFnMut(u64) -> anyhow::Result<()>,
) -> anyhow::Result<(f64, u64)> {
    round(0).await?;
    group.barrier().await?;
    // The shortest, since another program may have taken the processor in one of them.
    let mut one = f64::MAX;
    for _ in 1..COLD {
        let began = Instant::now();
        round(1).await?;
        one = one.min(began.elapsed().as_secs_f64());
    }
    let times = (budget.as_secs_f64() / one.max(1e-9)).clamp(FEWEST, MOST) as u64;
    let times = group.broadcast(0, Bytes::copy_from_slice(&times.to_le_bytes())).await?;
    let times = times.first_chunk().map_or(FEWEST as u64, |times| u64::from_le_bytes(*times));
    let mut taken = Vec::with_capacity(times.min(MOST as u64) as usize);
    let mut last = Instant::now();
    for number in 0..times {
        round(2 + number).await?;
        let now = Instant::now();
        taken.push(now - last);
        last = now;
    }
    taken.sort_unstable();
    let median = taken.get(taken.len() / 2).copied().unwrap_or_default();
    Ok((median.as_secs_f64() * 1e6, times))
}
