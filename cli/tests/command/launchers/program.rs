//! The program of Split-C that launchers start, and how a test watches it.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use doorbell_splitc::{self as splitc, World};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The command that runs a part of the program in a process of a job.
pub fn program(part: &str) -> Vec<String> {
    let own = std::env::current_exe().expect("a test is a program");
    let own = own.to_str().expect("its path is text").to_owned();
    let harness = ["--exact", "launchers::part_of_a_job", "--ignored", "--nocapture", "--quiet"];
    let words = ["env".to_owned(), format!("PART={part}"), own];
    words.into_iter().chain(harness.map(str::to_owned)).collect()
}

/// Plays the part that the environment names.
pub fn play() {
    let part = std::env::var("PART").expect("a launcher's test has set it");
    let played = splitc::run(async |world: World| {
        let (rank, size) = (world.rank(), world.size());
        match &*part {
            "sum" => {
                if let Ok(folder) = std::env::var("MEETS_IN") {
                    meet_in(&folder).await?;
                }
                let sum = world.all_reduce(rank, |a, b| a + b).await?;
                // A line in one piece, whatever others print.
                println!("process {rank} of {size}: sum {sum}");
            }
            "exits 0" | "exits 3" | "fails" | "aborts" | "returns" | "is killed" => {
                world.barrier().await?;
                match &*part {
                    _ if rank != 1 => world.barrier().await?,
                    "returns" => return Ok(()),
                    "is killed" => kill(Pid::this(), Signal::SIGKILL)?,
                    "fails" => return Err("process 1 fails here".into()),
                    "aborts" => std::process::abort(),
                    part => std::process::exit(i32::from(part.ends_with('3')) * 3),
                }
            }
            "panics" if rank == 1 => panic!("process 1 panics here"),
            "panics" => world.barrier().await?,
            "dies" => {
                world.barrier().await?;
                if std::env::var_os("DIES").is_some() {
                    std::process::abort();
                }
                world.barrier().await?;
            }
            "waits" => {
                println!("pid {}", std::process::id());
                loop {
                    // Nothing of the world tells that the launcher has gone.
                    std::thread::sleep(Duration::from_secs(1));
                }
            }
            other => panic!("{other} is no part"),
        }
        Ok(())
    });
    if let Err(why) = played {
        panic!("{why}");
    }
}

/// Waits until eight processes, of whichever jobs, have a file in a folder.
async fn meet_in(folder: &str) -> std::io::Result<()> {
    std::fs::write(format!("{folder}/{}", std::process::id()), "")?;
    let until = Instant::now() + doorbell_kit::PATIENCE;
    while std::fs::read_dir(folder)?.count() < 8 {
        assert!(Instant::now() < until, "the processes of the other job have not come");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}

/// A launcher that runs, whose output is read.
pub struct Started {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Started {
    pub fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it runs");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        Self { child, output }
    }

    pub fn id(&self) -> i32 {
        self.child.id() as i32
    }

    /// The ids of so many processes, when they have said them.
    pub fn pids(&mut self, count: usize) -> Vec<i32> {
        let lines = (&mut self.output).lines().map(|line| line.expect("text"));
        let pid = |line: String| {
            let (_, pid) = line.split_once("pid ")?;
            pid.trim().parse().ok()
        };
        lines.filter_map(pid).take(count).collect()
    }

    /// Writes to the launcher's standard input, which must be a pipe.
    pub fn tell(&mut self, text: &str) {
        let input = self.child.stdin.as_mut().expect("a pipe");
        input.write_all(text.as_bytes()).expect("somebody reads it");
    }

    pub fn wait(mut self) -> ExitStatus {
        self.child.wait().expect("it ends")
    }
}

/// Waits until a process is gone.
pub fn gone(pid: i32) {
    let until = Instant::now() + doorbell_kit::PATIENCE;
    let is_there = || {
        let state = std::fs::read_to_string(format!("/proc/{pid}/stat"));
        // One that has ended may wait for its parent to hear of that.
        state.is_ok_and(|state| !state.contains(") Z "))
    };
    while is_there() {
        assert!(Instant::now() < until, "process {pid} is still there");
        std::thread::sleep(Duration::from_millis(5));
    }
}
