//! Standard output, which may be a full disk or a pipe that nobody reads, and standard error.

use std::error::Error;
use std::fmt;
use std::io::{self, ErrorKind, Write};

use anyhow::Context;

/// The exit status of a command whose output nobody reads any more: that which shells give for a
/// program that `SIGPIPE` has ended.
pub const UNREAD: u8 = 128 + 13;

/// The error that nobody reads standard output any more. The command ends by it without a message,
/// since whoever has closed the pipe knows.
#[derive(Debug)]
pub struct Unread;

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nobody reads standard output")
    }
}

impl Error for Unread {}

/// Prints a text as it is.
///
/// # Errors
/// [`Unread`] when nobody reads what is printed, and another error when it can't be written.
pub fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(why) if why.kind() == ErrorKind::BrokenPipe => Err(Unread.into()),
        printed => printed.context("printing what was found to standard output"),
    }
}

/// Prints a note for people to standard error. Where it can't be written nobody misses it.
pub fn note(text: impl fmt::Display) {
    // In one piece: the two ends of a pair speak at once.
    let _ = io::stderr().lock().write_all(format!("{text}\n").as_bytes());
}
