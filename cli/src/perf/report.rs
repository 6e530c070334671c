//! What was measured, as words and as JSON.

use serde_json::json;

use super::Plan;
use super::latencies::Summary;

/// What a test found.
#[derive(Clone, PartialEq, Debug)]
pub struct Figures {
    /// The device's name; nothing for the kernel's own sockets.
    pub device: Option<&'static str>,
    /// Round trips, or messages.
    pub iters: u64,
    pub found: Found,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Found {
    Latency(Summary),
    /// Messages a second.
    Rate(f64),
    /// A share of a processor.
    Share(f64),
}

pub fn print(plan: &Plan, figures: &Figures, as_json: bool) {
    println!("{}", if as_json { json(plan, figures) } else { words(plan, figures) });
}

fn json(plan: &Plan, figures: &Figures) -> String {
    let (mut latency, mut rate, mut share) = (None, None, None);
    match figures.found {
        Found::Latency(summary) => latency = Some(summary),
        Found::Rate(messages) => rate = Some(messages),
        Found::Share(processor) => share = Some(processor),
    }
    json!({
        "test": plan.test.name(),
        "device": figures.device,
        "size": plan.size,
        "iters": figures.iters,
        "p50_us": latency.map(|summary| summary.p50),
        "p99_us": latency.map(|summary| summary.p99),
        "msgs_per_s": rate,
        "gbytes_per_s": rate.map(|rate| rate * plan.size as f64 / 1e9),
        "cpu_share": share,
    })
    .to_string()
}

fn words(plan: &Plan, figures: &Figures) -> String {
    let over = figures.device.map_or(String::new(), |device| format!(" over {device}"));
    let (test, size, iters) = (plan.test.name(), plan.size, figures.iters);
    let found = match figures.found {
        Found::Latency(Summary { p50, p99 }) => {
            format!("median {p50:.3} µs, 99 % below {p99:.3} µs; {iters} round trips, all checked")
        }
        Found::Rate(rate) => format!(
            "{:.3} million messages a second, {:.3} GB/s; {iters} messages, all checked",
            rate / 1e6,
            rate * size as f64 / 1e9
        ),
        Found::Share(share) => {
            return format!("{test}{over}: {:.4} % of a processor", share * 100.0);
        }
    };
    format!("{test}{over}, {size} bytes: {found}")
}
