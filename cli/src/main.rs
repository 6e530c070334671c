//! The command `doorbell`.
//!
//! ```text
//!  doorbell run           starts the processes of a job, here or on other hosts
//!  doorbell perf          measures one latency, rate or cost          ◄─┐ processes that
//!  doorbell logp          measures the parameters of LogP everywhere ───┤ measure again
//!  doorbell paper         repeats the measurements of a paper        ───┘ and again
//!  doorbell doctor        tells what works on this machine
//!  doorbell pingpong      plays with any peer that speaks RoCE
//!  doorbell completions   prints a script by which a shell completes arguments
//!  doorbell man           makes the manual pages
//! ```
//!
//! A first use:
//!
//! ```text
//! $ doorbell perf write_lat --pair --device shm
//! ```
//!
//! Each command is a module, which has its arguments and is called from here. What `perf` and
//! `paper` measure, and what all commands that measure share, is in the crate `doorbell_measure`.

#![forbid(unsafe_code)]

mod completions;
mod doctor;
mod log;
mod logp;
mod man;
mod pingpong;
mod run;

use std::process::ExitCode;

use anyhow::Error;
use clap::{CommandFactory, Parser, Subcommand};
use doorbell_measure::out::{self, Unread};
use doorbell_measure::usage::{self, Usage};
use doorbell_measure::{paper, perf};

/// InfiniBand verbs, Active Messages and Split-C for Tokio, over any Ethernet: what works on this
/// machine, and how fast.
#[derive(Parser)]
#[command(name = "doorbell", version, after_help = VARIABLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const VARIABLES: &str = "\
Environment:
  RUST_LOG        shows spans and events of Doorbell's crates on standard error,
                  as in RUST_LOG=debug or RUST_LOG=doorbell_verbs=debug
  NO_COLOR        no colours on a terminal
  CLICOLOR_FORCE  colours also where there is no terminal";

#[derive(Subcommand)]
enum Command {
    Run(run::Args),
    Logp(logp::Args),
    Paper(paper::Args),
    Doctor(doctor::Args),
    Perf(perf::Args),
    Pingpong(pingpong::Args),
    Completions(completions::Args),
    Man(man::Args),
}

/// The commands by which this program starts itself again. They are apart from the others, so that
/// nobody who mistypes one of those is shown them.
#[derive(Parser)]
#[command(name = "doorbell", version)]
struct OwnCli {
    #[command(subcommand)]
    command: OwnCommand,
}

#[derive(Subcommand)]
enum OwnCommand {
    #[command(name = run::NAME)]
    RunProcess(run::ExecArgs),
    #[command(name = run::KEEPER)]
    RunJob(run::KeeperArgs),
    #[command(name = paper::EXCHANGE)]
    PaperExchange(paper::ExchangeArgs),
}

impl OwnCommand {
    /// Tells whether this program was started with one of these commands.
    fn is_given() -> bool {
        let first = std::env::args_os().nth(1);
        first.is_some_and(|first| Self::has_subcommand(&first.to_string_lossy()))
    }
}

fn main() -> ExitCode {
    let done = match OwnCommand::is_given() {
        true => own(OwnCli::parse().command),
        false => asked(Cli::parse().command),
    };
    done.unwrap_or_else(|why| failed(&why))
}

fn asked(command: Command) -> anyhow::Result<ExitCode> {
    // What `run` starts has the variable for itself.
    if !matches!(command, Command::Run(_)) {
        log::start();
    }
    match command {
        Command::Run(_) => return run::run(),
        Command::Logp(args) => return logp::run(&args),
        Command::Paper(args) => return paper::run(&args),
        Command::Doctor(args) => doctor::run(&args)?,
        Command::Perf(args) => perf::run(&args)?,
        Command::Pingpong(args) => pingpong::run(&args)?,
        Command::Completions(args) => completions::run(&args, Cli::command())?,
        Command::Man(args) => man::run(&args, Cli::command())?,
    }
    Ok(ExitCode::SUCCESS)
}

fn own(command: OwnCommand) -> anyhow::Result<ExitCode> {
    match command {
        OwnCommand::RunJob(args) => return run::keep(&args),
        OwnCommand::RunProcess(args) => run::become_process(&args)?,
        OwnCommand::PaperExchange(args) => {
            log::start();
            paper::exchange(&args)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints an error, and returns the exit status for it: 2 if the command was called wrongly, and 1
/// for what has failed. If nobody reads its output any more, nothing is printed.
fn failed(why: &Error) -> ExitCode {
    if why.is::<Unread>() {
        return ExitCode::from(out::UNREAD);
    }
    out::error(&told(why));
    if why.is::<Usage>() { ExitCode::from(usage::STATUS) } else { ExitCode::FAILURE }
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
