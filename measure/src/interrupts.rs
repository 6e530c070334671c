//! What Ctrl-C and SIGTERM do to a command that measures for a while.
//!
//! Until something can have been measured they end the process, which says what it was doing, and
//! whose exit status is that of the signal. From then on the first Ctrl-C is remembered instead, so
//! that the command can report what it has. Files that are half written are removed.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::Context;
use doorbell_verbs::floor::locked;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use crate::out;

/// Whether an interrupt is remembered instead of ending this process.
static IS_REMEMBERED: AtomicBool = AtomicBool::new(false);
/// Records whether this process has been interrupted.
static HAS_COME: AtomicBool = AtomicBool::new(false);
/// Whether somebody has interrupted this process, or a process that it has started.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// The work that an interrupt disturbs now, as the end of a sentence.
static DOING: Mutex<&str> = Mutex::new("before anything was measured");
/// Files that are of no use to anybody if this process ends early.
static TEMPORARY: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Handles Ctrl-C and SIGTERM from now on, in a thread of their own.
pub fn handle() -> anyhow::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM]).context("handling Ctrl-C")?;
    let handler = move || {
        for signal in signals.forever() {
            let is_remembered = signal == SIGINT && IS_REMEMBERED.load(Ordering::Relaxed);
            if is_remembered && !HAS_COME.swap(true, Ordering::Relaxed) {
                note();
            } else {
                end(signal);
            }
        }
    };
    thread::Builder::new().spawn(handler).context("starting the thread for Ctrl-C").map(drop)
}

/// Removes what is half written, says what was interrupted, and ends this process by the signal.
fn end(signal: i32) {
    // Held to the end: no file is created behind the removal.
    let temporary = locked(&TEMPORARY);
    for path in temporary.iter() {
        // A file that is complete has another name by now.
        let _ = fs::remove_file(path);
    }
    let (again, remembers) = (&HAS_COME, &IS_REMEMBERED);
    let how = match signal {
        SIGINT if again.load(Ordering::Relaxed) => "interrupted a second time,",
        SIGINT => "interrupted",
        _ if remembers.load(Ordering::Relaxed) => "terminated,",
        _ => "terminated",
    };
    out::note(format_args!("doorbell: {how} {}", locked(&DOING)));
    let _ = emulate_default_handler(signal);
    // Only if the signal could not be sent.
    std::process::exit(128 + signal);
}

/// Sets the work that an interrupt disturbs from now on, as the end of the sentence "interrupted
/// …".
pub fn doing(what: &'static str) {
    *locked(&DOING) = what;
}

/// Has the first Ctrl-C remembered from now on. The terminal interrupts the processes that measure,
/// too. A second Ctrl-C ends this process.
pub fn remember() {
    doing("and nothing is reported");
    IS_REMEMBERED.store(true, Ordering::Relaxed);
}

/// Notes that a process was interrupted that this one has started. The terminal interrupts both,
/// but this one may not have heard of that yet.
pub fn note() {
    INTERRUPTED.store(true, Ordering::Relaxed);
}

/// Whether somebody has interrupted the measurements.
pub fn is_interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// Creates a file that is removed if Ctrl-C or SIGTERM ends this process, unless the file has been
/// renamed by then.
pub fn create_temporary(path: &Path) -> io::Result<File> {
    let mut temporary = locked(&TEMPORARY);
    let file = File::create_new(path)?;
    temporary.push(path.to_owned());
    Ok(file)
}
