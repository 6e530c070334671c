//! Independent programs that judge the frames that Doorbell builds: whether they are installed, how
//! they are run, and the captures that they are given.

pub mod scapy;
pub mod tshark;

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use doorbell_core::pcap;

/// An independent program that judges frames.
pub struct Judge {
    /// The name of the program.
    pub name: &'static str,
    /// The command that installs the program.
    pub install: &'static str,
    /// A command that succeeds if the program is installed.
    pub probe: &'static [&'static str],
}

impl Judge {
    /// Returns whether the program is installed. If not, that is printed to standard error; under
    /// continuous integration, where nobody would read that, it is an error.
    ///
    /// # Panics
    /// When the program is not installed, and the variable `CI` is set.
    pub fn is_here(&self) -> bool {
        let [program, arguments @ ..] = self.probe else { panic!("a probe is a command") };
        let found = Command::new(program).args(arguments).output();
        if found.is_ok_and(|output| output.status.success()) {
            return true;
        }
        let missing = format!("{} is missing: install it with `{}`", self.name, self.install);
        let integration = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
        assert!(!integration, "{missing}");
        report(&format!("SKIPPED, 0 frames judged: {missing}"));
        false
    }
}

/// Prints a line to standard error even if the test passes. `println!` would be captured by the
/// test harness.
///
/// # Panics
/// When standard error is closed.
pub fn report(line: &str) {
    writeln!(io::stderr(), "{line}").expect("standard error is open");
}

/// Runs a command, and returns the lines that it prints.
///
/// # Panics
/// When the command fails.
pub fn run(command: &mut Command) -> Vec<String> {
    let output = command.output().unwrap_or_else(|why| panic!("{command:?}: {why}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{said}", output.status);
    let printed = String::from_utf8(output.stdout).expect("judges print text");
    printed.lines().map(str::to_owned).collect()
}

/// A new folder, which is removed at the end of the test unless the test fails.
pub struct Scratch(PathBuf);

impl Default for Scratch {
    fn default() -> Self {
        Self::new()
    }
}

impl Scratch {
    /// Makes a folder with a name of its own.
    ///
    /// # Panics
    /// When the folder can't be made.
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let folder = std::env::temp_dir();
        loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let path = folder.join(format!("doorbell-judges-{}-{count}", std::process::id()));
            match fs::create_dir(&path) {
                Ok(()) => return Self(path),
                // The folder was left behind by an earlier process with the same number.
                Err(why) if why.kind() == io::ErrorKind::AlreadyExists => {}
                Err(why) => panic!("{} can't be made: {why}", path.display()),
            }
        }
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a capture of these frames, a microsecond apart, and returns its path.
    ///
    /// # Panics
    /// When the capture can't be written.
    pub fn capture<'a>(&self, frames: impl Iterator<Item = &'a [u8]>) -> PathBuf {
        let path = self.0.join("frames.pcap");
        let file = fs::File::create(&path).expect("the capture can be written");
        let mut writer = pcap::Writer::new(BufWriter::new(file)).expect("its header is written");
        for (time, frame) in (0..).step_by(1_000).zip(frames) {
            writer.write(time, frame).expect("a frame is written");
        }
        writer.flush().expect("the rest is written");
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if std::thread::panicking() {
            report(&format!("what the judges saw is in {}", self.0.display()));
        } else {
            fs::remove_dir_all(&self.0).expect("the folder can be removed");
        }
    }
}
