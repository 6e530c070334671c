//! Which process `doorbell run` names when a job fails, and with which status it ends.

use doorbell_kit::judges::Scratch;

use super::program::program;
use super::{doorbell_run, finished};

/// The lines that the launcher has printed, which may be behind the beginning of another's line: a
/// process that panics prints its backtrace bit by bit, to the same terminal.
fn of_launcher(said: &str) -> Vec<&str> {
    said.lines().filter_map(|line| line.find("doorbell: ").map(|at| &line[at..])).collect()
}

#[test]
fn the_failure_of_one_process_ends_the_job_with_its_status() {
    let script = ["sh", "-c", "exit 7"];
    let mut command = doorbell_run(&["-n", "1"]);
    command.args(["sleep", "1000", ":"]).args(script);
    let (output, said) = finished(&mut command);
    assert_eq!(output.status.code(), Some(7), "{said}");
    let expected = "process 1 (sh) ended with exit status: 7; the others are ended";
    assert!(said.contains(expected), "{said}");
}

#[test]
fn a_panic_of_one_process_is_told_and_ends_the_others() {
    let (output, said) = finished(doorbell_run(&["-n", "3"]).args(program("panics")));
    assert_eq!(output.status.code(), Some(101), "{said}");
    assert!(said.contains("process 1 panics here"), "{said}");
    assert!(said.contains("doorbell: process 1 ("), "{said}");
}

/// A process ends with status 69 when it can't return an error after another process has ended.
/// An earlier version took any process with that status for such a process, and a job in which one
/// failed by itself for a job that had not failed.
#[test]
fn a_program_that_ends_with_69_by_itself_has_failed() {
    for count in ["1", "2"] {
        let (output, said) = finished(&mut doorbell_run(&["-n", count, "sh", "-c", "exit 69"]));
        assert_eq!(output.status.code(), Some(69), "{said}");
        assert!(said.contains("(sh) ended with exit status: 69"), "{said}");
    }
}

/// After a process has failed, the others end with errors of their own. An earlier version named
/// one of the others if it saw its end first.
#[test]
fn the_process_that_failed_first_is_named_whichever_is_seen_to_end_first() {
    for (part, status, how) in [
        ("exits 3", 3, "ended with exit status: 3"),
        ("fails", 101, "ended with exit status: 101"),
        ("aborts", 128 + 6, "ended with signal: 6"),
        ("exits 0", 1, "ended with exit status: 0 before the job was over"),
        // Its program returned, and the test of it failed.
        ("returns", 101, "ended with exit status: 101"),
        ("is killed", 128 + 9, "ended with signal: 9"),
    ] {
        let (output, said) = finished(doorbell_run(&["-n", "4"]).args(program(part)));
        assert_eq!(output.status.code(), Some(status), "{part}: {said}");
        let told = of_launcher(&said);
        let [blame] = told[..] else { panic!("{part}: one line is enough: {said}") };
        let expected = format!("doorbell: process 1 (env) {how}");
        assert!(blame.starts_with(&expected), "{part}: {said}");
    }
}

/// In an earlier version, the status of the job was that of whichever process was seen to fail
/// first.
#[test]
fn a_process_that_fails_because_another_has_is_not_blamed_when_it_ends_before_that_one() {
    // The shell around process 1 ends only when process 0 has ended of its failure.
    let script = "if [ $DOORBELL_RANK = 0 ]; then echo $$ >$0; exec \"$@\"; fi; \"$@\"; s=$?; \
                  while kill -0 $(cat $0); do sleep 0.01; done 2>/dev/null; exit $s";
    for (part, status, how) in [
        ("exits 3", 3, "ended with exit status: 3"),
        ("fails", 101, "ended with exit status: 101"),
        ("exits 0", 1, "ended with exit status: 0 before the job was over"),
    ] {
        let files = Scratch::new();
        let id = files.path().join("id");
        let mut command = doorbell_run(&["-n", "2", "sh", "-c", script]);
        let (output, said) = finished(command.arg(id).args(program(part)));
        assert_eq!(output.status.code(), Some(status), "{part}: {said}");
        assert_eq!(of_launcher(&said), [format!("doorbell: process 1 (sh) {how}")], "{said}");
    }
}

/// In an earlier version, the other processes waited until their time was over for a process that
/// had ended.
#[test]
fn a_process_that_ends_before_it_has_met_the_others_is_named_at_once() {
    let mut command = doorbell_run(&["-n", "2", "--within", "100000"]);
    command.args(program("sum")).args([":", "true"]);
    let (output, said) = finished(&mut command);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let expected = "doorbell: process 2 (true) ended with exit status: 0, and has not met the \
                    others; the others are ended";
    assert_eq!(of_launcher(&said), [expected], "{said}");
}

#[test]
fn a_process_that_does_not_come_is_named() {
    let mut command = doorbell_run(&["-n", "2", "--within", "1"]);
    command.args(program("sum")).args([":", "sleep", "1000"]);
    let (output, said) = finished(&mut command);
    assert!(!output.status.success(), "{said}");
    let expected = "doorbell: the processes have not found each other: 1 of 3 processes have not \
                    come within 1s: 2; the others are ended";
    assert_eq!(of_launcher(&said), [expected], "{said}");
}

#[test]
fn programs_that_do_not_use_doorbell_succeed() {
    let (output, said) = finished(&mut doorbell_run(&["-n", "2", "echo", "a line"]));
    assert!(output.status.success(), "{said}");
    assert_eq!(said, "a line\na line\n");
}

#[test]
fn a_program_that_is_not_there_is_named_once() {
    for (name, expected) in [
        ("./not-there", "doorbell: executing ./not-there: No such file"),
        ("not-there", "doorbell: executing not-there: no folder of PATH has such a program"),
        ("/", "doorbell: executing /: it is no file"),
        ("/etc/passwd", "doorbell: executing /etc/passwd: it may not be executed"),
    ] {
        let (output, said) = finished(doorbell_run(&["-n", "3", name]).arg("x"));
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.starts_with(expected), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}
