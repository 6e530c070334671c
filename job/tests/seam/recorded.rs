//! Processes meet by what a launcher has really said: recorded dialogues of PMI-1 are replayed.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::Duration;

use doorbell_job::{Environment, Place};

/// The recorded dialogue of one process with its launcher.
struct Dialogue {
    lines: Vec<(Side, String)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Side {
    Process,
    Launcher,
}

/// Reads the dialogues of a recording, by the ranks of the processes.
fn dialogues(recording: &str) -> Vec<Dialogue> {
    let mut all: Vec<Dialogue> = Vec::new();
    for line in recording.lines().filter(|line| !line.starts_with('#')) {
        let (mark, said) = line.split_once(' ').expect("a mark, and what was said");
        let side = match mark {
            "rank" => {
                assert_eq!(said, all.len().to_string());
                all.push(Dialogue { lines: Vec::new() });
                continue;
            }
            ">" => Side::Process,
            "<" => Side::Launcher,
            other => panic!("`{other}` is no mark"),
        };
        all.last_mut().expect("a rank comes first").lines.push((side, said.to_owned()));
    }
    all
}

/// A line without the value that it gives, which differs from run to run; and that value.
fn without_value(line: &str) -> (&str, Option<&str>) {
    match line.split_once(" value=") {
        Some((rest, value)) => (rest, Some(value)),
        None => (line, None),
    }
}

/// Repeats the launcher's part of a dialogue, and checks that the process says what it said then.
/// The value that process 0 puts this time is the one that the others get.
fn replay(dialogue: &Dialogue, with: UnixStream, put: &Mutex<String>, barrier: &Barrier) {
    let mut heard = BufReader::new(with.try_clone().expect("a descriptor")).lines();
    let mut with = with;
    for (side, recorded) in &dialogue.lines {
        let (recorded, value) = without_value(recorded);
        match side {
            Side::Process => {
                let line = heard.next().expect("the process goes on").expect("text");
                let (said, value) = without_value(&line);
                assert_eq!(said, recorded);
                if let Some(value) = value {
                    *put.lock().expect("no panic") = value.to_owned();
                }
                if said == "cmd=barrier_in" {
                    barrier.wait();
                }
            }
            Side::Launcher => {
                let live = put.lock().expect("no panic");
                let value = value.map_or(String::new(), |_| format!(" value={live}"));
                writeln!(with, "{recorded}{value}").expect("the process reads");
            }
        }
    }
}

#[test]
fn processes_meet_by_what_slurm_has_said() {
    let dialogues = dialogues(include_str!("recordings/slurm-22.05.txt"));
    let (put, barrier) = (Mutex::default(), Barrier::new(dialogues.len()));
    let size = dialogues.len().to_string();
    thread::scope(|scope| {
        for (rank, dialogue) in dialogues.iter().enumerate() {
            let (own, launcher) = UnixStream::pair().expect("descriptors");
            let (put, barrier, size) = (&put, &barrier, &size);
            scope.spawn(move || replay(dialogue, launcher, put, barrier));
            scope.spawn(move || {
                let variables = [("PMI_RANK", rank.to_string()), ("PMI_SIZE", size.clone())];
                let owned = variables.into_iter().map(|(name, value)| (name.to_owned(), value));
                let environment = Environment::from_iter(owned).with_launcher(own);
                let place = Place::find_in(&environment, Duration::from_secs(60));
                let place = place.expect("variables with sense").expect("a place");
                let members = place.meet().expect("all come");
                let all = members.exchange(&format!("process {rank}")).expect("all tell");
                assert_eq!(all, ["process 0", "process 1"]);
                members.finish().expect("all finish");
            });
        }
    });
}
