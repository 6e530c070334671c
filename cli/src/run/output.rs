//! The output of processes, each of whose lines begins with the number of its process.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::Child;
use std::thread::{self, JoinHandle};

/// The longest line that is written in one piece.
const LONGEST: u64 = 64 << 10;

/// The output of a process, which threads pass on.
#[derive(Default, Debug)]
pub struct Output(Vec<JoinHandle<()>>);

impl Output {
    /// Passes on what a process writes, if that goes through pipes, until nobody can write to them
    /// any more: neither the process, nor any that it has started.
    pub fn prefixed(child: &mut Child, rank: usize, size: usize) -> Self {
        let width = (size.max(1) - 1).to_string().len();
        let prefix = format!("{rank:>width$}: ");
        let mut threads = Vec::new();
        if let Some(from) = child.stdout.take() {
            let prefix = prefix.clone();
            threads.push(thread::spawn(move || pass_on(from, &prefix, io::stdout)));
        }
        if let Some(from) = child.stderr.take() {
            threads.push(thread::spawn(move || pass_on(from, &prefix, io::stderr)));
        }
        Self(threads)
    }

    /// Returns whether all output has been passed on.
    pub fn has_ended(&self) -> bool {
        self.0.iter().all(JoinHandle::is_finished)
    }
}

fn pass_on<W: Write>(from: impl Read, prefix: &str, to: impl Fn() -> W) {
    let mut from = BufReader::new(from);
    let mut line = prefix.as_bytes().to_vec();
    loop {
        line.truncate(prefix.len());
        match (&mut from).take(LONGEST).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        if line.last() != Some(&b'\n') {
            line.push(b'\n');
        }
        // An error is ignored: if nobody reads the output, the process runs on all the same.
        let mut to = to();
        let _ = to.write_all(&line).and_then(|()| to.flush());
    }
}
