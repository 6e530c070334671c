//! The output of commands in the guest.

use std::fmt;

/// The output of a command in the guest, and how the command has ended.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Output {
    /// The exit status of the command, or minus the signal that ended it; `None` while it runs.
    pub status: Option<i32>,
    /// The text that the command has printed.
    pub stdout: String,
    /// The text that the command has written to standard error.
    pub stderr: String,
}

impl Output {
    /// Returns whether the command has ended with success.
    pub fn succeeded(&self) -> bool {
        self.status == Some(0)
    }
}

impl fmt::Display for Output {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status {
            None => writeln!(to, "still running")?,
            Some(status @ 0..) => writeln!(to, "ended with {status}")?,
            Some(signal) => writeln!(to, "ended by signal {}", -signal)?,
        }
        for (name, text) in [("standard output", &self.stdout), ("standard error", &self.stderr)] {
            if !text.is_empty() {
                writeln!(to, "{name}:\n{}", text.trim_end())?;
            }
        }
        Ok(())
    }
}
