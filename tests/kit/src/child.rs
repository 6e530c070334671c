//! A child process that plays another part of a test: the same test, started again.
//!
//! The function that is marked as the test runs from its beginning in the child, too, and does what
//! [`part`] asks for there. Parent and child exchange lines of text.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write, stdin};
use std::process::{ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use crate::namespace::Namespace;
use crate::sys;

/// The environment variable that tells a child which part it plays.
const PART: &str = "DOORBELL_PART";

/// The beginning of lines for the parent, since the test harness prints lines, too.
const MARK: &str = "to the parent: ";

/// The part that this process plays in the test, if it is a child.
pub fn part() -> Option<String> {
    std::env::var(PART).ok()
}

/// Sends a line of text from a child to its parent.
pub fn tell(line: impl std::fmt::Display) {
    println!("{MARK}{line}");
}

/// The next line from the parent; `None` if the parent sends no more.
pub fn listen() -> Option<String> {
    let line = stdin().lines().next()?;
    Some(line.expect("the parent says text"))
}

/// The name of the test whose closure this is: `program::module::test::{{closure}}`.
pub(crate) fn test_of<F>() -> &'static str {
    let name = std::any::type_name::<F>().trim_end_matches("::{{closure}}");
    name.split_once("::").map_or(name, |(_, name)| name)
}

/// The command that runs one test of this program, alone.
pub(crate) fn test_again(test: &str, namespace: Option<&Namespace>) -> Command {
    let program: OsString = std::env::current_exe().expect("a test is a program").into();
    let command = match namespace {
        Some(namespace) => namespace.command(program),
        None => Command::new(program),
    };
    of_test(command, test)
}

/// Adds the arguments by which this program runs one of its tests alone.
pub(crate) fn of_test(mut command: Command, test: &str) -> Command {
    command.args(["--exact", test, "--include-ignored", "--nocapture"]);
    command
}

/// Runs a test in a process of its own, for tests that count descriptors, or close one to open the
/// same address again. Where other tests start processes, each child has all descriptors for a
/// moment.
pub fn alone<F: FnOnce()>(test: F) {
    match part() {
        Some(_) => test(),
        None => Child::start(test_of::<F>(), "alone", None).end(),
    }
}

/// A process that plays another part of a test. The process is killed when this is dropped, and
/// when the thread ends that has started it.
#[derive(Debug)]
pub struct Child {
    process: std::process::Child,
    says: BufReader<ChildStdout>,
    hears: ChildStdin,
}

impl Child {
    /// Starts a test of this program again, in the named part; in a namespace, if one is given.
    ///
    /// # Panics
    /// When the child can't be started.
    pub fn start(test: &str, part: &str, namespace: Option<&Namespace>) -> Self {
        Self::start_by(test_again(test, namespace), part)
    }

    /// Starts a test in the named part by the command that runs it.
    pub(crate) fn start_by(mut command: Command, part: &str) -> Self {
        command.env(PART, part).stdin(Stdio::piped()).stdout(Stdio::piped());
        sys::die_with_parent(&mut command);
        let mut process = command.spawn().expect("this program can be started again");
        let (says, hears) = (process.stdout.take(), process.stdin.take());
        let (says, hears) = (says.expect("it is piped"), hears.expect("it is piped"));
        Self { process, says: BufReader::new(says), hears }
    }

    /// Waits for the next line from the child.
    ///
    /// # Panics
    /// When the child ends without another line.
    pub fn hear(&mut self) -> String {
        let line = self.next_line();
        line.unwrap_or_else(|| panic!("the other process ended: {:?}", self.process.wait()))
    }

    fn next_line(&mut self) -> Option<String> {
        loop {
            let mut line = String::new();
            if self.says.read_line(&mut line).expect("it says text") == 0 {
                return None;
            }
            // A name that no test has is one that its writer has mistaken.
            assert!(!line.starts_with("running 0 tests"), "no test of this program is named so");
            if let Some((_, told)) = line.split_once(MARK) {
                return Some(told.trim_end().to_owned());
            }
        }
    }

    /// Sends a line of text to the child.
    pub fn say(&mut self, line: impl std::fmt::Display) {
        writeln!(self.hears, "{line}").expect("it is still there");
    }

    /// Stops the child by SIGSTOP, and returns when the child has stopped.
    pub fn stop(&mut self) {
        sys::stop(self.process.id()).expect("a child can be stopped");
    }

    /// Continues a stopped child by SIGCONT.
    pub fn resume(&mut self) {
        sys::resume(self.process.id()).expect("a child can go on");
    }

    /// Ends the child by SIGKILL, whatever the child is doing.
    pub fn kill(&mut self) -> ExitStatus {
        self.process.kill().expect("a child can be killed");
        self.process.wait().expect("it is a child")
    }

    /// Waits for the end of the child, whose test must succeed.
    ///
    /// # Panics
    /// When the child's test has failed.
    pub fn end(mut self) {
        while self.next_line().is_some() {}
        let status = self.process.wait().expect("it is a child");
        assert!(status.success(), "the other process: {status}");
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Both calls fail if the child has ended and was waited for.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
