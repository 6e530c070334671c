//! The tests of Active Messages, as a user runs them.

use doorbell_kit::{effort, lab};

use super::{check, figures, run, said};

const TESTS: [(&str, &[u64]); 7] = [
    ("am_lat", &[0, 8, 16, 128, 129, 4096]),
    ("call_lat", &[0, 8, 16, 136, 4096]),
    ("call_bw", &[8, 64, 100, 128, 4096]),
    ("am_medium_lat", &[1, 64, 4096]),
    ("am_bw", &[0, 8, 64, 100, 1500, 4096]),
    ("am_mixed_bw", &[8, 512, 4096]),
    ("am_bulk_bw", &[8, 4096, 70_000]),
];

fn measure(device: &str, test: &str, size: u64, more: &str) {
    let arguments = format!("{test} --pair --device {device} --iters 700 --size {size} {more}");
    let found = figures(arguments.trim_end());
    check(&found, test, size);
    assert_eq!((&found["device"], &found["iters"]), (&device.into(), &700.into()));
}

#[test]
fn every_test_measures_over_shared_memory_whatever_the_size_and_the_credits() {
    for (test, sizes) in TESTS {
        for &size in sizes {
            measure("shm", test, size, "");
        }
        measure("shm", test, sizes[1], "--connections 20");
        measure("shm", test, sizes[1], "--policy apart");
        if test != "am_mixed_bw" {
            measure("shm", test, sizes[1], "--policy per-size");
        }
        measure("shm", test, sizes[1], "--nic-credits 4");
        for credits in [1, 256, 2000] {
            measure("shm", test, sizes[1], &format!("--credits {credits}"));
        }
    }
}

#[test]
fn typed_calls_are_counted_whether_there_are_fewer_or_more_in_flight_than_credits() {
    for more in ["--in-flight 1", "--in-flight 300", "--in-flight 64 --credits 3"] {
        measure("shm", "call_bw", 64, more);
    }
}

#[test]
fn every_test_measures_over_a_network() {
    lab::test(|_| {
        for device in ["udp", "packet", "packet-v2"] {
            // A quick run measures every test over one device, and the first over the others.
            let tests = if device == "packet-v2" { TESTS.len() } else { effort(1, TESTS.len()) };
            for (test, sizes) in &TESTS[..tests] {
                measure(device, test, sizes[1], "");
            }
        }
        measure("packet-v2", "am_bw", 8, "--no-offload");
        measure("packet-v2", "am_bw", 8, "--nic-credits 4 --credits 64 --policy apart");
    });
}

#[test]
fn what_a_message_does_not_take_is_refused() {
    let size = run("perf am_lat --pair --device shm --size 2000000");
    let credits = run("perf am_bw --pair --device shm --credits 4096");
    let order = run("perf am_mixed_bw --pair --device shm --policy per-size");
    let short = run("perf call_bw --pair --device shm --size 7");
    let none = run("perf call_bw --pair --device shm --in-flight 0");
    for (output, expected) in [
        (size, "1048576"),
        (credits, "4095"),
        (order, "overtake"),
        (short, "--size 7: of call_bw it is 8 or more"),
        (none, "--in-flight 0: it is 1 to 4096"),
    ] {
        assert_eq!(output.status.code(), Some(2));
        assert!(said(&output).contains(expected), "{}", said(&output));
    }
}
