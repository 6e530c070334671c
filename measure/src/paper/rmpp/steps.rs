//! Figure 7: bandwidth by what is offloaded.

use doorbell_report::{Axis, Cell, Column, Figure, Lines, Section, Series, Table, Value};

use super::arguments::{COMMON, STEPS};
use super::published::{STEPS as PUBLISHED, cited};
use crate::judging::{claim, is_below};
use crate::paper::exchange::{Exchanges, value};
use crate::paper::titles;

pub const RUNS: usize = 2 * STEPS.len();
const SIZES: &str = "4096,16384,32768,65536,262144";
const LONGEST: f64 = 262_144.0;

/// Rates by the length in bytes.
type Curve = Vec<(f64, Value)>;

pub fn section(exchanges: &mut Exchanges, device: &str) -> Section {
    let mut measure = |name: &str, arguments: &str| -> Curve {
        let run = format!("ping-pong {COMMON} {arguments} --sizes {SIZES} --device {device}");
        let found = exchanges.run(&format!("ping-pong, {name}"), &run, 0.2);
        let points = found.iter();
        points.filter_map(|it| Some((it["size"].as_f64()?, value(&it["rate"])?))).collect()
    };
    let threads = STEPS.map(|(name, arguments)| measure(name, arguments));
    let inline = STEPS.map(|(name, arguments)| measure(name, &arguments.replace("nic", "program")));
    let mut lines =
        Lines::new(Axis::bytes("Length of a message"), Axis::linear("Bandwidth", "MB/s"));
    let mut table = Table::new(
        format!("figure-7-longest-{device}"),
        format!("Figure 7's right end: the longest messages over {device}"),
    )
    .column(Column::text("Step"))
    .column(Column::number("NIC with a thread", "MB/s").decimals(0))
    .column(Column::number("NIC run by the program", "MB/s").decimals(0))
    .column(Column::number("Published", "MB/s").decimals(0));
    let longest = |curve: &Curve| curve.iter().find(|(size, _)| *size == LONGEST).map(|it| it.1);
    for (colour, ((name, _), ((threads, inline), published))) in
        STEPS.iter().zip(threads.iter().zip(&inline).zip(PUBLISHED)).enumerate()
    {
        lines = lines.series(Series::new(*name, threads.iter().copied()).colour(colour));
        let published = Cell::published(published, cited("§5.1"));
        table =
            table.row([(*name).into(), longest(threads).into(), longest(inline).into(), published]);
    }
    for (step, rate) in PUBLISHED.iter().enumerate() {
        lines = lines.level(format!("Step {step}: {rate} MB/s (2002)"), *rate);
    }
    let mut section = Section::new(format!("Figure 7: bandwidth by step over {device}"))
        .paragraph(
            "Messages there and back, of which four circulate. In step 0, frames are datagrams that \
             both hosts copy. In step 1 the sender's host posts an RDMA write for each frame, and \
             the receiver's NIC places it. In step 2 the sender's host posts one RDMA write for all \
             frames that are cleared.",
        )
        .figure(Figure::new(
            format!("figure-7-{device}"),
            titles::at(
                &format!("The paper's figure 7: bandwidth by step over {device}"),
                &lines,
                LONGEST,
            ),
            lines,
        ))
        .table(table);
    for (way, curves) in [("with a thread for the NIC", &threads), ("inline", &inline)] {
        for step in [1, 2] {
            let both = longest(&curves[step - 1]).zip(longest(&curves[step]));
            let Some((before, after)) = both else { continue };
            section = section.note(claim(
                is_below(before, after),
                format!(
                    "Step {step} has more bandwidth than step {} (§5.1: {} against {} MB/s). Here, \
                     {way}: {:.1} against {:.1} MB/s.",
                    step - 1,
                    PUBLISHED[step],
                    PUBLISHED[step - 1],
                    after.value,
                    before.value
                ),
            ));
        }
    }
    section
}
