//! Table 2: the parameters of LogP, and what Active Messages and Split-C cost above the floor.

use doorbell_report::{Cell, Column, Section, Table, Value};

use super::published::{PARAMETERS, cited};
use super::{claim, difference, is_below, is_between, ratio};
use crate::logp::line::{
    GAP, HALF_ROUND_TRIP, LATENCY, Line, Parameter, RECEIVE_OVERHEAD, SEND_OVERHEAD,
};
use crate::paper::bench::{Bench, Run};

/// The rows of the table: a name, the test, and its arguments.
const ROWS: [(&str, &str, &[&str]); 6] = [
    ("verbs", "logp_verbs", &[]),
    ("Active Messages", "logp_am", &[]),
    ("Active Messages as AMVIAv3", "logp_am", &["--policy", "apart"]),
    ("Active Messages as AMVIAv1", "logp_am", &["--policy", "per-size"]),
    ("Split-C by messages", "logp_splitc", &["--carrier", "messages"]),
    ("Split-C by RDMA reads", "logp_splitc", &["--carrier", "one-sided"]),
];
pub const TESTS: usize = ROWS.len();

/// The columns behind Δ.
const COLUMNS: [Parameter; 4] = [LATENCY, SEND_OVERHEAD, RECEIVE_OVERHEAD, GAP];

fn value(line: Option<&Line>, parameter: Parameter) -> Option<Value> {
    let estimate = line?.get(parameter)?;
    Some(Value::within(estimate.value, estimate.low, estimate.high))
}

pub fn section(bench: &mut Bench) -> Section {
    let mut table =
        Table::new("table-2", "Parameters of LogP; Δ is what RTT/2 is above that of verbs")
            .column(Column::text("Layer"))
            .column(Column::number("RTT/2", "µs"))
            .column(Column::number("Δ", "µs"));
    for parameter in COLUMNS {
        table = table.column(Column::number(parameter.name, parameter.unit));
    }
    let mut notes = Vec::new();
    for device in bench.devices() {
        let lines = ROWS
            .map(|(_, test, arguments)| bench.parameters(Run { test, device: &device, arguments }));
        let floor = value(lines[0].as_ref(), HALF_ROUND_TRIP);
        table = table.group(&*device, format!(" over {device}"));
        for (line, (name, ..)) in lines.iter().zip(ROWS) {
            let half = value(line.as_ref(), HALF_ROUND_TRIP);
            let above = half.zip(floor).map(|(half, floor)| difference(half, floor));
            let above = above.filter(|_| name != "verbs");
            let others = COLUMNS.map(|one| Cell::from(value(line.as_ref(), one)));
            let cells = [name.into(), half.into(), above.into()];
            table = table.row(cells.into_iter().chain(others));
        }
        notes.extend(notes_on(&device, &lines));
    }
    table = table.group("Published", "");
    for (name, values) in PARAMETERS {
        let cells = values.map(|value| Cell::published(value, cited("table 2")));
        table = table.row([name.into()].into_iter().chain(cells));
    }
    let mut section = Section::new("Table 2: parameters of LogP").paragraph(
        "Each layer by the method of Culler, Liu, Martin and Yoshikawa (1996). AMVIAv1 has a \
         connection for each size of message and no RDMA writes, AMVIAv3 one connection and a send \
         for each message; Doorbell by itself lets short messages share a send.",
    );
    section = section.table(table);
    notes.into_iter().fold(section, Section::note)
}

/// The conclusions that the paper draws from its table, compared with these lines.
fn notes_on(device: &str, lines: &[Option<Line>; 6]) -> Vec<doorbell_report::Note> {
    let half = |row: usize| value(lines[row].as_ref(), HALF_ROUND_TRIP);
    let mut notes = Vec::new();
    if let (Some(verbs), Some(am)) = (half(0), half(1)) {
        let above = am.value - verbs.value;
        let share = 100.0 * above / am.value;
        notes.push(claim(
            is_between(ratio(verbs, am), 0.0, 0.9),
            format!(
                "The mapping of Active Messages to the interface costs a substantial part of half a \
                 round trip: 5.4 of 35.6 µs, 15 % (§7.1; here judged as a tenth or more). Over \
                 {device}: {above:.3} of {:.3} µs, {share:.0} %.",
                am.value
            ),
        ));
    }
    if let (Some(third), Some(first)) = (half(2), half(3)) {
        notes.push(claim(
            is_below(third, first),
            format!(
                "One connection for all sizes (v3) is faster than one for each size (v1): 35.6 \
                 beside 39.2 µs (§7.1). Over {device}: {:.3} beside {:.3} µs.",
                third.value, first.value
            ),
        ));
    }
    if let (Some(am), Some(splitc)) = (half(1), half(4)) {
        notes.push(claim(
            is_between(ratio(splitc, am), 1.0 / 1.25, 1.25),
            format!(
                "Split-C and Active Messages perform very similarly, despite their different \
                 mapping (§7.2; here judged as within 25 %). Over {device}, half a round trip of a get by messages: {:.3}, of \
                 an Active Message: {:.3} µs.",
                splitc.value, am.value
            ),
        ));
    }
    notes
}
