//! Figures 10 and 11: how much of the processor is left beside messages.

use doorbell_report::{Axis, Cell, Column, Figure, Lines, Note, Section, Series, Table, Value};

use super::arguments::{COMMON, STEPS};
use super::published::{AVAILABLE, cited};
use crate::judging::{claim, is_below, times};
use crate::paper::exchange::{Exchanges, value};
use crate::paper::titles;

pub const RUNS: usize = STEPS.len();
/// The microseconds of computation between two looks whether the message is back.
const INTERVALS: &str = "1,3,10,30,100,300,1000,3000";

/// The bandwidth and the availability of one step at one interval of computation.
#[derive(Clone, Copy)]
struct Point {
    interval: f64,
    /// In megabytes a second.
    rate: Value,
    /// The availability of the processor in per cent.
    availability: Value,
    /// The product of both, in megabytes a second.
    effective: Value,
    /// The effective bandwidth by other parts of the measurement than those of the values above. The
    /// greatest of several uncertain numbers is too great on average; so one half of the parts tells
    /// which interval is the best, and the other half how good that interval is.
    chosen_by: f64,
}

/// A figure's number, its title, its axis, and what of a point is in it.
type Curve = (&'static str, &'static str, Axis, fn(&Point) -> Value);

pub fn section(exchanges: &mut Exchanges, device: &str) -> Section {
    let steps = STEPS.map(|(name, arguments)| {
        let run = format!(
            "availability {COMMON} {arguments} --sizes 32768 --work {INTERVALS} --device {device}"
        );
        let found = exchanges.run(&format!("availability, {name}"), &run, 0.2);
        let points = found.iter().filter_map(|entry| {
            Some(Point {
                interval: entry["work_us"].as_f64()?,
                rate: value(&entry["rate"])?,
                availability: times(100.0, value(&entry["availability"])?),
                effective: value(&entry["effective"])?,
                chosen_by: entry["chosen_by"].as_f64()?,
            })
        });
        points.collect::<Vec<_>>()
    });
    let axis = || Axis::log("Computation between two looks", "µs");
    let curves: [Curve; 3] = [
        ("10-availability", "Availability", Axis::linear("Availability", "%"), |point| {
            point.availability
        }),
        ("10-bandwidth", "Bandwidth", Axis::linear("Bandwidth", "MB/s"), |point| point.rate),
        ("11", "Effective bandwidth", Axis::linear("Effective bandwidth", "MB/s"), |point| {
            point.effective
        }),
    ];
    let mut section = Section::new(format!(
        "Figures 10 and 11: availability and bandwidth over {device}"
    ))
    .paragraph(
        "The paper's loop (its figure 9): the program posts a send and a receive of 32 KiB, \
                 and computes in pieces until the receive is done, again and again, until all its \
                 computation is done. Availability is the time that this takes without answers, by \
                 the time that it takes with them. Effective bandwidth is bandwidth times \
                 availability. Half of the rounds tell which interval is best for a step, and the \
                 other half how good that is.",
    );
    for (number, title, y, of) in curves {
        let mut lines = Lines::new(axis(), y);
        for (colour, ((name, _), points)) in STEPS.iter().zip(&steps).enumerate() {
            let points = points.iter().map(|point| (point.interval, of(point)));
            lines = lines.series(Series::new(*name, points).colour(colour));
        }
        let figure = number.split('-').next().unwrap_or_default();
        let begin = format!("The paper's figure {figure}: {} over {device}", title.to_lowercase());
        section = section.figure(Figure::new(
            format!("figure-{number}-{device}"),
            titles::at(&begin, &lines, 100.0),
            lines,
        ));
    }
    let best = steps.each_ref().map(|points| {
        points.iter().copied().max_by(|one, other| one.chosen_by.total_cmp(&other.chosen_by))
    });
    section = section.table(table(device, &best));
    notes(&best).into_iter().fold(section, Section::note)
}

/// The interval of each step with the most effective bandwidth, beside what was published.
fn table(device: &str, best: &[Option<Point>; 3]) -> Table {
    let mut table = Table::new(
        format!("figure-11-best-{device}"),
        format!("The most effective bandwidth of each step over {device}"),
    )
    .column(Column::text("Step"))
    .column(Column::number("Bandwidth", "MB/s").decimals(0))
    .column(Column::number("Availability", "%").decimals(0))
    .column(Column::number("Effective bandwidth", "MB/s").decimals(0));
    for ((name, _), best) in STEPS.iter().zip(best) {
        if let Some(point) = best {
            let values = [point.rate, point.availability, point.effective].map(Cell::from);
            let [rate, availability, effective] = values;
            table = table.row([(*name).into(), rate, availability, effective]);
        }
    }
    for (step, values) in AVAILABLE.into_iter().enumerate() {
        let [rate, availability, effective] =
            values.map(|of| Cell::published(of, cited("figures 10 and 11")));
        table = table.row([format!("Step {step} (2002)").into(), rate, availability, effective]);
    }
    table
}

fn notes(best: &[Option<Point>; 3]) -> Vec<Note> {
    let mut notes = Vec::new();
    for step in [1, 2] {
        let Some((before, after)) = best[step - 1].zip(best[step]) else { continue };
        notes.push(claim(
            is_below(before.effective, after.effective),
            format!(
                "Step {step} has more effective bandwidth than step {} (§5.2: {} against {} MB/s). \
                 Here: {:.0} against {:.0} MB/s.",
                step - 1,
                AVAILABLE[step][2],
                AVAILABLE[step - 1][2],
                after.effective.value,
                before.effective.value
            ),
        ));
    }
    notes
}
