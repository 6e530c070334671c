//! Figure 5: latency and throughput by the length of messages.

use doorbell_report::{Axis, Figure, Lines, Section, Series, Value};

use super::carriers::{CARRIERS, over};
use super::published::{LATENCY, RATE, TCP_RATE, cited};
use crate::judging::{claim, is_below};
use crate::paper::exchange::{Exchanges, value};
use crate::paper::titles;

/// The lengths of messages.
const SHORT: &str = "4,64,256,1024,1500,4096,16384";
const LONG: &str = "256,1024,1500,4096,16384,65536";
pub const RUNS: usize = 2 * CARRIERS.len();

/// Values by the length in bytes.
type Curve = Vec<(f64, Value)>;

pub fn section(exchanges: &mut Exchanges, device: &str) -> Section {
    let curves = CARRIERS.map(|(name, arguments)| {
        let arguments = over(device, arguments);
        let mut curve = |measure: &str, sizes: &str, of: &str| -> Curve {
            let run = format!("{measure} {arguments} --sizes {sizes}");
            let found = exchanges.run(&format!("{measure}, {name}"), &run, 0.15);
            let points = found
                .iter()
                .filter_map(|entry| Some((entry["size"].as_f64()?, value(&entry[of])?)));
            points.collect()
        };
        (name, curve("latency", SHORT, "time_us"), curve("stream", LONG, "rate"))
    });
    let mut latency = Lines::new(Axis::bytes("Length of a message"), Axis::log("RTT/2", "µs"));
    let mut rate = Lines::new(Axis::bytes("Length of a message"), Axis::log("Throughput", "MB/s"));
    for (colour, (name, times, rates)) in curves.iter().enumerate() {
        latency = latency.series(Series::new(*name, times.iter().copied()).colour(colour));
        rate = rate.series(Series::new(*name, rates.iter().copied()).colour(colour));
    }
    latency = latency.series(Series::new("EMP (2001)", LATENCY).published(cited("figure 5, §5.2")));
    rate = rate.series(Series::new("EMP (2001)", [RATE]).published(cited("§6")));
    rate = rate.level(format!("TCP: at most {TCP_RATE} MB/s (2001, §5.2)"), TCP_RATE);
    let at = |curve: &Curve, size: f64| curve.iter().find(|(of, _)| *of == size).map(|it| it.1);
    let [(_, tcp_times, tcp_rates), (_, times, rates), _] = &curves;
    let short = [at(times, 4.0), at(tcp_times, 4.0)];
    let long = [at(rates, 4096.0), at(tcp_rates, 4096.0)];
    let mut section = Section::new(format!("Figure 5: latency and throughput over {device}"))
        .paragraph(
            "Half of a round trip; and messages one way, with an answer behind the last. The frames \
             are of 1,500 bytes with all headers, three to a collection.",
        )
        .figure(Figure::new(
            format!("figure-5-latency-{device}"),
            titles::at(&format!("The paper's figure 5: latency over {device}"), &latency, 4.0),
            latency,
        ))
        .figure(Figure::new(
            format!("figure-5-bandwidth-{device}"),
            titles::at(&format!("The paper's figure 5: throughput over {device}"), &rate, 4096.0),
            rate,
        ));
    if let [Some(ours), Some(theirs)] = short {
        section = section.note(claim(
            is_below(ours, theirs),
            format!(
                "A short message takes far less time than by TCP, since no system call and no kernel \
                 is on its way (§5.2). Of 4 bytes, run by the program: {:.1} µs, and {:.1} µs by TCP.",
                ours.value, theirs.value
            ),
        ));
    }
    if let [Some(ours), Some(theirs)] = long {
        section = section.note(claim(
            is_below(theirs, ours),
            format!(
                "Messages of 4 kB have more throughput than TCP's (§5.2: 110 against at most 75 \
                 MB/s). Run by the program: {:.1} MB/s, and {:.1} MB/s by TCP.",
                ours.value, theirs.value
            ),
        ));
    }
    section
}
