//! Runs the body of a test in a lab, as root or in a user namespace.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU32, Ordering};

use super::{Lab, LabError};
use crate::child::{test_again, test_of};
use crate::sys;

/// The environment variable that is set for a test that was started again in a user namespace.
const AGAIN: &str = "DOORBELL_LAB";

/// Runs the body of a test with a lab, in the lab's near namespace. The function that is marked as
/// the test calls this with a closure.
///
/// A process that may not make namespaces starts the test again, alone, in a user namespace. If
/// that is not allowed either, or a program is missing, the test is skipped, which is printed to
/// standard error and counted. With the environment variable `CI` set, that is an error.
///
/// # Panics
/// As the body does.
pub fn test<F: FnOnce(&Lab)>(body: F) {
    test_named(test_of::<F>(), body);
}

/// Runs the body of the test `name` with a lab, as [`test()`] does.
pub(crate) fn test_named(name: &str, body: impl FnOnce(&Lab)) {
    let alone = std::env::var_os(AGAIN).is_some();
    match Lab::new() {
        Ok(lab) => lab.near.within(|| body(&lab)),
        Err(LabError::System { .. }) if !alone => start_again(name),
        Err(why) if alone => panic!("no lab in a user namespace: {why}"),
        Err(why) => pass_over(&why.to_string()),
    }
}

/// Runs a test of this program in a process of its own, in a user namespace.
fn start_again(name: &str) {
    let mut command = test_again(name, None);
    sys::run_in_user_namespace(command.env(AGAIN, "1"));
    match command.output() {
        Err(why) => pass_over(&format!("making a user namespace: {why}")),
        Ok(output) => {
            let printed = String::from_utf8_lossy(&output.stdout);
            print!("{printed}");
            eprint!("{}", String::from_utf8_lossy(&output.stderr));
            assert!(output.status.success(), "{name} in a user namespace: {}", output.status);
            // A wrong name would succeed as well, without running a test.
            assert!(printed.contains("1 passed"), "`{name}` should be the name of one test");
        }
    }
}

/// Skips a test that can't have a lab.
fn pass_over(why: &str) {
    let integration = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
    assert!(!integration, "no lab to test in: {why}");
    passed_over(&format!("no lab to test in: {why}"));
}

/// Prints that a test can't be run here, with a count. `println!` would be captured by the test
/// harness.
pub fn passed_over(why: &str) {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed) + 1;
    let line = format!("PASSED OVER, {count} by now: {why}\n");
    io::stderr().write_all(line.as_bytes()).expect("standard error is open");
}
