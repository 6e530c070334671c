//! Figure 8 and table 2: the request for more before the end of a window, and the bubble that is
//! left without it.

use doorbell_report::{Axis, Cell, Column, Figure, Lines, Note, Section, Series, Table, Value};
use serde_json::json;

use super::arguments::COMMON;
use super::published::{BUBBLE, EARLY, cited};
use super::simulated;
use crate::judging::{claim, difference, is_between, ratio};
use crate::paper::exchange::{Exchanges, value};

/// How many frames before the end of a window more are requested.
const FRAMES: [u16; 6] = [0, 3, 6, 9, 12, 15];
pub const RUNS: usize = FRAMES.len();
/// The frames of a window, and the bytes of a frame.
const WINDOW: f64 = 16.0;
const FRAME: f64 = 1388.0;
/// The delays of the simulated link each way, in microseconds. With the longest, what is between a
/// request for more and the answer is as long as in the paper.
const DELAYS: [u64; 3] = [5, 18, 36];

/// Rates by how early more is requested.
type Curve = Vec<(f64, Value)>;

pub fn section(exchanges: &mut Exchanges, device: &str) -> Section {
    let mut curves: Vec<(String, Curve)> = Vec::new();
    for delay in DELAYS {
        let mut rates = Vec::new();
        for early in FRAMES {
            match simulated::rate(early, delay) {
                Some(rate) => rates.push((f64::from(early), rate)),
                None => exchanges.fail(format!(
                    "simulated link of {delay} µs, {early} frames early: the message has not come"
                )),
            }
        }
        exchanges.keep(&format!("simulated link of {delay} µs"), json!(rates));
        let curve = rates.into_iter().map(|(at, rate)| (at, rate.into())).collect();
        curves.push((format!("Simulated link of 1 Gb/s, {delay} µs each way"), curve));
    }
    let measured: Curve = FRAMES
        .iter()
        .filter_map(|early| {
            let run = format!(
                "ping-pong {COMMON} --step 2 --runs program --early {early} --sizes 262144 --device {device}"
            );
            let found = exchanges.run(&format!("ping-pong, {early} frames early"), &run, 0.3);
            Some((f64::from(*early), value(&found.first()?["rate"])?))
        })
        .collect();
    curves.push((format!("Here, over {device}"), measured));
    let mut lines = Lines::new(
        Axis::linear("Request for more, before the end of the window", "frames"),
        Axis::log("Bandwidth", "MB/s"),
    );
    for (name, curve) in &curves {
        lines = lines.series(Series::new(name.clone(), curve.iter().copied()));
    }
    lines = lines.series(Series::new("RMPP (2002)", EARLY).published(cited("figure 8, §5.1")));
    let mut table = Table::new(
        format!("table-2-{device}"),
        "The paper's table 2: the bubble between two windows of 16 frames, by the two ends of figure 8",
    )
    .column(Column::text("Link"))
    .column(Column::number("Requested with the last frame", "MB/s"))
    .column(Column::number("15 frames early", "MB/s"))
    .column(Column::number("Bubble", "µs"));
    for (name, curve) in &curves {
        let (late, soon) = (ends(curve).0, ends(curve).1);
        table = table.row([name.clone().into(), late.into(), soon.into(), bubble(curve).into()]);
    }
    let [by_rate, by_sum] = BUBBLE.map(|of| Cell::published(of, cited("§5.1")));
    let [late, soon] = EARLY.map(|(_, rate)| Cell::published(rate, cited("figure 8")));
    table = table.row(["RMPP (2002)".into(), late, soon, by_rate]);
    table = table.row([
        "RMPP (2002), the sum of what has to be done".into(),
        Cell::from(""),
        Cell::from(""),
        by_sum,
    ]);
    let section = Section::new(format!("Figure 8 and table 2: requesting more early, over {device}"))
        .paragraph(
            "The cable between two processes of one machine has no delay to speak of. So the effect \
             is also shown on a simulated link, in virtual time, in which only the link takes time.",
        )
        .figure(Figure::new(
            format!("figure-8-{device}"),
            format!(
                "The paper's figure 8: bandwidth by how early more is requested, over {device}{}",
                gained(&curves)
            ),
            lines,
        ))
        .table(table);
    notes(&curves).into_iter().fold(section, Section::note)
}

/// How much more bandwidth requesting early brings on the slowest simulated link and here, as the end
/// of a title.
fn gained(curves: &[(String, Curve)]) -> String {
    let gain = |(name, curve): &(String, Curve)| {
        let (Some(late), Some(soon)) = ends(curve) else { return None };
        Some(format!("{:+.0} % ({name})", 100.0 * (soon.value / late.value - 1.0)))
    };
    let both: Vec<_> = [curves.get(DELAYS.len() - 1), curves.last()]
        .into_iter()
        .flatten()
        .filter_map(gain)
        .collect();
    if both.is_empty() { String::new() } else { format!(". 15 frames early: {}", both.join(", ")) }
}

/// The rates with more requested with the last frame, and as early as is measured.
fn ends(curve: &Curve) -> (Option<Value>, Option<Value>) {
    let at = |early: u16| curve.iter().find(|(of, _)| *of == f64::from(early)).map(|it| it.1);
    (at(FRAMES[0]), at(FRAMES[FRAMES.len() - 1]))
}

/// The time that a window takes longer if more is requested with its last frame than if 15 frames
/// early, in microseconds.
fn bubble(curve: &Curve) -> Option<Value> {
    let (late, soon) = ends(curve);
    let takes = |rate: Option<Value>| ratio(Value::exact(WINDOW * FRAME), rate?);
    Some(difference(takes(late)?, takes(soon)?))
}

fn notes(curves: &[(String, Curve)]) -> Vec<Note> {
    let mut notes = Vec::new();
    for (name, curve) in curves {
        let (Some(late), Some(soon)) = ends(curve) else { continue };
        let gain = 100.0 * (soon.value / late.value - 1.0);
        notes.push(claim(
            is_between(ratio(soon, late), 1.1, f64::INFINITY),
            format!(
                "Requesting more 15 frames early closes the bubble and adds bandwidth (§5.1: nearly \
                 22 %, from 69 to 88 MB/s; here judged as more than 10 %). {name}: {gain:.0} %.",
            ),
        ));
    }
    notes
}
