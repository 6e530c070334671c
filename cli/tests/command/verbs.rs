//! The tests of the NIC, as a user runs them.

use std::net::TcpListener;
use std::process::{Output, Stdio};

use doorbell_kit::{effort, lab};
use serde_json::Value;

use super::{await_listener, check, doorbell, figures, run, said, second_of};

const TESTS: [&str; 11] = [
    "send_lat",
    "send_bw",
    "write_lat",
    "write_bw",
    "write_imm_lat",
    "write_imm_bw",
    "write_done_lat",
    "read_lat",
    "read_bw",
    "cas_lat",
    "faa_lat",
];

/// Whether a test is of a word, and of no other size.
fn is_of_a_word(test: &str) -> bool {
    ["cas_lat", "faa_lat", "map_lat"].contains(&test)
}

/// Runs a test with messages of a size, if it takes one, and checks what it tells.
fn measure(device: &str, test: &str, size: u64, more: &str) {
    let (size, sized) = match is_of_a_word(test) {
        true => (8, String::new()),
        false => (size, format!("--size {size}")),
    };
    let arguments = format!("{test} --pair --device {device} --iters 300 {sized} {more}");
    // In whatever order, and without what is not there.
    let arguments: Vec<_> = arguments.split_whitespace().collect();
    let found = figures(&arguments.join(" "));
    check(&found, test, size);
    assert_eq!((&found["device"], &found["iters"]), (&device.into(), &300.into()));
}

#[test]
fn every_test_measures_over_shared_memory_whatever_the_size() {
    for test in TESTS {
        for size in [8, 100, 5001, 70_000] {
            measure("shm", test, size, "");
        }
    }
    for test in ["send_lat", "send_bw", "write_imm_lat"] {
        measure("shm", test, 0, "");
    }
    for test in ["write_bw", "write_imm_bw", "write_done_lat", "read_lat", "read_bw"] {
        measure("shm", test, 1, "");
    }
    measure("shm", "map_lat", 8, "");
}

#[test]
fn every_test_measures_over_sockets() {
    lab::test(|_| TESTS.iter().for_each(|test| measure("udp", test, 1500, "")));
}

#[test]
fn every_test_measures_over_raw_ethernet() {
    // Above the device nothing differs from RoCE v2, over which a quick run measures every test.
    let tests = effort(&["write_lat", "send_bw", "read_lat", "faa_lat"][..], &TESTS[..]);
    lab::test(move |_| tests.iter().for_each(|test| measure("packet", test, 16, "")));
}

#[test]
fn every_test_measures_over_raw_ethernet_with_offload() {
    lab::test(|_| TESTS.iter().for_each(|test| measure("packet-v2", test, 6000, "")));
}

#[test]
fn without_offload_and_with_a_small_mtu_what_is_written_arrives_too() {
    lab::test(|_| {
        for device in ["packet-v2", "udp"] {
            for how in ["--no-offload", "--mtu 1500"] {
                measure(device, "write_bw", 4096, how);
            }
        }
    });
}

#[test]
fn what_ends_drop_of_the_packets_that_come_is_made_good_on_every_device() {
    lab::test(|_| {
        for device in ["udp", "packet", "packet-v2"] {
            measure(device, "write_bw", 65_536, "--loss 0.05");
        }
    });
}

#[test]
fn a_time_ends_a_test_as_a_count_does() {
    for test in ["write_lat", "read_lat", "map_lat", "write_bw", "read_bw"] {
        let found = figures(&format!("{test} --pair --device shm --seconds 0.05"));
        assert!(found["iters"].as_u64() > Some(0), "{found}");
    }
}

#[test]
fn idle_connections_stand_beside_the_busy_one() {
    let found = figures("write_lat --pair --device shm --iters 300 --connections 40");
    assert_eq!(found["connections"], 40);
    lab::test(|_| {
        let found = figures("send_bw --pair --device udp --iters 300 --connections 40");
        assert_eq!(found["connections"], 40);
    });
}

#[test]
fn a_thread_of_its_own_runs_the_nic_and_one_that_sleeps_is_woken() {
    let tests = effort(&["write_lat"][..], &["write_lat", "send_bw", "faa_lat"][..]);
    for test in tests {
        for how in ["--dedicated", "--dedicated --spin 0", "--spin 0", "--spin 20"] {
            let found = figures(&format!("{test} --pair --device shm --iters 50 {how}"));
            assert_eq!(found["iters"], 50);
        }
    }
}

#[test]
fn values_are_separated_by_commas_below_their_names() {
    let output = run("perf faa_lat --pair --device shm --iters 100 --csv");
    assert!(output.status.success(), "{}", said(&output));
    let text = String::from_utf8(output.stdout).expect("text");
    let lines: Vec<Vec<_>> = text.lines().map(|line| line.split(',').collect()).collect();
    let [names, values] = &lines[..] else { panic!("{text}") };
    assert_eq!(names.len(), values.len(), "{text}");
    let of = |name| values[names.iter().position(|it| *it == name).expect("a name")];
    assert_eq!((of("test"), of("device"), of("size")), ("faa_lat", "shm", "8"));
    assert!(of("p50_us").parse::<f64>().is_ok() && of("msgs_per_s").is_empty(), "{text}");
}

#[test]
fn people_are_told_quantiles_and_how_times_are_spread() {
    let output = run("perf write_lat --pair --device shm --iters 300");
    assert!(output.status.success(), "{}", said(&output));
    let text = String::from_utf8(output.stdout.clone()).expect("text");
    for part in ["300 round trips", "%", "█"] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    // Each is a word of its own: one begins as another does.
    for quantile in ["p50", "p90", "p99", "p99.9"] {
        let is_there = text.split_whitespace().any(|word| word == quantile);
        assert!(is_there, "{quantile} is not in\n{text}");
    }
    assert_eq!(said(&output), "", "a bar is for terminals");
}

#[test]
fn two_ends_of_the_nic_meet_by_an_address() {
    lab::test(|lab| {
        let cable = lab.cable("a0", "b0", 1500).expect("a cable");
        let port = TcpListener::bind((cable.near.ipv4, 0)).and_then(|it| it.local_addr());
        let address = port.expect("a port").to_string();
        let arguments = "perf write_lat --iters 100 --json --device udp:";
        let mut near = doorbell(&format!("{arguments}{} --listen {address}", cable.near.ipv4));
        let near = near.stdout(Stdio::piped()).spawn().expect("the command runs");
        await_listener(&near, &address);
        let mut far = lab.far.command(env!("CARGO_BIN_EXE_doorbell"));
        let far_arguments = format!("{arguments}{} --connect {address}", cable.far.ipv4);
        let far = far.args(far_arguments.split(' ')).output().expect("the command runs");
        assert!(far.status.success(), "{}", said(&far));
        assert!(near.wait_with_output().expect("it ends").status.success());
        check(&serde_json::from_slice::<Value>(&far.stdout).expect("JSON"), "write_lat", 16);
    });
}

#[test]
fn what_can_not_be_measured_is_said() {
    for (arguments, part) in [
        ("write_lat --pair --device shm --size 7", "8 or more"),
        ("read_bw --pair --device shm --size 0", "1 or more"),
        ("cas_lat --pair --device shm --size 16", "leave --size out"),
        ("send_bw --pair --device shm --size 5000000000", "more than the"),
        ("frame_lat --pair --device shm --connections 3", "--connections"),
        ("tcp_lat --pair --dedicated", "--dedicated"),
        ("frame_lat --pair --device shm --others 1", "packet-v2"),
        ("frame_lat --pair --others 63", "62 more"),
        ("write_lat --pair --device shm --others 1", "--device packet and packet-v2"),
    ] {
        let output = run(&format!("perf {arguments}"));
        assert_eq!(output.status.code(), Some(2), "{arguments}");
        assert!(said(&output).contains(part), "{arguments}: {}", said(&output));
    }
    lab::test(|_| {
        let output = run("perf map_lat --pair --device udp");
        assert_eq!(output.status.code(), Some(2));
        assert!(said(&output).contains("--device shm"), "{}", said(&output));
    });
}

/// Begins a test that would take long, does something to its second process when that is in the
/// middle of it, and returns how the first one ends.
pub fn disturb(arguments: &str, signal: &str) -> Output {
    let mut command = doorbell(&format!("perf {arguments} --pair --seconds 600"));
    let mut first = command.stderr(Stdio::piped()).spawn().expect("the command runs");
    let second = second_of(&mut first, has_worked);
    let killed = std::process::Command::new("kill").args([signal, &second]).status();
    assert!(killed.expect("`kill` runs").success());
    first.wait_with_output().expect("it ends")
}

/// Whether a process has used a processor for longer than it takes to begin.
fn has_worked(process: &str) -> bool {
    /// In hundredths of a second.
    const ENOUGH: u64 = 30;
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // Behind the name, which ends with the last parenthesis.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let times = fields.skip(11).take(2).filter_map(|time| time.parse::<u64>().ok());
    times.sum::<u64>() >= ENOUGH
}

#[test]
fn an_end_whose_other_is_killed_ends_at_once() {
    let told = |output: &Output| {
        let words = said(output);
        assert_eq!(output.status.code(), Some(1), "{words}");
        // Not after it has waited for as long as one waits for what may still come.
        let noticed = ["has gone", "broke", "has left the link"];
        assert!(noticed.iter().any(|part| words.contains(part)), "{words}");
    };
    for test in ["write_lat", "send_lat", "write_bw", "send_bw", "read_lat", "map_lat"] {
        told(&disturb(&format!("{test} --device shm"), "-KILL"));
    }
    lab::test(|_| {
        for (test, device) in [("write_lat", "udp"), ("write_bw", "packet-v2")] {
            told(&disturb(&format!("{test} --device {device}"), "-KILL"));
        }
    });
}

#[test]
fn an_end_whose_other_hangs_gives_up() {
    for test in effort(&["write_lat"][..], &["write_lat", "read_bw"][..]) {
        let output = disturb(&format!("{test} --device shm"), "-STOP");
        let words = said(&output);
        assert_eq!(output.status.code(), Some(1), "{words}");
        assert!(words.contains("hangs"), "{words}");
    }
}
