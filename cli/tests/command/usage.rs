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
