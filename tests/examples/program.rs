//! An example under way.

use std::io::{self, BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use doorbell_kit::die_with_parent;
use doorbell_kit::lab::Namespace;

/// Longer than any takes unoptimised on a machine whose processors have other work, too: on such a
/// one `kv` takes tens of seconds, for whoever waits there looks before he sleeps.
const PATIENCE: Duration = Duration::from_secs(300);

/// A process of an example, and those that it starts. They are killed when this is dropped.
pub struct Program {
    what: String,
    child: Child,
    lines: Receiver<String>,
    said: String,
    deadline: Instant,
}

impl Program {
    /// Starts an example in a folder. What it says anywhere is its output.
    pub fn start(place: &Namespace, folder: &Path, example: &str, arguments: &[String]) -> Self {
        let what = [&[example.to_owned()], arguments].concat().join(" ");
        // This program is in `deps`, beside which Cargo puts them.
        let own = std::env::current_exe().expect("a test is a program");
        let built = own.parent().and_then(Path::parent).expect("it is in a folder of Cargo's");
        let path = built.join("examples").join(example);
        assert!(path.exists(), "{} is built by `cargo test`, or --examples", path.display());

        let (reader, writer) = io::pipe().expect("there is a descriptor left");
        let mut command = place.command(path);
        let errors = writer.try_clone().expect("there is a descriptor left");
        command.args(arguments).current_dir(folder).env("TMPDIR", env!("CARGO_TARGET_TMPDIR"));
        command.stdin(Stdio::null()).stdout(writer).stderr(errors).process_group(0);
        die_with_parent(&mut command);
        let child = command.spawn().expect("the example runs");

        let (tells, lines) = channel();
        thread::spawn(move || {
            let mut reader = BufReader::new(reader);
            let mut line = Vec::new();
            while reader.read_until(b'\n', &mut line).is_ok_and(|len| len > 0) {
                // Nobody listens any more to one that is killed.
                let _ = tells.send(String::from_utf8_lossy(&line).into_owned());
                line.clear();
            }
        });
        Self { what, child, lines, said: String::new(), deadline: Instant::now() + PATIENCE }
    }

    /// The next line that it says, unless it and all that it has started have ended.
    fn next_line(&mut self) -> Option<String> {
        let line = self.lines.recv_timeout(self.deadline.saturating_duration_since(Instant::now()));
        match line {
            Ok(line) => {
                self.said += &line;
                Some(line.trim_end().to_owned())
            }
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => {
                panic!("`{}` does not end. It said:\n{}", self.what, self.said)
            }
        }
    }

    /// The next line that it says, which must begin so: the rest of that.
    pub fn hear(&mut self, beginning: &str) -> String {
        let line = self.next_line().unwrap_or_default();
        let rest = line.strip_prefix(beginning).map(str::to_owned);
        rest.unwrap_or_else(|| panic!("`{}` is to say {beginning:?}:\n{}", self.what, self.said))
    }

    /// Waits for its end, which must be a good one. All that it has said.
    pub fn end(mut self) -> String {
        while self.next_line().is_some() {}
        let status = self.child.wait().expect("it is a child");
        assert!(status.success(), "`{}`: {status}. It said:\n{}", self.what, self.said);
        std::mem::take(&mut self.said)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Once it has been waited for, its number may be somebody else's.
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        // Processes that an example has started are of its group.
        let group = format!("-{}", self.child.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
