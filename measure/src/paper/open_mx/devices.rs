//! The devices that the tests of Open-MX run over, and TCP beside them.

use crate::paper::bench::{Bench, Run};
use crate::paper::length::Of;
use crate::paper::rows::Rows;

/// The device that stands for the kernel's TCP sockets.
pub const TCP: &str = "tcp";

/// The devices that are measured, and TCP before them.
pub fn with_tcp(bench: &Bench) -> Vec<String> {
    [TCP.to_owned()].into_iter().chain(bench.devices()).collect()
}

/// Runs a test that measures several things, over each device and TCP.
pub fn rows_of_each(
    bench: &mut Bench,
    test: &str,
    arguments: &[&str],
    seconds: Of<f64>,
) -> Vec<(String, Rows)> {
    let devices = with_tcp(bench);
    let rows = |device: String| {
        let rows = bench.rows(Run { test, device: &device, arguments }, seconds);
        (device, rows)
    };
    devices.into_iter().map(rows).collect()
}

/// A device as readers know it.
pub fn name(device: &str) -> String {
    match device {
        TCP => "TCP".to_owned(),
        device => format!("Doorbell over {device}"),
    }
}

/// The number of the colour that a device has in all figures, by its name for readers.
pub fn colour(name: &str) -> usize {
    match name.strip_prefix("Doorbell over ") {
        None => 0,
        Some("packet") => 1,
        Some("packet-v2") => 2,
        Some(_) => 3,
    }
}
