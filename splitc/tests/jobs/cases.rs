//! The programs that the tests run, each as a process, or several, of this program.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::FromRawFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, ExitCode, Termination, exit};
use std::time::Duration;

use anyhow::Context;
use doorbell_splitc::{self as splitc, Carrier, Config, Job, RunError, World};

use crate::strangers;

/// Prints how a job has ended.
fn say<T: std::fmt::Debug>(ended: &Result<T, RunError>) {
    match ended {
        Ok(value) => println!("returned {value:?}"),
        Err(why) => println!("wrong: {why}; {why:?}"),
    }
}

/// The configuration of a job. Unless a case says more of it, no process is waited for as long as
/// `start` says.
pub fn config() -> Config {
    Config { heap: 1 << 20, patience: Duration::from_secs(1), ..Config::default() }
}

fn text(variable: &str) -> String {
    std::env::var(variable).unwrap_or_default()
}

fn job(count: usize) -> Job {
    let device = Some(text("CASE_DEVICE")).filter(|device| !device.is_empty());
    Job::processes(count).config(config()).device(device.unwrap_or_else(|| "shm".to_owned()))
}

/// Ends this process in one of several ways.
fn end(how: &str) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    match how {
        "fails" => Err("as it should".into()),
        "panics" => panic!("as it should"),
        "exits-7" => exit(7),
        "exits-0" => exit(0),
        _ => std::process::abort(),
    }
}

/// Ends this process before its job, in one of several ways.
fn end_early(how: &str) {
    match how {
        "aborts" => std::process::abort(),
        code => exit(code.parse().expect("a number")),
    }
}

/// The sockets that a program inherits which this process starts.
pub fn inherited_sockets() -> Vec<String> {
    let mut program = Command::new("sh");
    let shown = program.args(["-c", "ls -l /proc/$$/fd"]).output().expect("there is a shell");
    let shown = String::from_utf8(shown.stdout).expect("text");
    let sockets = shown.lines().filter_map(|line| line.split_once("socket:"));
    sockets.map(|(_, socket)| socket.to_owned()).collect()
}

/// Sends words to process 0 in place of an address, and does nothing more until process 0 ends the
/// connection.
fn say_and_stay(words: &str) -> ! {
    let number = text("DOORBELL_JOB_FD").parse().expect("the number of a descriptor");
    // SAFETY: process 0 has left the descriptor to this process, which nobody else uses here.
    let mut socket = unsafe { UnixStream::from_raw_fd(number) };
    socket.write_all(words.as_bytes()).expect("process 0 is there");
    let _ = socket.read_to_end(&mut Vec::new());
    exit(69)
}

/// Runs the program of a name.
pub fn run_case(case: &str) -> ExitCode {
    match case {
        "results" => {
            let ended = job(4).run(async |world| {
                println!("sum {}", world.all_reduce(world.rank(), |one, other| one + other).await?);
                Ok(1000 + world.rank())
            });
            say(&ended);
        }
        "dies" => {
            let ended = job(3).run(async |world| {
                let array = world.spread::<u64>(9).await?;
                world.barrier().await?;
                if world.rank() == 2 {
                    end(&text("CASE_HOW"))?;
                }
                loop {
                    array.at(2).write(1).await?;
                    world.sync().await?;
                    tokio::task::yield_now().await;
                }
                #[allow(unreachable_code)]
                Ok(())
            });
            say(&ended);
        }
        "zero-dies" => {
            let ended = job(3).run(async |world| {
                if world.rank() > 0 {
                    println!("pid {}", std::process::id());
                }
                world.barrier().await?;
                if world.rank() == 0 {
                    end(&text("CASE_HOW"))?;
                }
                Ok(world.barrier().await?)
            });
            say(&ended);
        }
        "computes" => {
            let ended = job(3).run(async |world| {
                if world.rank() > 0 {
                    println!("pid {}", std::process::id());
                }
                world.barrier().await?;
                // For ever, and without a look at the world.
                loop {
                    std::thread::park();
                }
                #[allow(unreachable_code)]
                Ok(())
            });
            say(&ended);
        }
        "second" => {
            let first = Job::threads(2).run(async |world| Ok(world.barrier().await?));
            assert!(first.is_ok(), "threads may run before");
            let program =
                async |world: World| Ok(world.all_reduce(1, |one, other| one + other).await?);
            assert_eq!(job(2).run(program).ok(), Some(2));
            say(&job(2).run(program));
        }
        "early" => {
            let rank = text("CASE_RANK");
            let is_odd = std::env::var("DOORBELL_JOB_RANK").is_ok_and(|own| own == rank);
            match text("CASE_HOW").as_str() {
                "returns" if is_odd => return ExitCode::SUCCESS,
                // It is refused when it has reported its address, and before it has joined.
                "refused" if is_odd => {
                    let heap = usize::MAX;
                    let _ = job(3).config(Config { heap, ..config() }).run(async |_| Ok(()));
                }
                how if is_odd => end_early(how),
                _ => {}
            }
            // Whoever waited for as long as the start may take would wait for too long.
            let config = Config { start: Duration::from_secs(3600), ..config() };
            say(&job(3).config(config).run(async |world| Ok(world.barrier().await?)));
        }
        // One process says a part of its line, and another ends.
        "half" => {
            match text("DOORBELL_JOB_RANK").as_str() {
                "1" => say_and_stay(&text("CASE_WORDS")),
                "2" if text("CASE_HOW") == "ends" => exit(3),
                _ => {}
            }
            let within = text("CASE_WITHIN").parse().expect("a number of milliseconds");
            let config = Config { start: Duration::from_millis(within), ..config() };
            say(&job(3).config(config).run(async |world| Ok(world.barrier().await?)));
        }
        "longest" => {
            let config = Config { start: Duration::MAX, patience: Duration::MAX, ..config() };
            let ended = job(3).config(config).run(async |world| {
                println!("sum {}", world.all_reduce(world.rank(), |one, other| one + other).await?);
                Ok(())
            });
            say(&ended);
        }
        // The others wait at a gate before their job, so that process 0 waits for them.
        "awaited" => {
            if std::env::var_os("DOORBELL_JOB_RANK").is_some() {
                let mut gate = TcpStream::connect(text("CASE_GATE")).expect("it is there");
                let _ = gate.read(&mut [0]);
            }
            let ended = job(3).run(async |world| {
                println!("sum {}", world.all_reduce(world.rank(), |one, other| one + other).await?);
                Ok(())
            });
            say(&ended);
        }
        "stranger" => strangers::attack(&text("CASE_JOB"), &text("CASE_WORDS")),
        // A process runs a program of another job, and can't remove its own variables before.
        "nests" => {
            std::thread::spawn(std::thread::park);
            let ended = job(2).run(async |world| {
                if world.rank() == 1 {
                    let mut inner = Command::new(std::env::current_exe()?);
                    let said = inner.arg("case:results").output()?.stdout;
                    print!("{}", String::from_utf8(said)?);
                }
                Ok(world.barrier().await?)
            });
            say(&ended);
        }
        "begets" => {
            let ended = job(2).run(async |world| {
                println!("has inherited {:?}", inherited_sockets());
                let variables = Command::new("env").output()?.stdout;
                let variables = String::from_utf8(variables)?;
                let of_job = variables.lines().filter(|line| line.starts_with("DOORBELL_JOB"));
                of_job.for_each(|line| println!("{line}"));
                Ok(world.barrier().await?)
            });
            say(&ended);
        }
        "returns" => {
            let who = text("CASE_RANK");
            let ended = job(3).run(async |world| {
                world.barrier().await?;
                while world.rank().to_string() != who {
                    world.barrier().await?;
                }
                Ok(())
            });
            say(&ended);
        }
        // As `fn main() -> Result<(), RunError>` does.
        "main" => {
            let ended = Job::threads(2).run(async |world| {
                let array = world.spread::<u64>(4).await?;
                array.at(9).read().await.context("reading the ninth")?;
                Ok(())
            });
            return ended.report();
        }
        // A second job of a launcher.
        "twice" => {
            let sum = async |world: World| Ok(world.all_reduce(1, |a, b| a + b).await?);
            say(&splitc::run(sum));
            say(&splitc::run(sum));
        }
        "environment" => {
            let started = Job::from_environment().and_then(|job| {
                job.run(async |world| {
                    // As one line each, of whichever process.
                    let carriers = (0..world.size()).map(|rank| world.carrier(rank));
                    let carriers: Vec<Carrier> = carriers.collect::<Result<_, _>>()?;
                    let last = carriers[world.size() - 1 - world.rank()];
                    println!("rank of {} at {} by {last}", world.size(), world.address());
                    Ok(world.barrier().await?)
                })
            });
            say(&started);
        }
        other => panic!("there is no case {other}"),
    }
    ExitCode::SUCCESS
}
