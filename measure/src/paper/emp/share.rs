//! Figure 6: throughput beside computation, and what of the processor computation gets, by the amount
//! of computation that is set.

use doorbell_report::{Axis, Figure, Lines, Section, Series, Value};

use super::carriers::{CARRIERS, over};
use crate::judging::{both, claim, is_below, is_between, ratio, times, told};
use crate::paper::exchange::{Exchanges, value};
use crate::paper::titles;

pub const RUNS: usize = CARRIERS.len();
/// The microseconds of computation in each round.
const WORK: &str = "0,20,50,100,200,400,1000,3000";
/// The computation that the titles of the figures are of.
const MIDDLE: f64 = 400.0;
/// How many per cent of the throughput count as nearly all, where the paper's curve is flat.
const LEFT: f64 = 70.0;

/// A round with an amount of computation.
#[derive(Clone, Copy)]
struct Point {
    /// The computation that was set, in microseconds.
    work: f64,
    /// The share of the processor that the computation got, in per cent.
    share: Value,
    /// In megabytes a second.
    rate: Value,
}

fn points(exchanges: &mut Exchanges, device: &str, name: &str, arguments: &str) -> Vec<Point> {
    let run = format!("share {} --sizes 10000 --work {WORK}", over(device, arguments));
    let found = exchanges.run(&format!("share, {name}"), &run, 0.2);
    let point = |entry: &serde_json::Value| {
        let share = value(&entry["share"])?;
        let within = |share: f64| 100.0 * share.min(1.0);
        let interval = share.interval.map(|(low, high)| (within(low), within(high)));
        let share = Value { value: within(share.value), interval };
        Some(Point { work: entry["work_us"].as_f64()?, share, rate: value(&entry["rate"])? })
    };
    found.iter().filter_map(point).collect()
}

pub fn section(exchanges: &mut Exchanges, device: &str) -> Section {
    let axis = || Axis::log("Computation in each round", "µs");
    let mut rates = Lines::new(axis(), Axis::linear("Throughput", "MB/s"));
    let mut shares = Lines::new(axis(), Axis::linear("Processor left for computation", "%"));
    let (mut keeps, mut alone) = (Vec::new(), Vec::new());
    for (colour, (name, arguments)) in CARRIERS.into_iter().enumerate() {
        let points = points(exchanges, device, name, arguments);
        let judged: Vec<_> = points.iter().map(|it| (it.share.value, it.rate)).collect();
        keeps.push((!points.is_empty()).then(|| kept(&judged)));
        let idle = points.iter().find(|point| point.work == 0.0);
        alone.extend(idle.map(|point| format!("{name} {:.0} MB/s", point.rate.value)));
        // A logarithmic axis has no place for no computation at all.
        let drawn = || points.iter().filter(|point| point.work > 0.0);
        let rate = drawn().map(|point| (point.work, point.rate));
        let share = drawn().map(|point| (point.work, point.share));
        rates = rates.series(Series::new(name, rate).colour(colour));
        shares = shares.series(Series::new(name, share).colour(colour));
    }
    let [tcp, _, thread] = [0, 1, 2].map(|at| keeps.get(at).copied().flatten());
    let section = Section::new(format!("Figure 6: computation beside messages over {device}"))
        .paragraph(
            "In each round receives are posted, then sends, then the program computes, then it \
             waits: five messages of 10 kB each way. The other program only exchanges messages.",
        )
        .figure(
            Figure::new(
                format!("figure-6-{device}"),
                titles::at(
                    &format!("The paper's figure 6: throughput beside computation over {device}"),
                    &rates,
                    MIDDLE,
                ),
                rates,
            )
            .sentence(match &alone[..] {
                [] => String::new(),
                alone => format!("Without computation: {}.", alone.join(", ")),
            }),
        )
        .figure(
            Figure::new(
                format!("availability-{device}"),
                titles::at(
                    &format!("What is left of the processor over {device}"),
                    &shares,
                    MIDDLE,
                ),
                shares,
            )
            .sentence(
                "The share of a round that the set computation takes. The rest goes to messages: to \
                 calls, and to waiting.",
            ),
        );
    let (Some(thread), Some(tcp)) = (thread, tcp) else { return section };
    section.note(claim(
        both(is_below(tcp, thread), is_between(thread, LEFT, f64::INFINITY)),
        format!(
            "With the protocol off the program's processor, throughput stays flat while computation \
             takes more of it, and TCP's falls (§5.2; here judged by what is left of the throughput \
             when computation takes a third: more than {LEFT} %, and more than of TCP's). With a \
             thread there is left: {}; by TCP: {}.",
            told(thread, 0, "%"),
            told(tcp, 0, "%")
        ),
    ))
}

/// Returns how much of the throughput is left when computation takes a third of the processor, in
/// per cent: on the straight line between the two points beside. `None` if there are no such points,
/// or if an interval reaches zero.
fn kept(points: &[(f64, Value)]) -> Option<Value> {
    const SHARE: f64 = 100.0 / 3.0;
    let first = points.first()?.1;
    let after = points.iter().position(|&(share, _)| share >= SHARE).filter(|&at| at > 0)?;
    let ((from, before), (to, behind)) = (points[after - 1], points[after]);
    let way = (SHARE - from) / (to - from);
    let between = |one: f64, other: f64| one * (1.0 - way) + other * way;
    let rate = match (before.interval, behind.interval) {
        (Some((low, high)), Some((least, most))) => Value::within(
            between(before.value, behind.value),
            between(low, least),
            between(high, most),
        ),
        _ => Value::exact(between(before.value, behind.value)),
    };
    ratio(rate, first).map(|kept| times(100.0, kept))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The shares of TCP and of a thread were compared as if they were exact, although either's
    /// interval held the other's share.
    #[test]
    fn what_is_left_of_a_throughput_is_as_uncertain_as_the_throughputs() {
        let rate = |value: f64, reach: f64| Value::within(value, value - reach, value + reach);
        let sure = [(0.0, rate(90.0, 1.0)), (20.0, rate(80.0, 1.0)), (60.0, rate(40.0, 1.0))];
        let found = kept(&sure).expect("two points are beside a third");
        assert!((found.value - 100.0 * (80.0 - 40.0 / 3.0) / 90.0).abs() < 1e-9, "{found:?}");
        let (low, high) = found.interval.expect("it is uncertain");
        assert!((70.0..found.value).contains(&low) && high < 77.0, "{found:?}");
        let unsure = [(0.0, rate(90.0, 30.0)), (20.0, rate(80.0, 30.0)), (60.0, rate(40.0, 30.0))];
        let found = kept(&unsure).expect("no interval reaches zero");
        assert_eq!(is_below(kept(&sure), found), None);
        assert_eq!(is_between(found, LEFT, f64::INFINITY), None);
        assert_eq!(kept(&[(0.0, rate(20.0, 30.0)), (40.0, rate(9.0, 1.0))]), None);
        assert_eq!(kept(&sure[..2]), None);
    }
}
