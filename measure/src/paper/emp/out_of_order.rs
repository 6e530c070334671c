//! What frames cost that arrive out of order, which the paper supports and has no figure of.

use doorbell_logp::Estimate;
use doorbell_report::{Column, Section, Table, Value};
use serde_json::json;

use super::simulated::{BYTES, Carrier, DELAY, Outcome, PLACES, Run};
use crate::interrupts;
use crate::judging::{both, claim, is_below, is_between, ratio, times, told};
use crate::paper::exchange::Exchanges;
use crate::paper::length::Of;

/// The share of frames that are held back.
const REORDERING: f64 = 0.01;
/// How many per cent of the rate count as nearly all of it.
const LEFT: f64 = 90.0;

const CARRIERS: [(&str, Carrier); 3] = [
    ("EMP", Carrier::Frames),
    ("Reliable connection, selective repeat", Carrier::SelectiveRepeat),
    ("Reliable connection, go-back-N", Carrier::GoBackN),
];

/// How much is measured.
#[derive(Clone, Copy)]
struct Size {
    /// How many runs there are, each with a seed of its own.
    runs: u64,
    /// How many messages each run sends.
    messages: u32,
}

/// The runs of one carrier, with and without frames out of order.
struct Compared {
    in_order: Option<Value>,
    out_of_order: Option<Value>,
    /// The frames that were sent again out of order, in per cent of those of the messages.
    again: Option<Value>,
}

impl Compared {
    /// The share of the rate in order that is left out of order, in per cent.
    fn left(&self) -> Option<Value> {
        ratio(self.out_of_order?, self.in_order?).map(|left| times(100.0, left))
    }
}

pub fn section(exchanges: &mut Exchanges) -> Section {
    let size = exchanges.length().choose(Of {
        full: Size { runs: 8, messages: 64 },
        quick: Size { runs: 4, messages: 32 },
        brief: Size { runs: 2, messages: 2 },
    });
    let mut table = Table::new(
        "out-of-order",
        format!(
            "Messages of {} KiB with {} % of frames held back, for as long as up to {PLACES} \
             others take",
            BYTES >> 10,
            100.0 * REORDERING
        ),
    )
    .column(Column::text("Carrier"))
    .column(Column::number("In order", "MB/s").decimals(1))
    .column(Column::number("Out of order", "MB/s").decimals(1))
    .column(Column::number("Left of the rate", "%").decimals(1))
    .column(Column::number("Sent again, of the frames", "%").decimals(1));
    let compared = CARRIERS.map(|(name, carrier)| compare(exchanges, name, carrier, size));
    for ((name, _), of) in CARRIERS.iter().zip(&compared) {
        let cells = [of.in_order, of.out_of_order, of.left(), of.again].map(Into::into);
        table = table.row([(*name).into()].into_iter().chain(cells));
    }
    let [frames, selective, back] = compared.map(|of| of.left());
    Section::new("Frames out of order, on a simulated link")
        .paragraph(format!(
            "The cable between two processes keeps frames in order. So messages cross a simulated \
             link of 1 Gb/s and {DELAY} µs each way: as EMP's frames, and as RDMA writes of a \
             reliable connection with packets of 1,024 bytes, of which 64 KiB may be \
             unacknowledged. All messages are posted at once. Times are virtual, and processors \
             take none. With go-back-N, as the standard has it, a packet that comes too early is \
             dropped."
        ))
        .table(table)
        .note(claim(
            is_between(frames, LEFT, f64::INFINITY),
            format!(
                "Frames out of order are supported (§4.1, without a figure; here judged by more \
                 than {LEFT} % of the rate being left). By EMP there is left: {}.",
                told(frames, 1, "%")
            ),
        ))
        .note(claim(
            both(is_between(selective, LEFT, f64::INFINITY), is_below(back, selective)),
            format!(
                "Reliable connections with selective repeat support them, too (judged in the same \
                 way, and by more being left than with go-back-N). There is left: {}; with \
                 go-back-N: {}.",
                told(selective, 1, "%"),
                told(back, 1, "%")
            ),
        ))
}

/// Measures a carrier with frames in order and out of order.
fn compare(exchanges: &mut Exchanges, name: &str, carrier: Carrier, size: Size) -> Compared {
    let [in_order, out_of_order] = [0.0, REORDERING].map(|reordering| {
        let what = format!("simulated link, {name}, {} % held back", 100.0 * reordering);
        let run = Run { carrier, reordering, messages: size.messages, seed: 0 };
        outcomes(exchanges, &what, run, size.runs)
    });
    Compared {
        in_order: mean(&in_order, |it| it.rate),
        out_of_order: mean(&out_of_order, |it| it.rate),
        again: mean(&out_of_order, |it| 100.0 * it.again),
    }
}

/// Repeats a run with several seeds, and keeps what each has found.
fn outcomes(exchanges: &mut Exchanges, what: &str, run: Run, runs: u64) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    for seed in (1..=runs).take_while(|_| !interrupts::is_interrupted()) {
        match (Run { seed, ..run }).outcome() {
            Ok(outcome) => outcomes.push(outcome),
            Err(why) => exchanges.fail(format!("{what}, seed {seed}: {why:#}")),
        }
    }
    let entry = |it: &Outcome| json!({ "rate": it.rate, "held": it.held, "again": it.again });
    let entries: Vec<_> = outcomes.iter().map(entry).collect();
    exchanges.keep(what, json!(entries));
    outcomes
}

/// The mean of the runs, none of which is below zero, with its interval; `None` if there are not
/// enough for one.
fn mean(outcomes: &[Outcome], of: impl Fn(&Outcome) -> f64) -> Option<Value> {
    let values: Vec<_> = outcomes.iter().map(of).collect();
    let Estimate { value, low, high } = Estimate::of_runs(&values)?;
    Some(Value::within(value, low.max(0.0), high))
}
