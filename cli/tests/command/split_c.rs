//! The tests of Split-C, as a user runs them.

use std::net::TcpListener;
use std::process::Stdio;

use doorbell_kit::{effort, lab};
use serde_json::Value;

use super::verbs::disturb;
use super::{await_listener, check, doorbell, figures, run, said};

/// The tests with some sizes, of which the first is what they measure if nobody says.
const TESTS: [(&str, &[u64]); 8] = [
    ("get_lat", &[8, 1, 100, 70_000]),
    ("put_lat", &[8, 1, 100, 70_000]),
    ("get_bw", &[8, 7, 300, 512, 70_000]),
    ("put_bw", &[8, 7, 300, 512, 70_000]),
    ("store_bw", &[8, 7, 300, 512, 70_000]),
    ("barrier_lat", &[0]),
    ("histogram", &[8]),
    ("gather", &[8]),
];

const CARRIERS: [&str; 4] = ["mapped", "one-sided", "messages", "mixed"];

fn measure(device: &str, test: &str, size: u64, more: &str) {
    const ITERS: u64 = 300;
    let arguments = format!("{test} --pair --device {device} --iters {ITERS} --size {size} {more}");
    let found = figures(arguments.trim_end());
    check(&found, test, size);
    assert_eq!(found["device"], device);
    // Where accesses are timed in batches, there are whole batches.
    let (iters, batch) = (found["iters"].as_u64(), if test.ends_with("_lat") { 64 } else { 1 });
    assert!(iters >= Some(ITERS) && iters < Some(ITERS + batch), "{found}");
}

#[test]
fn every_test_measures_over_shared_memory_whatever_the_size_and_the_carrier() {
    for (test, sizes) in TESTS {
        for &size in sizes {
            measure("shm", test, size, "");
        }
        for carrier in effort(&CARRIERS[1..], &CARRIERS[..]) {
            for &size in effort(&sizes[..1], sizes) {
                measure("shm", test, size, &format!("--carrier {carrier}"));
            }
        }
        for credits in effort::<&[u64]>(&[4], &[1, 4, 2000]) {
            measure("shm", test, sizes[0], &format!("--carrier messages --credits {credits}"));
        }
    }
}

/// Where the queue of one-sided requests was full, and had room again when that was asked, the peer
/// was said to have gone.
#[test]
fn more_puts_are_begun_at_a_time_than_the_queue_of_one_sided_requests_holds() {
    let found = figures("put_bw --pair --device shm --iters 3000 --carrier one-sided");
    assert_eq!(found["iters"], 3000);
}

#[test]
fn every_test_measures_over_sockets() {
    lab::test(|_| TESTS.iter().for_each(|(test, sizes)| measure("udp", test, sizes[0], "")));
}

#[test]
fn every_test_measures_over_raw_ethernet() {
    lab::test(|_| {
        for (test, sizes) in TESTS {
            measure("packet-v2", test, sizes[0], "");
            if sizes.contains(&70_000) {
                measure("packet-v2", test, 70_000, "");
            }
        }
        // Above the device nothing differs from RoCE v2.
        for (test, sizes) in effort(&TESTS[..1], &TESTS[..]) {
            measure("packet", test, sizes[0], "");
        }
    });
}

#[test]
fn without_offload_and_with_a_small_mtu_what_is_accessed_arrives_too() {
    lab::test(|_| {
        for test in ["put_bw", "store_bw"] {
            for how in ["--no-offload", "--mtu 1500"] {
                measure("packet-v2", test, 8, how);
            }
        }
    });
}

#[test]
fn what_a_test_measures_if_nobody_says_is_a_word_for_some_time() {
    for (test, sizes) in TESTS {
        let found = figures(&format!("{test} --pair --device shm --seconds 0.05"));
        check(&found, test, sizes[0]);
    }
}

#[test]
fn the_carrier_is_told_with_the_figures() {
    let found = figures("get_lat --pair --device shm --iters 10 --carrier one-sided");
    assert_eq!((&found["carrier"], &found["iters"]), (&"one-sided".into(), &10.into()));
}

#[test]
fn a_thread_of_its_own_serves_the_other_process() {
    for test in ["get_lat", "histogram"] {
        measure("shm", test, 8, "--dedicated --carrier messages");
    }
}

#[test]
fn people_are_told_how_long_an_access_takes_and_how_many_there_are_a_second() {
    for (test, part) in [("put_lat", "320 times"), ("gather", "million messages a second")] {
        let output = run(&format!("perf {test} --pair --device shm --iters 300"));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains(part), "{part} is not in {text}{}", said(&output));
    }
}

#[test]
fn the_help_names_every_test_and_every_carrier() {
    let help = String::from_utf8(run("perf --help").stdout).expect("text");
    for part in TESTS.iter().map(|(test, _)| *test).chain(CARRIERS) {
        assert!(help.contains(part), "{part} is not in {help}");
    }
}

#[test]
fn two_processes_of_a_world_meet_by_an_address() {
    lab::test(|lab| {
        let cable = lab.cable("a0", "b0", 1500).expect("a cable");
        let port = TcpListener::bind((cable.near.ipv4, 0)).and_then(|it| it.local_addr());
        let address = port.expect("a port").to_string();
        let arguments = "perf histogram --iters 1000 --json --device udp:";
        let mut near = doorbell(&format!("{arguments}{} --listen {address}", cable.near.ipv4));
        let near = near.stdout(Stdio::piped()).spawn().expect("the command runs");
        await_listener(&near, &address);
        let mut far = lab.far.command(env!("CARGO_BIN_EXE_doorbell"));
        let far_arguments = format!("{arguments}{} --connect {address}", cable.far.ipv4);
        let far = far.args(far_arguments.split(' ')).output().expect("the command runs");
        assert!(far.status.success(), "{}", said(&far));
        assert!(near.wait_with_output().expect("it ends").status.success());
        let found: Value = serde_json::from_slice(&far.stdout).expect("JSON");
        check(&found, "histogram", 8);
        assert_eq!(found["iters"], 1000);
    });
}

#[test]
fn what_an_access_does_not_take_is_refused() {
    for (arguments, part) in [
        ("am_lat --pair --device shm --carrier messages", "--carrier is of Split-C"),
        ("read_lat --pair --device shm --carrier one-sided", "--carrier is of Split-C"),
        ("histogram --pair --device shm --size 16", "leave --size out"),
        ("barrier_lat --pair --device shm --size 8", "leave --size out"),
        ("get_lat --pair --device shm --size 0", "1 to 16777216"),
        ("get_bw --pair --device shm --size 16777217", "1 to 16777216"),
        ("get_lat --pair --device shm --connections 3", "--connections"),
        ("get_lat --pair --device shm --no-map", "--carrier one-sided"),
        ("store_bw --pair --device shm --credits 4096", "4095"),
    ] {
        let output = run(&format!("perf {arguments}"));
        assert_eq!(output.status.code(), Some(2), "{arguments}");
        assert!(said(&output).contains(part), "{arguments}: {}", said(&output));
    }
    let output = run("perf get_lat --pair --device shm --carrier pigeon");
    let words = said(&output);
    assert!(!output.status.success() && words.contains("no carrier"), "{words}");
    lab::test(|_| {
        let output = run("perf get_lat --pair --device udp --carrier mapped");
        let words = said(&output);
        assert_eq!(output.status.code(), Some(1), "{words}");
        assert!(words.contains("mapped does not reach process"), "{words}");
    });
}

#[test]
fn a_process_whose_other_is_killed_ends_at_once() {
    let noticed = ["has gone", "broke", "has left the link"];
    let killed = |arguments: &str| {
        let output = disturb(arguments, "-KILL");
        let words = said(&output);
        assert_eq!(output.status.code(), Some(1), "{words}");
        assert!(noticed.iter().any(|part| words.contains(part)), "{words}");
    };
    for test in ["get_lat", "store_bw", "barrier_lat", "histogram", "gather"] {
        killed(&format!("{test} --device shm"));
    }
    lab::test(move |_| {
        for test in ["put_bw", "histogram"] {
            killed(&format!("{test} --device packet-v2"));
        }
    });
}
