//! EM3D: the propagation of electromagnetic waves through an object, on an irregular graph of nodes
//! of the electric and of the magnetic field.
//!
//! Each electric node has some magnetic nodes as neighbours, and each magnetic node some electric
//! ones. The first half of a step changes every electric node's value to
//!
//! ```text
//! value - (weight[0] * neighbour[0] + weight[1] * neighbour[1] + …)
//! ```
//!
//! and the second half every magnetic node's. The graph is random, from a seed. All processes have
//! equally many nodes, and some of the neighbours are nodes of another process.
//!
//! The program is that of "Parallel Programming in Split-C" by D. E. Culler, A. Dusseau, S. C.
//! Goldstein, A. Krishnamurthy, S. Lumetta, T. von Eicken and K. Yelick (Supercomputing '93). The
//! paper optimises the program step by step, and each [`Variant`] is one of these steps. Its result
//! is compared with that of a sequential program, bit by bit.
//!
//! Three lines to read first are in `variants.rs`: `world.at(…).read().await`, `world.at(…).get()`
//! and `world.at(…).store(…)`. The functions around them are three of the variants, and show what
//! else each takes.
//!
//! ```text
//! cargo run --release --example em3d
//! cargo run --release --example em3d -- --processes 2 --variant bulk
//! cargo run --release --example em3d -- --quick --threads 3 --device udp:127.0.0.1:0
//! ```

mod field;
mod graph;
mod sequential;
#[path = "../spmd/mod.rs"]
mod spmd;
mod variants;

use std::io::{self, Write};

use anyhow::{Context, Result, ensure};
use clap::{Parser, ValueEnum};
use doorbell::splitc::{BoxError, World};

use graph::{Kind, Shape};
use spmd::{Launch, Measured, print_table};
use variants::Variant;

#[derive(Parser)]
#[command(about = "Electromagnetic waves on a graph, in Split-C: one program in several variants")]
struct Args {
    /// The variant to run; without this flag all of them run, one after the other
    #[arg(long)]
    variant: Option<Variant>,

    /// Nodes of each kind that a process has
    #[arg(long, default_value_t = 30_000)]
    nodes: usize,

    /// Neighbours of a node
    #[arg(long, default_value_t = 20)]
    degree: usize,

    /// How many per cent of the neighbours are other processes' nodes
    #[arg(long, default_value_t = 10)]
    remote: u64,

    /// Steps in time, in each of which all nodes get new values
    #[arg(long, default_value_t = 100)]
    steps: u32,

    /// Programs with equal seeds have equal graphs
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// A small graph and few steps, in place of the numbers above
    #[arg(long, conflicts_with_all = ["nodes", "degree", "remote", "steps"])]
    quick: bool,

    #[command(flatten)]
    launch: Launch,
}

impl Args {
    fn parsed() -> Result<Self> {
        let args = Self::parse();
        let args = match args.quick {
            true => Self { nodes: 300, degree: 5, remote: 20, steps: 4, ..args },
            false => args,
        };
        ensure!(args.nodes > 0 && args.degree > 0, "there must be nodes, and each has a neighbour");
        ensure!(args.remote <= 100, "{} per cent of the neighbours are too many", args.remote);
        Ok(args)
    }

    /// The parameters of the graph for a number of processes.
    fn shape(&self, processes: usize) -> Shape {
        let Self { nodes, degree, remote, seed, .. } = *self;
        Shape { processes, nodes, degree, remote, seed }
    }

    fn variants(&self) -> &[Variant] {
        self.variant.as_ref().map_or(Variant::value_variants(), std::slice::from_ref)
    }
}

/// The results that a process returns; those of process 0 have the values of all nodes.
struct Outcome {
    rank: usize,
    processes: usize,
    runs: Vec<Run>,
}

/// The results of one variant.
struct Run {
    variant: Variant,
    measured: Measured,
    /// The values of all electric and of all magnetic nodes after the last step, at process 0.
    values: [Vec<f64>; 2],
}

/// Runs the chosen variants, as the program of each process.
async fn run(world: &World, args: &Args) -> Result<Outcome, BoxError> {
    let shape = args.shape(world.size());
    if u32::try_from(shape.nodes.saturating_mul(shape.processes)).is_err() {
        let why = "that many nodes have numbers beyond 32 bits: choose fewer with --nodes";
        return Err(why.into());
    }
    let mut fields = field::fields(world, &shape).await?;
    let mut runs = Vec::new();
    for &variant in args.variants() {
        let measured = variants::simulate(variant, &mut fields, args.steps).await?;
        let values = [fields[0].collect().await?, fields[1].collect().await?];
        runs.push(Run { variant, measured, values });
    }
    Ok(Outcome { rank: world.rank(), processes: world.size(), runs })
}

/// Compares the values that a variant has computed with those of the sequential program.
fn compare(run: &Run, expected: &[Vec<f64>; 2]) -> Result<()> {
    for (at, kind) in [Kind::Electric, Kind::Magnetic].into_iter().enumerate() {
        let (found, expected) = (&run.values[at], &expected[at]);
        ensure!(found.len() == expected.len(), "variant {} lost nodes", run.variant);
        let mut pairs = found.iter().zip(expected);
        let wrong = pairs.position(|(found, expected)| found.to_bits() != expected.to_bits());
        if let Some(node) = wrong {
            anyhow::bail!(
                "variant {}: {kind:?} node {node} has {}, and {} in the sequential program",
                run.variant,
                found[node],
                expected[node],
            );
        }
    }
    Ok(())
}

fn main() -> Result<()> {
    let args = Args::parsed()?;
    let outcome = args.launch.job()?.run(async |world| run(&world, &args).await)?;
    if outcome.rank != 0 {
        return Ok(());
    }
    let Args { nodes, degree, remote, steps, .. } = args;
    writeln!(
        io::stdout(),
        "{} processes, each with {nodes} nodes of each kind; {degree} neighbours each, {remote} % \
         of them remote; {steps} steps",
        outcome.processes
    )?;
    let (expected, time) = sequential::simulate(&args.shape(outcome.processes), steps);
    for run in &outcome.runs {
        compare(run, &expected).context("the result is wrong")?;
    }
    let rows = outcome.runs.iter().map(|run| (run.variant.to_string(), run.measured));
    print_table(time, &rows.collect::<Vec<_>>())?;
    writeln!(io::stdout(), "all results are those of the sequential program")?;
    Ok(())
}
