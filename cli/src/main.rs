//! The command `doorbell`.
//!
//! ```text
//!  doorbell run        starts the processes of a job, here or on other hosts
//!  doorbell perf       measures one latency, rate or cost          ◄─┐ processes that
//!  doorbell logp       measures the parameters of LogP everywhere ───┤ measure again
//!  doorbell paper      repeats the measurements of a paper        ───┘ and again
//!  doorbell doctor     tells what works on this machine
//!  doorbell pingpong   plays with any peer that speaks RoCE
//! ```
//!
//! A first use:
//!
//! ```text
//! $ doorbell perf write_lat --pair --device shm
//! ```
//!
//! Each command is a folder, which has its arguments and is called from here. `runs` starts
//! `doorbell perf` for the commands above, `machine` describes the machine, and `out`, `files`,
//! `interrupts` and `processors` are shared by all.

#![forbid(unsafe_code)]

mod doctor;
mod files;
mod interrupts;
mod logp;
mod machine;
mod out;
mod paper;
mod perf;
mod pingpong;
mod processors;
mod run;
mod runs;

use std::process::ExitCode;

use anyhow::Error;
use clap::{Parser, Subcommand};

/// InfiniBand verbs, Active Messages and Split-C for Tokio, over any Ethernet: what works on this
/// machine, and how fast.
#[derive(Parser)]
#[command(name = "doorbell", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(run::Args),
    #[command(name = run::NAME)]
    RunProcess(run::ExecArgs),
    #[command(name = run::KEEPER)]
    RunJob(run::KeeperArgs),
    Logp(logp::Args),
    Paper(paper::Args),
    #[command(name = paper::EXCHANGE)]
    PaperExchange(paper::ExchangeArgs),
    Doctor(doctor::Args),
    Perf(perf::Args),
    Pingpong(pingpong::Args),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Run(_) => return run::run().unwrap_or_else(|why| failed(&why)),
        Command::RunJob(args) => return run::keep(&args).unwrap_or_else(|why| failed(&why)),
        Command::RunProcess(args) => run::become_process(&args),
        Command::Logp(args) => logp::run(&args),
        Command::Paper(args) => paper::run(&args),
        Command::PaperExchange(args) => paper::exchange(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Perf(args) => perf::run(&args),
        Command::Pingpong(args) => pingpong::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => failed(&why),
    }
}

/// Prints an error, and returns the exit status for it.
fn failed(why: &Error) -> ExitCode {
    // In one piece: the two ends of a pair speak at once.
    eprint!("{}", told(why));
    ExitCode::FAILURE
}

/// An error with its causes, but for those that it has named itself.
fn told(why: &Error) -> String {
    let mut told = format!("doorbell: {why}");
    for cause in why.chain().skip(1).map(ToString::to_string) {
        if !told.contains(&cause) {
            told = format!("{told}: {cause}");
        }
    }
    told + "\n"
}
