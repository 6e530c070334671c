//! Figure 6: throughput against the share of the processor that computation takes.

use doorbell_report::{Axis, Figure, Lines, Section, Series, Value};

use super::{CARRIERS, over};
use crate::paper::exchange::{Exchanges, value};
use crate::paper::judging::claim;

pub const RUNS: usize = CARRIERS.len();
/// The microseconds of computation in each round.
const WORK: &str = "0,20,50,100,200,400,1000,3000";

pub fn section(exchanges: &mut Exchanges, device: &str) -> Section {
    let mut lines = Lines::new(
        Axis::linear("Share of the processor that computation takes", "%"),
        Axis::linear("Throughput", "MB/s"),
    );
    let mut keeps = Vec::new();
    for (name, arguments) in CARRIERS {
        let run = format!("share {} --sizes 10000 --work {WORK}", over(device, arguments));
        let found = exchanges.run(&format!("share, {name}"), &run, 0.2);
        let points: Vec<(f64, Value)> = found
            .iter()
            .filter_map(|entry| {
                let share = entry["share"]["value"].as_f64()?;
                Some((100.0 * share.min(1.0), value(&entry["rate"])?))
            })
            .collect();
        keeps.push(kept(&points));
        lines = lines.series(Series::new(name, points));
    }
    let [tcp, _, thread] = [0, 1, 2].map(|at| keeps.get(at).copied().flatten());
    let shown = |of: Option<f64>| of.map_or("not measured".to_owned(), |of| format!("{of:.0} %"));
    let holds = thread.zip(tcp).map(|(thread, tcp)| thread > tcp && thread > 70.0);
    Section::new(format!("Figure 6: computation beside messages over {device}"))
        .paragraph(
            "In each round receives are posted, then sends, then the program computes, then it \
             waits: five messages of 10 kB each way. The other program only exchanges messages.",
        )
        .figure(Figure::new(
            format!("figure-6-{device}"),
            format!("The paper's figure 6: throughput beside computation over {device}"),
            lines,
        ))
        .note(claim(
            holds,
            format!(
                "With the protocol off the program's processor, throughput stays flat while \
                 computation takes more of it, and TCP's falls (§5.2; here judged by what is left \
                 of the throughput when computation takes a third: more than 70 %, and more than of \
                 TCP's). With a thread {} is left, by TCP {}.",
                shown(thread),
                shown(tcp)
            ),
        ))
}

/// How much of the throughput is left when computation takes a third of the processor, in per cent:
/// on the straight line between the two points beside.
fn kept(points: &[(f64, Value)]) -> Option<f64> {
    const SHARE: f64 = 100.0 / 3.0;
    let first = points.first()?.1.value;
    let after = points.iter().position(|&(share, _)| share >= SHARE).filter(|&at| at > 0)?;
    let ((from, low), (to, high)) = (points[after - 1], points[after]);
    let way = (SHARE - from) / (to - from);
    let rate = low.value + way * (high.value - low.value);
    Some(100.0 * rate / first)
}
