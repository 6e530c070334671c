//! `doorbell perf` of tagged messages.

use doorbell_kit::lab;

use super::{check, figures, run, said};

const TESTS: [&str; 3] = ["tag_lat", "tag_bw", "tag_unexpected_bw"];

/// Sizes of messages that go as words, in one packet, in several, and by reads.
const SIZES: [u64; 5] = [0, 16, 2000, 20_000, 100_000];

fn measure(device: &str, test: &str, size: u64, more: &str) {
    let found = figures(&format!("{test} --pair --device {device} --size {size} {more}"));
    check(&found, test, size);
}

#[test]
fn every_test_of_tagged_messages_measures_over_every_device() {
    lab::test(|_| {
        for device in ["shm", "udp", "packet", "packet-v2"] {
            for test in TESTS {
                for size in SIZES {
                    measure(device, test, size, "--iters 600");
                }
            }
        }
    });
}

#[test]
fn messages_go_past_receives_that_take_none_of_them() {
    for posted in [1, 1000] {
        measure("shm", "tag_lat", 16, &format!("--iters 2000 --posted {posted}"));
    }
    let output = run("perf tag_bw --pair --device shm --posted 1");
    assert_eq!(output.status.code(), Some(2));
    let expected = "--posted is for tag_lat, and not for tag_bw";
    assert!(said(&output).contains(expected), "{}", said(&output));
}
