//! What the command says when it is used wrongly, or can't say anything.

use std::fs;

use crate::{doorbell, run, said};

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
