//! Figures, and tables of them.

use anyhow::ensure;
use serde::{Deserialize, Serialize};

use crate::args::{Device, System};
use crate::case::Case;
use crate::load::Seen;
use crate::overload::Overload;

/// What was measured of a case.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub struct Figures {
    pub system: String,
    pub device: String,
    pub case: String,
    pub size: usize,
    pub in_flight: usize,
    /// The calls a second that were due, in an open loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<u32>,
    /// Latencies from when a call was due to its answer.
    pub p50_us: f64,
    pub p99_us: f64,
    /// Latencies from when a call was made, in an open loop: without how late the timer was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_p50_us: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_p99_us: Option<f64>,
    pub calls_per_s: f64,
    /// The processor time of each process for a call, spinning included.
    pub client_cpu_us: f64,
    pub server_cpu_us: f64,
}

impl Figures {
    /// The figures of a case, without system and device, from what a loop has seen and from the
    /// processor time, in microseconds, that client and server have used meanwhile.
    pub fn of(case: &Case, seen: Seen, [client, server]: [f64; 2]) -> anyhow::Result<Self> {
        let Seen { mut from_due, mut from_call, elapsed } = seen;
        let count = from_due.count() as f64;
        ensure!(count > 0.0, "no call was answered within the time");
        from_due.sort();
        from_call.iter_mut().for_each(|latencies| latencies.sort());
        let of_calls = |fraction| from_call.as_ref().map(|of_calls| of_calls.quantile(fraction));
        Ok(Self {
            system: String::new(),
            device: String::new(),
            case: case.name.to_owned(),
            size: case.size,
            in_flight: case.in_flight,
            rate: case.rate,
            p50_us: rounded(from_due.quantile(0.5)),
            p99_us: rounded(from_due.quantile(0.99)),
            call_p50_us: of_calls(0.5).map(rounded),
            call_p99_us: of_calls(0.99).map(rounded),
            calls_per_s: rounded(count / elapsed.as_secs_f64()),
            client_cpu_us: rounded(client / count),
            server_cpu_us: rounded(server / count),
        })
    }

    /// Whether the figures are those that others on a device are compared with: Doorbell's over UDP, of
    /// the loopback interface where the others' are.
    fn is_yardstick_of(&self, other: &Self) -> bool {
        let loopback = |device: &str| device.ends_with("-loopback");
        let device = if loopback(&other.device) { Device::UdpLoopback } else { Device::Udp };
        self.system == System::Doorbell.to_string() && self.device == device.to_string()
    }
}

fn rounded(figure: f64) -> f64 {
    (figure * 1000.0).round() / 1000.0
}

/// Prints the figures of a case as a table, with calls a second and median latency as multiples of
/// Doorbell's over UDP.
pub fn print(case: &Case, all: &[Figures]) {
    println!("\n{}", case.title());
    println!(
        "{:<14} {:<13} {:>11} {:>9} {:>10} {:>10} {:>11} {:>11} {:>11}",
        "system",
        "device",
        "calls/s",
        "÷ udp",
        "p50 µs",
        "p99 µs",
        "p50 ÷ udp",
        "client µs",
        "server µs"
    );
    for one in all {
        let yardstick = all.iter().find(|other| other.is_yardstick_of(one));
        let ratio = |figure: fn(&Figures) -> f64| {
            let ratio = yardstick.map(|yardstick| figure(one) / figure(yardstick));
            ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"))
        };
        println!(
            "{:<14} {:<13} {:>11.0} {:>9} {:>10.1} {:>10.1} {:>11} {:>11.2} {:>11.2}",
            one.system,
            one.device,
            one.calls_per_s,
            ratio(|figures| figures.calls_per_s),
            one.p50_us,
            one.p99_us,
            ratio(|figures| figures.p50_us),
            one.client_cpu_us,
            one.server_cpu_us
        );
        if let (Some(p50), Some(p99)) = (one.call_p50_us, one.call_p99_us) {
            println!("{:<49} {p50:>10.1} {p99:>10.1}   from the call itself", "");
        }
    }
}

/// Prints what overloaded servers do as a table: a column of figures for each.
pub fn print_overload(all: &[Overload]) {
    let title = |one: &Overload| format!("{} {}", one.system, one.device);
    let row = |name: &str, figure: &dyn Fn(&Overload) -> String| {
        print!("{name:<32}");
        all.iter().for_each(|one| print!(" {:>24}", figure(one)));
        println!();
    };
    let latency = |p50: f64, p99: f64| format!("{p50:.1} / {p99:.1}");
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let grown = |[before, after]: [u64; 2]| format!("{:.1} / {:.1}", mib(before), mib(after));
    row("overload", &title);
    row("seconds", &|one| format!("{:.1}", one.seconds));
    row("handler, longest wait µs", &|one| format!("{} / {}", one.handler_us, one.shed_after_us));
    row("peak calls/s", &|one| format!("{:.0}", one.peak_per_s));
    row("offered calls/s", &|one| format!("{:.0}", one.offered_per_s));
    row("accepted calls/s", &|one| format!("{:.0}", one.accepted_per_s));
    row("accepted ÷ peak", &|one| format!("{:.3}", one.accepted_per_s / one.peak_per_s));
    row("refused calls/s", &|one| format!("{:.0}", one.refused_per_s));
    row("half load p50 / p99 µs", &|one| latency(one.normal.p50_us, one.normal.p99_us));
    row("accepted p50 / p99 µs", &|one| latency(one.accepted.p50_us, one.accepted.p99_us));
    row("accepted ÷ half load", &|one| {
        let [p50, p99] =
            [one.accepted.p50_us / one.normal.p50_us, one.accepted.p99_us / one.normal.p99_us];
        format!("{p50:.2} / {p99:.2}")
    });
    row("refused p50 / p99 µs", &|one| latency(one.refused.p50_us, one.refused.p99_us));
    row("most in flight", &|one| one.most_in_flight.to_string());
    row("client MiB before / after", &|one| grown(one.client_resident));
    row("server MiB before / after", &|one| grown(one.server_resident));
}
