//! An example under way.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader};
use std::ops::Deref;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use doorbell_kit::lab::Namespace;
use doorbell_kit::{die_with_parent, ordinary_user, run_as};

/// How long an example may take: longer than any does unoptimised on a machine whose processors
/// have other work, too.
const PATIENCE: Duration = Duration::from_secs(300);

/// A new folder, which is whose the examples are, and gone when this is dropped.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("doorbell-examples-{}-{count}", std::process::id());
        let user = ordinary_user();
        // What lies in root's own folder others may not reach.
        let place = match user {
            Some(_) => std::env::temp_dir(),
            None => env!("CARGO_TARGET_TMPDIR").into(),
        };
        let folder = Self(place.join(name));
        std::fs::create_dir(&*folder).expect("a folder can be made there");
        chown(&*folder, user, user).expect("it is this user's, or this is root");
        folder
    }
}

impl Deref for Folder {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What starts an example: itself, or a launcher with a number of processes.
#[derive(Clone, Copy, Debug)]
pub enum Starter {
    Itself,
    DoorbellRun(usize),
    Hydra(usize),
}

impl Starter {
    /// The command that starts a program. `built` is the folder of the programs that Cargo builds,
    /// and `own` a folder to which they are copied first, if there is one.
    fn command(self, program: PathBuf, built: &Path, own: Option<&Path>) -> Vec<OsString> {
        let (launcher, count) = match self {
            Self::Itself => return vec![program.into()],
            Self::DoorbellRun(count) => {
                let path = built.join("doorbell");
                assert!(path.exists(), "{} is built by -p doorbell-cli", path.display());
                let path = own.map_or_else(|| path.clone(), |own| copied(&path, own));
                (vec![path.into(), "run".into()], count)
            }
            Self::Hydra(count) => (vec!["mpiexec.hydra".into()], count),
        };
        [launcher, vec!["-n".into(), count.to_string().into(), program.into()]].concat()
    }
}

/// A process of an example, and those that it starts. They are killed when this is dropped.
pub struct Program {
    what: String,
    child: Child,
    lines: Receiver<String>,
    said: String,
    deadline: Instant,
    /// What only they have, if they are another user's: removed when they are dead.
    _own: Option<Folder>,
}

impl Program {
    /// Starts an example in a folder. What it says anywhere is its output.
    pub fn start(place: &Namespace, folder: &Path, example: &str, arguments: &[String]) -> Self {
        Self::start_by(Starter::Itself, place, folder, example, arguments)
    }

    /// Starts an example in a folder, by itself or by a launcher.
    pub fn start_by(
        starter: Starter,
        place: &Namespace,
        folder: &Path,
        example: &str,
        arguments: &[String],
    ) -> Self {
        Self::start_into(None, starter, place, folder, example, arguments)
    }

    /// Starts an example whose standard output goes elsewhere, if that is given: then only what it
    /// says by standard error is its output.
    pub fn start_into(
        elsewhere: Option<Stdio>,
        starter: Starter,
        place: &Namespace,
        folder: &Path,
        example: &str,
        arguments: &[String],
    ) -> Self {
        let what = [&[example.to_owned()], arguments].concat().join(" ");
        // This program is in `deps`, beside which Cargo puts them.
        let test = std::env::current_exe().expect("a test is a program");
        let built = test.parent().and_then(Path::parent).expect("it is in a folder of Cargo's");
        let path = built.join("examples").join(example);
        assert!(path.exists(), "{} is built by `cargo test`, or --examples", path.display());

        let (reader, writer) = io::pipe().expect("there is a descriptor left");
        let user = ordinary_user();
        let own = user.map(|_| Folder::new());
        let path = own.as_deref().map_or_else(|| path.clone(), |own| copied(&path, own));
        let words = starter.command(path, built, own.as_deref());
        let mut command = place.command(&words[0]);
        command.args(&words[1..]);
        let errors = writer.try_clone().expect("there is a descriptor left");
        let temporary = own.as_deref().unwrap_or(Path::new(env!("CARGO_TARGET_TMPDIR")));
        command.args(arguments).current_dir(folder).env("TMPDIR", temporary);
        command.stdin(Stdio::null()).stdout(elsewhere.unwrap_or(writer.into()));
        command.stderr(errors).process_group(0);
        if let Some(user) = user {
            run_as(&mut command, user);
        }
        die_with_parent(&mut command);
        let child = command.spawn().expect("the example runs");
        if let Some(user) = user {
            assert_eq!(owner(&child), user, "`{what}` is to run as an ordinary user");
        }

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
        let deadline = Instant::now() + PATIENCE;
        Self { what, child, lines, said: String::new(), deadline, _own: own }
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
    pub fn end(self) -> String {
        self.end_as(true)
    }

    /// Waits for its end, which must be a failure. All that it has said.
    pub fn fail(self) -> String {
        self.end_as(false)
    }

    fn end_as(mut self, success: bool) -> String {
        while self.next_line().is_some() {}
        let status = self.child.wait().expect("it is a child");
        let as_expected = status.success() == success;
        assert!(as_expected, "`{}`: {status}. It said:\n{}", self.what, self.said);
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

/// Copies a program to where others than root may run it, too.
///
/// Not by this process: of what it writes, one that another test starts meanwhile would have a
/// descriptor for a moment, and what somebody may still write can't be run.
fn copied(program: &Path, to: &Path) -> PathBuf {
    let copied = Command::new("install").args(["-m", "755"]).arg(program).arg(to).status();
    assert!(copied.expect("install is there").success(), "{} is not copied", program.display());
    to.join(program.file_name().expect("a program has a name"))
}

/// As whom a process runs, which may have ended and was not waited for.
fn owner(process: &Child) -> u32 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id()));
    let status = status.expect("it is this one's child");
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:")).expect("it is someone's");
    let user = users.split_whitespace().next().expect("there are four");
    user.parse().expect("it is a number")
}
