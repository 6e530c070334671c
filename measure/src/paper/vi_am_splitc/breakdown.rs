//! Tables 3 and 4, figures 3 and 4: what the host's time is spent on.

use doorbell_logp::Estimate;
use doorbell_report::{
    Axis, Bar, Bars, Cell, Column, Figure, Note, Section, Table, Value as Number,
};
use serde_json::Value;

use super::published::{GET, REQUEST_AND_REPLY, cited};
use super::{claim, is_below};
use crate::paper::bench::{Bench, Run};
use crate::perf::costs;

/// An operation whose costs are broken down: the table and the figure of the paper, its name, the
/// test, its arguments, and the published values.
struct Operation {
    table: u32,
    figure: u32,
    name: &'static str,
    test: &'static str,
    arguments: &'static [&'static str],
    published: [f64; 4],
}

const OPERATIONS: [Operation; 2] = [
    Operation {
        table: 3,
        figure: 3,
        name: "a short request and its reply",
        test: "am_costs",
        arguments: &[],
        published: REQUEST_AND_REPLY,
    },
    Operation {
        table: 4,
        figure: 4,
        name: "a get of Split-C by messages",
        test: "splitc_costs",
        arguments: &["--carrier", "messages"],
        published: GET,
    },
];
pub const TESTS: usize = if costs::CAN_MEASURE { OPERATIONS.len() } else { 0 };

/// The paper's categories, and how the measurements name them.
const CATEGORIES: [(&str, &str); 4] = [
    ("Base", "base_ns"),
    ("Event notification", "notification_ns"),
    ("Flow control", "flow_control_ns"),
    ("Semantics", "semantics_ns"),
];

/// The four parts in nanoseconds, of several runs. The paper's semantics contain the handlers.
fn parts(runs: &[Value]) -> Option<[Number; 4]> {
    let mut parts = [Number::exact(0.0); 4];
    for (number, (name, key)) in parts.iter_mut().zip(CATEGORIES) {
        let part = |run: &Value| {
            let handlers = if name == "Semantics" { run["handlers_ns"].as_f64()? } else { 0.0 };
            Some(run[key].as_f64()? + handlers)
        };
        let values: Option<Vec<_>> = runs.iter().map(part).collect();
        let Estimate { value, low, high } = Estimate::of_runs(&values?)?;
        *number = Number::within(value, low, high);
    }
    Some(parts)
}

/// Each part's share of all parts, in per cent.
fn shares(parts: [Number; 4]) -> [f64; 4] {
    let all: f64 = parts.iter().map(|part| part.value).sum();
    parts.map(|part| 100.0 * part.value / all.max(f64::MIN_POSITIVE))
}

pub fn section(bench: &mut Bench) -> Section {
    let section = Section::new("Tables 3 and 4: what the host's time is spent on");
    if !costs::CAN_MEASURE {
        return section.note(Note::missing(format!(
            "Tables 3 and 4: this command was built without the second copy of its sources, in which \
             spans are timed. `{}` builds it with it.",
            costs::BUILT_BY
        )));
    }
    let mut section = section.paragraph(
        "Both ends run in one thread, so that all of the time is the host's, and spans are timed in \
         a second copy of the same sources that is compiled with them. Base is what the interface \
         below takes: requests posted, doorbells rung, the NIC's turns. Event notification is \
         looking for completions; flow control is credits and buffers; semantics is making \
         messages, taking them apart, and dispatching them.",
    );
    for operation in &OPERATIONS {
        section = measured(bench, operation, section);
    }
    section
}

/// Adds the table, the figure and the claims of an operation.
fn measured(bench: &mut Bench, operation: &Operation, section: Section) -> Section {
    let Operation { figure: number, name, test, arguments, published, .. } = operation;
    let axis = Axis::linear("Share of the host's time", "%");
    let mut bars = Bars::stacked(axis, CATEGORIES.map(|(name, _)| name));
    let (mut found, mut notes) = (Vec::new(), Vec::new());
    for device in bench.devices() {
        let runs = bench.costs(Run { test, device: &device, arguments });
        let Some(parts) = parts(&runs) else { continue };
        let shares = shares(parts);
        bars = bars.bar(Bar::new(device.clone(), shares.map(Number::exact)));
        notes.push(largest(&device, parts));
        found.push((device, parts, shares));
    }
    let then = Bar::new("Myrinet, LANai 7", published.map(Number::exact));
    let then = then.published(cited(&format!("figure {number}")));
    let title = format!("The paper's figure {number}: the host's time of {name}");
    let figure = Figure::new(format!("figure-{number}"), title, bars.bar(then)).sentence(
        "How the host's time is shared out, here and in the paper. The base here does the work of \
         the paper's adapter, too.",
    );
    let section = section.table(table(operation, &found)).figure(figure);
    notes.into_iter().fold(section, Section::note)
}

/// The parts of an operation's time, a row for each: in nanoseconds and in per cent on each device,
/// and the per cent that were published.
fn table(operation: &Operation, found: &[(String, [Number; 4], [f64; 4])]) -> Table {
    let Operation { table: number, name, published, .. } = operation;
    let citation = cited(&format!("table {number}"));
    let title = format!("The paper's table {number}: {name}, both sides");
    let mut table = Table::new(format!("table-{number}"), title).column(Column::text("Category"));
    for (device, ..) in found {
        table = table.column(Column::number(device, "ns").decimals(0));
        table = table.column(Column::number(format!("{device}, share"), "%").decimals(1));
    }
    table = table.column(Column::number("LANai 7, share", "%"));
    for (row, (category, _)) in CATEGORIES.iter().enumerate() {
        let cells = found
            .iter()
            .flat_map(|(_, parts, shares)| [Cell::from(parts[row]), Cell::from(shares[row])]);
        let then = Cell::published(published[row], citation.clone());
        table = table.row([Cell::from(*category)].into_iter().chain(cells).chain([then]));
    }
    let sums = found.iter().flat_map(|(_, parts, _)| {
        let all: f64 = parts.iter().map(|part| part.value).sum();
        [Cell::from(all), Cell::from(100.0)]
    });
    table.row([Cell::from("All")].into_iter().chain(sums))
}

/// Whether event notification is the largest part above the base.
fn largest(device: &str, parts: [Number; 4]) -> Note {
    let [_, notification, flow, semantics] = parts;
    let above_both = match (is_below(flow, notification), is_below(semantics, notification)) {
        (Some(true), Some(true)) => Some(true),
        (Some(false), _) | (_, Some(false)) => Some(false),
        _ => None,
    };
    let [_, of_notification, of_flow, of_semantics] = shares(parts);
    claim(
        above_both,
        format!(
            "Event notification is the largest cost above the base (§7.3: it was a read and a write \
             over the I/O bus). Over {device}: {of_notification:.0} %, beside flow control \
             {of_flow:.0} % and semantics {of_semantics:.0} %."
        ),
    )
}
