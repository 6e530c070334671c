//! Programs that have nothing to do with us, and judge the frames that we build: whether they are
//! there, running them, and what they are given.

pub mod scapy;
pub mod tshark;

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use doorbell_core::pcap;

/// A program of somebody else's.
pub struct Judge {
    /// Its name.
    pub name: &'static str,
    /// The command that installs it.
    pub install: &'static str,
    /// A command that succeeds where it is installed.
    pub probe: &'static [&'static str],
}

impl Judge {
    /// Whether it is installed. Where it is not, that is said aloud; and under continuous
    /// integration, where nobody would hear, it is an error.
    ///
    /// # Panics
    /// When it is not, and the variable `CI` is set.
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

/// Tells even when the test passes: the harness would keep `println!` to itself.
///
/// # Panics
/// When standard error is closed.
pub fn report(line: &str) {
    writeln!(io::stderr(), "{line}").expect("standard error is open");
}

/// The lines that a command prints.
///
/// # Panics
/// When it does not succeed.
pub fn run(command: &mut Command) -> Vec<String> {
    let output = command.output().unwrap_or_else(|why| panic!("{command:?}: {why}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{said}", output.status);
    let printed = String::from_utf8(output.stdout).expect("judges print text");
    printed.lines().map(str::to_owned).collect()
}

/// A new folder, removed at the end of the test unless that fails.
pub struct Scratch(PathBuf);

impl Default for Scratch {
    fn default() -> Self {
        Self::new()
    }
}

impl Scratch {
    /// Makes one.
    ///
    /// # Panics
    /// When that can't be.
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let folder = std::env::temp_dir();
        loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let path = folder.join(format!("doorbell-judges-{}-{count}", std::process::id()));
            match fs::create_dir(&path) {
                Ok(()) => return Self(path),
                // Left behind by a process that had our number before us.
                Err(why) if why.kind() == io::ErrorKind::AlreadyExists => {}
                Err(why) => panic!("{} can't be made: {why}", path.display()),
            }
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// A capture of these frames, a microsecond apart.
    ///
    /// # Panics
    /// When it can't be written.
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
