//! The kernels IS and EP of the NAS Parallel Benchmarks, over a group. The problems, and what their
//! results must be, are those of the examples in Split-C.

mod ep;
mod is;

// These files are links to the sources of the examples, so that a package has copies. Some have more
// than is used here.
mod deviates;
mod nas;
#[allow(dead_code, reason = "the examples have further ways to rank")]
mod problem;
mod ranks;
mod verification;

use std::time::Duration;

use doorbell_messages::collectives::{Group, Links};
use serde_json::json;

use crate::perf::figures::Row;
use nas::Class;

/// Runs both kernels in the classes S and W. Each is verified as the benchmarks have it.
pub async fn run<L: Links>(group: &Group<L>, beat: &dyn Fn()) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for class in [Class::S, Class::W] {
        let mut row = |kernel: &'static str, time: f64| {
            beat();
            rows.push(vec![
                ("kernel", json!(kernel)),
                ("class", json!(format!("{class:?}"))),
                ("seconds", json!(time)),
                ("verified", json!(true)),
            ]);
        };
        row("is", longest(group, is::run(group, class).await?).await?);
        row("ep", longest(group, ep::run(group, class).await?).await?);
    }
    Ok(rows)
}

/// The longest time of all members, in seconds.
async fn longest<L: Links>(group: &Group<L>, time: Duration) -> anyhow::Result<f64> {
    let longest = group.all_reduce(vec![time.as_secs_f64()], f64::max).await?;
    Ok(longest[0])
}
