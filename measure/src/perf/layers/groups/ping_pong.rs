//! A message there and one back between two members, of all sizes: the ping-pong of the Intel MPI
//! Benchmarks.

use std::time::Duration;

use anyhow::{bail, ensure};
use bytes::Bytes;
use doorbell_messages::collectives::{Group, Links};
use serde_json::json;

use super::rounds::timed;
use crate::perf::figures::Row;
use crate::perf::{Amount, Plan};

/// The sizes of messages, unless one is given.
const SIZES: [usize; 12] =
    [0, 16, 64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 2 << 20, 4 << 20];

/// The tag of the messages.
const TAG: u32 = 1;

pub async fn run<L: Links>(
    group: &Group<L>,
    plan: &Plan,
    beat: &dyn Fn(),
) -> anyhow::Result<Vec<Row>> {
    let sizes = if plan.size == 0 { &SIZES[..] } else { std::slice::from_ref(&plan.size) };
    let budget = budget(plan, sizes.len())?;
    let (mut rows, other) = (Vec::new(), 1 - group.rank());
    for &size in sizes {
        let body: Bytes = (0..size).map(|at| (at * 7 + size) as u8).collect();
        let round = async |round: u64| {
            beat();
            let back = match group.rank() {
                0 => {
                    group.send(other, TAG, body.clone()).await?;
                    group.receive(other, TAG).await?
                }
                _ => {
                    let came = group.receive(other, TAG).await?;
                    group.send(other, TAG, came.clone()).await?;
                    came
                }
            };
            let is_right = if round.is_multiple_of(8) { back == body } else { back.len() == size };
            ensure!(is_right, "a message of {size} bytes is not what it should be");
            Ok(())
        };
        let (time, rounds) = timed(group, budget, round).await?;
        let half = time / 2.0;
        rows.push(vec![
            ("size", json!(size)),
            ("rounds", json!(rounds)),
            ("us", json!(half)),
            ("mib_per_s", json!(size as f64 / half * 1e6 / f64::from(1 << 20))),
        ]);
    }
    Ok(rows)
}

/// The share of the time that each of several measurements has.
pub fn budget(plan: &Plan, measurements: usize) -> anyhow::Result<Duration> {
    let Amount::For(time) = plan.amount else {
        bail!("{} is for a time: --seconds", plan.test.name());
    };
    Ok(time / measurements.max(1) as u32)
}
