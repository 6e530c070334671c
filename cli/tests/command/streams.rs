//! `doorbell perf` of messages as streams.

use doorbell_kit::lab;

use super::{run, said};

const TESTS: [&str; 5] =
    ["stream_lat", "stream_bw", "stream_piece_bw", "stream_tag_lat", "stream_tag_bw"];

fn measure(device: &str, test: &str, size: usize, more: &str) {
    let command = format!("perf {test} --pair --device {device} --size {size} {more} --json");
    let output = run(&command);
    assert!(output.status.success(), "{command}: {}", said(&output));
    let line: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&line["test"], &line["size"]), (&test.into(), &size.into()), "{line}");
    let figure = if test.ends_with("_lat") { "p50_us" } else { "msgs_per_s" };
    assert!(line[figure].as_f64().is_some_and(|figure| figure > 0.0), "{line}");
}

#[test]
fn every_test_of_streams_measures_over_shared_memory() {
    for test in TESTS {
        for size in [1, 2048, 20_000] {
            measure("shm", test, size, "--iters 2000");
        }
    }
}

#[test]
fn every_test_of_streams_measures_over_a_network() {
    lab::test(|_| {
        for device in ["udp", "packet", "packet-v2"] {
            for test in TESTS {
                measure(device, test, 3000, "--iters 1000");
            }
        }
    });
}

#[test]
fn messages_of_no_bytes_are_refused() {
    let output = run("perf stream_bw --pair --device shm --size 0");
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("at least 1"), "{}", said(&output));
}
