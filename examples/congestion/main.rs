//! How connections fare on networks that lose, reorder and congest, in virtual time:
//! `cargo run --release --example congestion -- loss`

mod cable;
mod flows;
mod incast;
mod leaf_spine;
mod line;
mod network;
mod parking_lot;
mod runs;
mod spines;

use std::io::{self, Write};

use clap::Parser;

use line::Line;
use runs::Run;

/// Measures reliable connections on simulated networks of links of 10 Gbit/s that take 20 µs each
/// way. The same seed gives the same digits.
#[derive(Parser)]
struct Arguments {
    /// What to measure; everything if nothing is named
    #[arg(value_enum)]
    runs: Vec<Run>,
    /// Print a line of JSON a case
    #[arg(long)]
    json: bool,
    /// Measure less of each case, for a check that everything runs
    #[arg(long)]
    quick: bool,
    /// What all chance comes from
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> anyhow::Result<()> {
    let Arguments { runs, json, quick, seed } = Arguments::parse();
    let runs = if runs.is_empty() { Run::ALL.to_vec() } else { runs };
    let mut out = io::stdout();
    for run in runs {
        if !json {
            writeln!(out, "{}\n{}", run.title(), Line::head())?;
        }
        for case in run.cases(quick) {
            let line = case.measure(seed)?;
            match json {
                true => writeln!(out, "{}", line.json())?,
                false => writeln!(out, "{}", line.row())?,
            }
        }
        if !json {
            writeln!(out)?;
        }
    }
    Ok(())
}
