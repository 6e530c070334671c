//! What was measured: as words, as JSON, and as CSV.

use std::fmt::Write;

use doorbell_logp::{Estimate, Parameters, Point};
use doorbell_verbs::Capabilities;
use serde_json::{Value, json};

use super::costs;
use super::figures::{Figures, Quantity};
use super::rows;
use super::{Form, Plan};
use crate::files;
use crate::machine::{PROFILE, built_by};
use crate::out::{self, SCHEMA};
use crate::perf::figures::latencies::Summary;
use crate::perf::figures::logp_result::LogpResult;
use crate::perf::plan::test::{Layer, Test};

/// Prints what was found.
pub fn print(plan: &Plan, figures: &Figures, form: Form) -> anyhow::Result<()> {
    let text = match (&figures.found, form) {
        (Quantity::Rows(rows), form) => rows::text(plan, figures, rows, form),
        (_, Form::Words) => format!("{}\n{}\n", words(plan, figures), built_by()),
        (_, Form::Json) => format!("{}\n", Value::from_iter(fields(plan, figures))),
        (_, Form::Csv) => csv(&fields(plan, figures)),
    };
    match files::terminal_width() {
        Some(width) if form == Form::Words => out::print(&out::wrapped(&text, width, "")),
        _ => out::print(&text),
    }
}

/// The fields that programs read, each with its name.
fn fields(plan: &Plan, figures: &Figures) -> Vec<(&'static str, Value)> {
    let mut fields = fields_of_test(plan, figures);
    fields.extend([("profile", json!(PROFILE)), ("schema", json!(SCHEMA))]);
    fields
}

fn fields_of_test(plan: &Plan, figures: &Figures) -> Vec<(&'static str, Value)> {
    let (mut latency, mut rate, mut share) = (None, None, None);
    match &figures.found {
        Quantity::LogP(known, device) => return of_logp(plan, figures, known, device),
        Quantity::Costs(parts) => return costs::fields(plan, figures, parts),
        Quantity::Latency(summary) => latency = Some(summary),
        Quantity::Rate(messages) => rate = Some(*messages),
        Quantity::Share(processor) => share = Some(*processor),
        // Rows have names of their own.
        Quantity::Rows(_) => {}
    }
    vec![
        ("test", json!(plan.test.name())),
        ("device", json!(figures.device)),
        ("size", json!(plan.size)),
        ("iters", json!(figures.iters)),
        ("p50_us", json!(latency.map(|summary| summary.p50))),
        ("p90_us", json!(latency.map(|summary| summary.p90))),
        ("p99_us", json!(latency.map(|summary| summary.p99))),
        ("p99_9_us", json!(latency.map(|summary| summary.p999))),
        ("max_us", json!(latency.map(|summary| summary.longest))),
        ("msgs_per_s", json!(rate)),
        ("gbytes_per_s", json!(rate.map(|rate| rate * plan.test.mean_size(plan.size) / 1e9))),
        ("cpu_share", json!(share)),
        ("connections", json!(plan.connections)),
        ("carrier", json!(plan.carrier.map(|carrier| carrier.to_string()))),
    ]
}

/// The parameters of LogP, as programs read them: each with its interval beside it.
fn of_logp(
    plan: &Plan,
    figures: &Figures,
    known: &LogpResult,
    device: &Capabilities,
) -> Vec<(&'static str, Value)> {
    let layer = match plan.test {
        Test::LogP(Layer::Verbs) => "verbs",
        Test::LogP(Layer::Am) => "am",
        _ => "splitc",
    };
    let Parameters {
        send_overhead,
        receive_overhead,
        latency,
        gap,
        gap_is_of_the_processor,
        gap_per_byte,
        round_trip,
    } = known.parameters;
    let carrier = plan.carrier.map(|carrier| carrier.to_string());
    let mut fields = vec![
        ("layer", json!(layer)),
        ("carrier", json!(carrier)),
        ("device", json!(figures.device)),
        ("policy", json!((layer == "am").then(|| plan.policy.name()))),
        ("mtu", json!(device.mtu.bytes())),
        ("packets_a_frame", json!(device.run)),
        ("segmentation", json!(device.segmentation)),
        ("checksum", json!(device.checksum)),
        ("rounds", json!(figures.iters)),
        ("g_is_of_the_processor", json!(gap_is_of_the_processor)),
    ];
    let micros = |estimate: Estimate| {
        let Estimate { value, low, high } = estimate;
        [value, low, high].map(|nanos| json!(nanos / 1e3))
    };
    let nanos = |estimate: Option<Estimate>| match estimate {
        Some(Estimate { value, low, high }) => [value, low, high].map(|nanos| json!(nanos)),
        None => [Value::Null, Value::Null, Value::Null],
    };
    let names = [
        (["o_s_us", "o_s_us_low", "o_s_us_high"], micros(send_overhead)),
        (["o_r_us", "o_r_us_low", "o_r_us_high"], micros(receive_overhead)),
        (["l_us", "l_us_low", "l_us_high"], micros(latency)),
        (["g_us", "g_us_low", "g_us_high"], micros(gap)),
        (
            ["g_big_ns_per_byte", "g_big_ns_per_byte_low", "g_big_ns_per_byte_high"],
            nanos(gap_per_byte),
        ),
        (["rtt_us", "rtt_us_low", "rtt_us_high"], micros(round_trip)),
    ];
    fields.extend(names.into_iter().flat_map(|(names, values)| names.into_iter().zip(values)));
    let curve = |points: &[Point]| {
        let point = |point: &Point| {
            json!({
                "burst": point.burst,
                "gaps": point.gaps,
                "computation_us": point.computation / 1e3,
                "bytes": point.bytes,
                "us": point.nanos / 1e3,
            })
        };
        Value::from_iter(points.iter().map(point))
    };
    fields.push(("bursts", curve(&known.bursts)));
    fields.push(("steady", curve(&known.steady)));
    fields.push(("long", curve(&known.long)));
    fields
}

/// The names, and below them what they are of; nothing where JSON has null. No value has commas.
fn csv(fields: &[(&'static str, Value)]) -> String {
    let names: Vec<_> = fields.iter().map(|(name, _)| *name).collect();
    let values = fields.iter().map(|(_, value)| match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    });
    format!("{}\n{}\n", names.join(","), values.collect::<Vec<_>>().join(","))
}

fn words(plan: &Plan, figures: &Figures) -> String {
    let over = figures.device.map_or(String::new(), |device| format!(" over {device}"));
    let beside = match plan.connections {
        0 => String::new(),
        count => format!(", beside {count} idle connections"),
    };
    let (test, size, iters) = (plan.test.name(), plan.size, figures.iters);
    let what = format!("{test}{over}, {size} bytes{beside}");
    match &figures.found {
        Quantity::Latency(summary) => {
            let counted = if plan.test.is_halved() { "round trips, halved" } else { "times" };
            format!("{what}: {iters} {counted}, all checked\n{}", table(summary))
        }
        Quantity::Rate(rate) => format!(
            "{what}: {:.3} million messages a second, {:.3} GB/s; {iters} messages, all checked\n",
            rate / 1e6,
            rate * plan.test.mean_size(size) / 1e9
        ),
        Quantity::LogP(known, _) => {
            format!("{what}: {iters} rounds\n{}", parameters(&known.parameters))
        }
        Quantity::Costs(parts) => costs::words(plan, figures, parts),
        Quantity::Rows(_) => what,
        Quantity::Share(share) => format!("{test}{over}: {:.4} % of a processor\n", share * 100.0),
    }
}

/// The parameters of LogP, each on a line with its interval of 95 %.
fn parameters(known: &Parameters) -> String {
    let micros = |estimate: Estimate| (estimate, 1e3, "µs");
    let lines = [
        ("o_s", Some(micros(known.send_overhead))),
        ("o_r", Some(micros(known.receive_overhead))),
        ("L", Some(micros(known.latency))),
        ("g", Some(micros(known.gap))),
        ("RTT", Some(micros(known.round_trip))),
        ("G", known.gap_per_byte.map(|gap| (gap, 1.0, "ns/B"))),
    ];
    let line = |(name, found): (&str, Option<(Estimate, f64, &str)>)| {
        let (Estimate { value, low, high }, part, unit) = found?;
        let [value, low, high] = [value, low, high].map(|nanos| nanos / part);
        Some(format!("{name:>4}{value:>10.3} {unit:4}  ({low:.3} to {high:.3})\n"))
    };
    lines.into_iter().filter_map(line).collect()
}

/// Quantiles, and how the times are spread.
fn table(summary: &Summary) -> String {
    /// The longest bar, in characters.
    const WIDEST: u64 = 50;
    let Summary { p50, p90, p99, p999, longest, bars } = summary;
    let mut text = format!(
        "{:>10}{:>10}{:>10}{:>10}{:>10}\n{p50:>10.3}{p90:>10.3}{p99:>10.3}{p999:>10.3}\
         {longest:>10.3}  µs\n\n",
        "p50", "p90", "p99", "p99.9", "longest"
    );
    let (all, most) =
        bars.iter().fold((0, 1), |(all, most), bar| (all + bar.count, most.max(bar.count)));
    for bar in bars {
        let width = (bar.count * WIDEST).div_ceil(most) as usize;
        let share = bar.count as f64 * 100.0 / all.max(1) as f64;
        // Writing to a string does not fail.
        let _ = writeln!(text, "{:>10.3} µs {share:>6.2} % {}", bar.up_to, "█".repeat(width));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::figures::latencies::Bar;

    #[test]
    fn a_table_has_the_quantiles_and_a_bar_for_each_step() {
        let bars = vec![Bar { up_to: 1.0, count: 75 }, Bar { up_to: 2.0, count: 25 }];
        let summary = Summary { p50: 0.5, p90: 1.5, p99: 1.75, p999: 1.875, longest: 9.0, bars };
        let text = table(&summary);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(
            lines[1].split_whitespace().collect::<Vec<_>>(),
            ["0.500", "1.500", "1.750", "1.875", "9.000", "µs"]
        );
        let lengths: Vec<_> = lines[3..].iter().map(|line| line.matches('█').count()).collect();
        assert_eq!(lengths, [50, 17]);
        assert!(lines[3].contains("75.00 %"), "{text}");
    }

    #[test]
    fn what_is_not_known_is_empty_in_csv() {
        let fields = [("test", json!("x_lat")), ("size", json!(8)), ("rate", Value::Null)];
        assert_eq!(csv(&fields), "test,size,rate\nx_lat,8,\n");
    }
}
