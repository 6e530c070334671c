//! Standard output, which may be a full disk or a pipe that nobody reads.

use std::io::{self, Write};

use anyhow::Context;

/// Prints a text as it is.
pub fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    let printed = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    printed.context("printing what was found to standard output")
}
