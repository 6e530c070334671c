//! The test of byte streams, as a user runs it.

use doorbell_kit::lab;

use super::{check, figures, run, said};

fn measure(device: &str, size: u64, more: &str) {
    let test = "bytestream_bw";
    let arguments = format!("{test} --pair --device {device} --iters 300 --size {size} {more}");
    let found = figures(arguments.trim_end());
    check(&found, test, size);
    assert_eq!((&found["device"], &found["iters"]), (&device.into(), &300.into()));
}

#[test]
fn a_byte_stream_is_measured_over_shared_memory_whatever_the_length_of_writes() {
    for size in [1, 100, 65_536, 300_000] {
        measure("shm", size, "");
    }
    measure("shm", 65_536, "--dedicated");
}

#[test]
fn a_byte_stream_is_measured_over_a_network() {
    lab::test(|_| {
        for device in ["udp", "packet", "packet-v2"] {
            measure(device, 65_536, "");
        }
        measure("packet-v2", 65_536, "--no-offload");
    });
}

#[test]
fn what_is_not_for_byte_streams_is_refused() {
    for (arguments, expected) in [
        ("--size 0", "at least 1"),
        ("--connections 3", "--connections"),
        ("--no-map", "--no-map"),
        ("--policy apart", "--policy"),
    ] {
        let output = run(&format!("perf bytestream_bw --pair --device shm {arguments}"));
        assert_eq!(output.status.code(), Some(2));
        assert!(said(&output).contains(expected), "{}", said(&output));
    }
}
