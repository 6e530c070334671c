//! What a process tells its user while others write to the same place.

use std::io::Write;

/// Writes whole lines to standard error, all at once. The processes of a job often share one
/// standard error, and lines that are written in parts would be mixed up there.
pub fn report(lines: &str) {
    // Whoever has closed it does not want to read it.
    let _ = std::io::stderr().write_all(lines.as_bytes());
}

/// Prints a warning, by `tracing` if the program subscribes to that, and otherwise on standard
/// error.
pub(crate) fn warn(text: &str) {
    if tracing::dispatcher::has_been_set() {
        tracing::warn!("{text}");
    } else {
        report(&format!("doorbell: {text}\n"));
    }
}

/// The exit status of a process that ends only because another has ended, and can't return an error
/// that says so: `EX_UNAVAILABLE` of `sysexits.h`.
pub const SECONDARY: i32 = 69;
