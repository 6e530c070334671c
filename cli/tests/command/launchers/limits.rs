//! Limits that stand in the way of a job: all of its processes end at once, and an error names the
//! limit and what is needed.

use std::process::Command;

use super::finished;
use super::program::program;

/// A command that runs another under a limit of the shell.
fn under<'c>(limit: &str, command: impl IntoIterator<Item = &'c str>) -> Vec<String> {
    let script = format!("ulimit {limit}; exec \"$@\"");
    let shell = ["sh", "-c", &script, "sh"].map(str::to_owned);
    shell.into_iter().chain(command.into_iter().map(str::to_owned)).collect()
}

/// Runs a command in which a job is to fail, and returns what it says.
#[track_caller]
fn fails(words: &[String]) -> String {
    let (output, said) = finished(Command::new(&words[0]).args(&words[1..]));
    assert!(!output.status.success(), "{words:?}: {said}");
    said
}

/// The command that starts a job of so many processes, which have far more time to find each other
/// than any test.
fn run(count: &str) -> [&str; 6] {
    [env!("CARGO_BIN_EXE_doorbell"), "run", "-n", count, "--within", "100000"]
}

/// Runs a job each of whose processes is under a limit, and returns what all say.
#[track_caller]
fn fails_under(limit: &str, count: &str) -> String {
    let program = program("sum");
    let limited = under(limit, program.iter().map(String::as_str));
    let words = run(count).map(str::to_owned).into_iter().chain(limited);
    fails(&words.collect::<Vec<_>>())
}

/// It was said that a process was not met within the 30 seconds, after 30 seconds; and the limit
/// nowhere.
#[test]
fn too_few_addresses_for_the_heaps_of_others_end_a_job_at_once_by_the_name_of_the_limit() {
    // The heaps of four processes take 4 GiB.
    let said = fails_under("-v 4000000", "4");
    assert!(said.contains("(RLIMIT_AS); allow at least"), "{said}");
    assert!(said.contains("KiB with `ulimit -v`, or configure a smaller `heap`"), "{said}");
    // The own heap does not fit.
    let said = fails_under("-v 1000000", "2");
    assert!(said.contains("with `ulimit -v`"), "{said}");
}

/// It was said that `shm failed: an epoll`, and others waited for 30 seconds.
#[test]
fn too_few_descriptors_end_a_job_at_once_by_the_name_of_the_limit() {
    for most in [8, 10, 12, 14, 16, 18, 20, 22, 24] {
        let said = fails_under(&format!("-n {most}"), "8");
        assert!(said.contains("`ulimit -n`"), "{most}: {said}");
    }
}

/// The launcher's own connections did not fit, and the processes waited for 30 seconds.
#[test]
fn a_launcher_with_too_few_descriptors_says_how_many_it_needs() {
    let program = program("sum");
    let words = run("64").into_iter().chain(program.iter().map(String::as_str));
    let said = fails(&under("-n 64", words));
    let expected = "serving 64 processes takes 196 file descriptors";
    assert!(said.contains(expected) && said.contains("with `ulimit -n`"), "{said}");
}
