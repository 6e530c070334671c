//! How connections fare on networks that lose, reorder and congest, in virtual time:
//! `cargo run --release --example congestion -- loss`

mod cable;
mod flows;
mod incast;
mod leaf_spine;
mod line;
mod network;
mod parking_lot;
mod pictures;
mod runs;
mod spines;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
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
    /// Draw instead how rates and a queue develop when connections come and go, as SVG files in a
    /// directory
    #[arg(long, value_name = "DIR", conflicts_with_all = ["runs", "json", "quick"])]
    svg: Option<PathBuf>,
}

fn main() -> anyhow::Result<()> {
    let Arguments { runs, json, quick, seed, svg } = Arguments::parse();
    if let Some(directory) = svg {
        return draw(&directory, seed);
    }
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

/// Writes the pictures into a directory, and says where they are.
fn draw(directory: &Path, seed: u64) -> anyhow::Result<()> {
    let cannot = |path: &Path| format!("can't write {}", path.display());
    fs::create_dir_all(directory).with_context(|| cannot(directory))?;
    for (name, svg) in pictures::draw(seed) {
        let path = directory.join(name);
        fs::write(&path, svg).with_context(|| cannot(&path))?;
        println!("{}", path.display());
    }
    Ok(())
}
