//! Figures 10 and 11: how much of the processor is left beside messages.

use doorbell_report::{Axis, Cell, Column, Figure, Lines, Note, Section, Series, Table};

use super::published::{AVAILABLE, cited};
use super::{COMMON, STEPS};
use crate::paper::exchange::Exchanges;
use crate::paper::judging::claim;

pub const RUNS: usize = STEPS.len();
/// The microseconds of computation between two looks whether the message is back.
const INTERVALS: &str = "1,3,10,30,100,300,1000,3000";

/// The bandwidth and the availability of one step at one interval of computation.
#[derive(Clone, Copy)]
struct Point {
    interval: f64,
    /// In megabytes a second.
    rate: f64,
    /// The availability of the processor in per cent.
    availability: f64,
}

impl Point {
    /// The product of both, in megabytes a second.
    fn effective(&self) -> f64 {
        self.rate * self.availability / 100.0
    }
}

/// A figure's number, its title, its axis, and what of a point is in it.
type Curve = (&'static str, &'static str, Axis, fn(&Point) -> f64);

pub fn section(exchanges: &mut Exchanges, device: &str) -> Section {
    let steps = STEPS.map(|(name, arguments)| {
        let run = format!(
            "availability {COMMON} {arguments} --sizes 32768 --work {INTERVALS} --device {device}"
        );
        let found = exchanges.run(&format!("availability, {name}"), &run, 0.2);
        let points = found.iter().filter_map(|entry| {
            Some(Point {
                interval: entry["work_us"].as_f64()?,
                rate: entry["rate"].as_f64()?,
                availability: 100.0 * entry["availability"].as_f64()?,
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
        (
            "11",
            "Effective bandwidth",
            Axis::linear("Effective bandwidth", "MB/s"),
            Point::effective,
        ),
    ];
    let mut section = Section::new(format!(
        "Figures 10 and 11: availability and bandwidth over {device}"
    ))
    .paragraph(
        "The paper's loop (its figure 9): the program posts a send and a receive of 32 KiB, \
                 and computes in pieces until the receive is done, again and again, until all its \
                 computation is done. Availability is the time that this takes without answers, by \
                 the time that it takes with them. Effective bandwidth is bandwidth times \
                 availability.",
    );
    for (number, title, y, of) in curves {
        let mut lines = Lines::new(axis(), y);
        for ((name, _), points) in STEPS.iter().zip(&steps) {
            let points = points.iter().map(|point| (point.interval, of(point)));
            lines = lines.series(Series::new(*name, points));
        }
        section = section.figure(Figure::new(
            format!("figure-{number}-{device}"),
            format!("The paper's figure {number}: {} over {device}", title.to_lowercase()),
            lines,
        ));
    }
    let best = steps.each_ref().map(|points| {
        points.iter().copied().max_by(|one, other| one.effective().total_cmp(&other.effective()))
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
            let values = [point.rate, point.availability, point.effective()].map(Cell::from);
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
    let effective = best.map(|best| best.map(|point| point.effective()));
    let shown = |of: Option<f64>| of.map_or("not measured".to_owned(), |of| format!("{of:.0}"));
    (1..3)
        .map(|step| {
            let holds =
                effective[step].zip(effective[step - 1]).map(|(after, before)| after > before);
            claim(
                holds,
                format!(
                    "Step {step} has more effective bandwidth than step {} (§5.2: {} against {} \
                     MB/s). Here: {} against {} MB/s.",
                    step - 1,
                    AVAILABLE[step][2],
                    AVAILABLE[step - 1][2],
                    shown(effective[step]),
                    shown(effective[step - 1])
                ),
            )
        })
        .collect()
}
