//! The processes that a process has started, those that they have started, and so on.
//!
//! A launcher that is a subreaper keeps all of them: the system gives it those whose parents end.

use std::collections::HashMap;
use std::fs;
use std::time::{Duration, Instant};

use anyhow::Context;
use nix::sys::prctl;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// How long processes that are killed may take to be gone. The system keeps a process that waits
/// for a disk or a file server.
const KILLING: Duration = Duration::from_secs(2);
/// How often processes that are killed are looked for.
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// Has the system make this process the parent of all its descendants whose own parents end.
pub fn keep() -> anyhow::Result<()> {
    prctl::set_child_subreaper(true).context("keeping the processes that processes start")
}

/// The descendants of some processes that run, each before those that it has started. The list is
/// empty where there is no `/proc`.
pub fn of(roots: &[Pid]) -> Vec<Pid> {
    let mut children: HashMap<i32, Vec<Stat>> = HashMap::new();
    for stat in all() {
        children.entry(stat.parent).or_default().push(stat);
    }
    let mut found: Vec<Stat> = Vec::new();
    for root in roots {
        found.extend(children.remove(&root.as_raw()).into_iter().flatten());
    }
    let mut at = 0;
    while let Some(&Stat { pid, .. }) = found.get(at) {
        found.extend(children.remove(&pid).into_iter().flatten());
        at += 1;
    }
    let running = found.into_iter().filter(|stat| !stat.has_ended);
    running.map(|stat| Pid::from_raw(stat.pid)).collect()
}

/// Sends a signal to processes. Some may have ended since they were found, or belong to somebody
/// else.
pub fn send(signal: Signal, to: &[Pid]) {
    for &pid in to {
        let _ = kill(pid, signal);
    }
}

/// Kills all descendants of this process, and those that they start in the meantime. Returns those
/// that stay.
pub fn kill_all() -> Vec<Pid> {
    let until = Instant::now() + KILLING;
    loop {
        let left = of(&[Pid::this()]);
        if left.is_empty() || Instant::now() >= until {
            return left;
        }
        send(Signal::SIGKILL, &left);
        std::thread::sleep(BETWEEN_LOOKS);
    }
}

/// The processes that stay though they were killed, as the end of a sentence.
pub fn left_behind(left: &[Pid]) -> String {
    let ids: Vec<_> = left.iter().map(ToString::to_string).collect();
    if ids.is_empty() {
        return String::new();
    }
    format!("; the system does not end the processes with these ids: {}", ids.join(", "))
}

/// The facts about a process that the system tells in `/proc`.
struct Stat {
    pid: i32,
    parent: i32,
    /// Whether the process has ended, and its parent has not asked for its status yet.
    has_ended: bool,
}

/// Returns all processes of the system.
fn all() -> impl Iterator<Item = Stat> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        // The name stands in parentheses, and may have any characters.
        let (_, rest) = stat.rsplit_once(") ")?;
        let mut words = rest.split(' ');
        let has_ended = words.next()? == "Z";
        Some(Stat { pid, parent: words.next()?.parse().ok()?, has_ended })
    })
}
