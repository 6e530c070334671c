//! The table of `doorbell perf layers`: the latency and the rate of each layer, and what they are
//! beside those of the layer below.
//!
//! `floor` has the layers and the tests that measure them, and `table` shows what was found. Each
//! test is a process of this program, `doorbell perf TEST --pair`, and one runs after the other.

mod floor;
mod table;

use std::time::Duration;

use anyhow::{Context, anyhow};
use serde_json::{Value, json};

use super::figures::{Figures, Quantity, Row};
use super::plan::amount::Amount;
use super::{Args, Plan};
use crate::runs::{self, DEVICES};
use crate::usage;
use floor::{FLOORS, Floor, Found, Run};

pub use table::table;

/// Measures every layer over the device, from the lowest to the highest.
pub fn run(args: &Args, plan: &Plan) -> anyhow::Result<Figures> {
    if args.listen.is_some() || args.connect.is_some() || args.accept {
        return Err(usage::wrong(anyhow!(
            "{} runs both ends of each test on this machine: leave --listen and --connect out",
            plan.test.name()
        )));
    }
    let Some(device) = DEVICES.iter().find(|known| **known == args.device()) else {
        let (found, all) = (args.device(), DEVICES.join(", "));
        return Err(usage::wrong(anyhow!("--device `{found}`: it is one of {all}, here")));
    };
    let bar = runs::bar(2 * FLOORS.len() as u64);
    let mut found: Vec<Found> = Vec::new();
    let mut rows = Vec::new();
    for floor in &FLOORS {
        let once = |run: &Run| {
            bar.set_message(format!("{run} over {device}"));
            let line = line(run, args, plan).with_context(|| format!("{run} over {device}"));
            bar.inc(1);
            line
        };
        let here = Found::of(floor, &once(&floor.latency)?, &once(&floor.rate)?)
            .with_context(|| format!("{} over {device} printed no figures", floor.name))?;
        let below = floor.below.map(|below| (FLOORS[below].name, found[below]));
        rows.push(row(floor, here, below));
        found.push(here);
    }
    bar.finish_and_clear();
    Ok(Figures { device: Some(device), iters: rows.len() as u64, found: Quantity::Rows(rows) })
}

/// Runs a test once, and returns the line of JSON that it prints.
fn line(run: &Run, args: &Args, plan: &Plan) -> anyhow::Result<Value> {
    let (seconds, mtu) = (seconds(plan).as_secs_f64().to_string(), args.mtu.to_string());
    let mut arguments = vec!["perf", run.test.name(), "--pair", "--json"];
    arguments.extend(["--device", args.device(), "--seconds", &seconds, "--mtu", &mtu]);
    if args.no_offload {
        arguments.push("--no-offload");
    }
    arguments.extend(run.arguments);
    runs::line(arguments)
}

/// How long each test takes.
fn seconds(plan: &Plan) -> Duration {
    match plan.amount {
        Amount::For(time) => time,
        Amount::Times(_) => unreachable!("the plan refuses --iters for a test that is for a time"),
    }
}

/// The fields of a layer, beside those of the layer below.
fn row(floor: &Floor, here: Found, below: Option<(&str, Found)>) -> Row {
    let added = below.map(|(_, below)| here.latency - below.latency);
    let share = below.map(|(_, below)| here.rate / below.rate);
    vec![
        ("floor", json!(floor.name)),
        ("below", json!(below.map(|(name, _)| name))),
        ("latency_test", json!(floor.latency.to_string())),
        ("latency_us", json!(here.latency)),
        ("added_us", json!(added)),
        ("rate_test", json!(floor.rate.to_string())),
        ("msgs_per_s", json!(here.rate)),
        ("rate_share", json!(share)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_what_a_layer_adds_to_the_latency_below_and_its_share_of_the_rate_there() {
        let below = Found { latency: 0.25, rate: 20e6 };
        let row = row(&FLOORS[1], Found { latency: 1.0, rate: 5e6 }, Some(("frames", below)));
        let field = |wanted| row.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value);
        assert_eq!(field("below"), Some(&json!("frames")));
        assert_eq!(field("added_us"), Some(&json!(0.75)));
        assert_eq!(field("rate_share"), Some(&json!(0.25)));
    }

    #[test]
    fn the_lowest_layer_adds_nothing_to_another() {
        let row = row(&FLOORS[0], Found { latency: 0.25, rate: 20e6 }, None);
        let empty = row.iter().filter(|(_, value)| value.is_null()).map(|(name, _)| *name);
        assert_eq!(empty.collect::<Vec<_>>(), ["below", "added_us", "rate_share"]);
    }
}
