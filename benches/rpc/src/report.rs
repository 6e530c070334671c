//! Figures, and tables of them.

use anyhow::ensure;
use serde::{Deserialize, Serialize};

use crate::args::{Device, System};
use crate::case::Case;
use crate::load::Seen;

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
