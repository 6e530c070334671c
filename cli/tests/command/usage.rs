//! What the command says when it is used wrongly, or can't say anything.

use std::fs;
use std::net::TcpListener;
use std::process::Stdio;

use doorbell_kit::lab;

use crate::{await_listener, doorbell, run, said};

#[test]
fn arguments_that_make_no_sense_are_usage_errors() {
    for arguments in
        ["perf write_lat --pair --iters 0", "rum", "perf no_such_test", "logp --no-such"]
    {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {}", said(&output));
    }
}

/// Commands by which the program starts itself again were suggested.
#[test]
fn a_mistyped_command_is_told_of_those_that_there_are_for_users() {
    let said = said(&run("rum"));
    assert!(said.contains("'run'"), "{said}");
    for own in ["run-process", "run-job", "paper-exchange"] {
        assert!(!said.contains(own), "{said}");
    }
}

#[test]
fn what_can_not_be_printed_is_an_error_and_no_panic() {
    let full = || fs::OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
    for arguments in ["doctor", "doctor --json"] {
        let output = doorbell(arguments).stdout(full()).output().expect("the command runs");
        let said = said(&output);
        assert_eq!(output.status.code(), Some(1), "{arguments}: {said}");
        assert!(said.contains("standard output") && !said.contains("panicked"), "{said}");
    }
    let status = doorbell("perf write_lat --device nonsense --pair")
        .stderr(full())
        .status()
        .expect("the command runs");
    assert_eq!(status.code(), Some(2), "nobody reads why");
    // Notes for people, as who is waited for, are no reason to fail.
    let own = "logp --compare /dev/null /dev/null";
    let status = doorbell(own).stderr(full()).status().expect("the command runs");
    assert_eq!(status.code(), Some(1), "nobody reads why");
}

/// Both plans were printed as JSON, some thirty values, among which to find what differed.
#[test]
fn two_ends_that_differ_are_told_what_differs_and_nothing_else() {
    lab::test(|lab| {
        let listener = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr());
        let address = listener.expect("a port").to_string();
        let mut near = doorbell(&format!("perf tcp_lat --size 16 --listen {address}"));
        let near = near.stderr(Stdio::piped()).spawn().expect("the command runs");
        await_listener(&near, &address);
        let mut far = lab.near.command(env!("CARGO_BIN_EXE_doorbell"));
        far.args(format!("perf tcp_lat --size 64 --no-offload --connect {address}").split(' '));
        let far = far.output().expect("the command runs");
        let near = near.wait_with_output().expect("it ends");
        for (output, told) in [
            (far, "--no-offload is given here and not given there; --size is 64 here and 16 there"),
            (
                near,
                "--no-offload is not given here and given there; --size is 16 here and 64 there",
            ),
        ] {
            assert_eq!(output.status.code(), Some(1));
            let words = said(&output);
            let told = format!("the two ends differ: {told}; give both the same\n");
            assert!(words.contains(&told) && !words.contains("--credits"), "{words}");
        }
    });
}

/// Errors that are found after the arguments were parsed had the status of measurements that have
/// failed, and some were found by both ends of a pair, each of which told of them.
#[test]
fn arguments_that_are_found_wrong_later_are_usage_errors_told_once() {
    for arguments in [
        "run",
        "run -n 0 ./program",
        "run -n 2 ./program :",
        "run -n 5000 ./program",
        "run --hosts -x ./program",
        "run -n 3 --hosts p:1,q:1 ./program",
        "perf write_lat",
        "perf write_lat --pair --device nonsense",
        "perf write_lat --pair --device packet:eth0",
        "perf write_lat --device nonsense --connect 127.0.0.1:9",
        "perf write_lat --device packet --listen 127.0.0.1:0",
        "perf write_lat --device shm --connect nowhere",
        "perf write_lat --device shm --listen 127.0.0.1:99999",
        "perf write_lat --pair --listen 127.0.0.1:9",
        "perf write_lat --pair --seconds -1",
        "perf write_lat --pair --seconds 0",
        "perf write_lat --pair --seconds nan",
        "perf write_lat --pair --size 99999999999",
        "perf write_lat --pair --size -1",
        "perf write_lat --pair --mtu 20",
        "perf write_lat --pair --connections 99999999",
        "perf write_lat --pair --others 1",
        "perf frame_lat --pair --others 99",
        "perf frame_lat --pair --others 1 --device udp",
        "perf frame_lat --pair --connections 1",
        "perf map_lat --pair --device udp",
        "perf cas_lat --pair --size 9",
        "perf idle_cpu --pair --iters 3",
        "perf idle_nic_cpu --pair --iters 3",
        "perf group_pingpong --pair --iters 3",
        "perf udp_lat --pair --size 70000",
        "perf tcp_bw --pair --size 0",
        "perf am_lat --pair --credits 0",
        "perf rpc_lat --pair --in-flight 2",
        "perf rpc_bw --pair --in-flight 0",
        "perf get_lat --pair --carrier pigeon",
        "perf call_bw --pair --in-flight 0",
        "perf layers --iters 3",
        "perf layers --device nonsense",
        "perf layers --listen 127.0.0.1:9",
        "perf am_costs --pair",
        "perf am_costs --device nonsense",
        "perf write_lat --pair --json --csv",
        "logp --device nonsense",
        "logp --device packet:eth0",
        "logp --device packet --connect 127.0.0.1:9",
        "logp --connect nowhere",
        "logp --listen :",
        "logp --quick --report /",
        "logp --compare a b --fail-above -1",
        "logp --compare a b --fail-above nan",
        "logp --fail-above 3",
        "logp --compare a",
        "paper no-such-paper",
        "paper vi-am-splitc --device nonsense",
        "paper vi-am-splitc --quick --report /",
        "paper --quick",
        "pingpong",
        "pingpong -d nonsense",
        "pingpong -d udp:127.0.0.1 -m 1000",
        "pingpong -d udp:127.0.0.1 -n 0",
        "pingpong -d udp:127.0.0.1 -s 2147483648",
        "pingpong -d udp:127.0.0.1 --patience 0",
        "doctor --csv",
        "completions",
        "completions tcsh",
        "paper-exchange no-such-measurement",
        "paper-exchange latency --device nonsense",
        "paper-exchange latency --seconds -1",
        "paper-exchange latency --sizes 99999999999",
        "paper-exchange latency --step 9",
        "run-job",
        "run-process",
    ] {
        let output = run(arguments);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {said}");
        let messages = said.matches("doorbell: ").count() + said.matches("error: ").count();
        assert_eq!(messages, 1, "{arguments}: {said}");
        assert!(!said.contains("panicked") && output.stdout.is_empty(), "{arguments}: {said}");
    }
}

/// Whoever closes a pipe knows it: other programs that print end in silence then, by `SIGPIPE`.
#[test]
fn a_command_whose_output_nobody_reads_ends_in_silence() {
    for arguments in ["doctor", "doctor --json", "paper", "perf write_lat --pair --device shm"] {
        let (reader, writer) = std::io::pipe().expect("a descriptor is left");
        drop(reader);
        let output = doorbell(arguments).stdout(writer).output().expect("the command runs");
        assert_eq!(output.status.code(), Some(141), "{arguments}: {}", said(&output));
        assert_eq!(said(&output), "", "{arguments}");
    }
}

/// What is not written is no report.
#[test]
fn a_report_for_a_full_disk_is_an_error() {
    let arguments = "logp --quick --device shm --layer verbs --report /dev/full";
    let output = run(arguments);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("writing the report to /dev/full: No space left"), "{said}");
}

#[cfg(not(feature = "costs"))]
#[test]
fn a_command_that_can_not_break_costs_down_says_how_one_is_built_that_can() {
    for test in ["am_costs", "splitc_costs", "tag_costs", "rpc_costs"] {
        let output = run(&format!("perf {test}"));
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        for part in [test, "--features costs"] {
            assert!(said(&output).contains(part), "{part} is not in: {}", said(&output));
        }
    }
}
