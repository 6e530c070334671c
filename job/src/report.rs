//! What a process tells its user while others write to the same place.

use std::io::Write;

/// Writes whole lines to standard error, all at once. The processes of a job often share one
/// standard error, and lines that are written in parts would be mixed up there.
pub fn report(lines: &str) {
    // Whoever has closed it does not want to read it.
    let _ = std::io::stderr().write_all(lines.as_bytes());
}
