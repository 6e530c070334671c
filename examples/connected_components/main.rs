//! Connected components: processes find which nodes of a random mesh are connected to each other.
//!
//! Each process has consecutive nodes of the mesh, and their edges.
//!
//! 1. Each process finds the components of its own part, without the others.
//! 2. What is left are edges between components of different processes: as many as a surface has,
//!    where the mesh is a volume. The processes merge these components in rounds, in lock step. In
//!    a round, each component is put under its least neighbour, by an atomic `store_min`; pointers
//!    jump until all lead to roots; and each edge is replaced by one between roots.
//! 3. Each process gives its nodes the labels that their components have got.
//!
//! The algorithm follows A. Krishnamurthy, S. S. Lumetta, D. E. Culler and K. Yelick: "Connected
//! Components on Distributed Memory Machines", in Parallel Algorithms: Third DIMACS Implementation
//! Challenge (1994), where it is written in Split-C. The result is compared with that of a
//! sequential program, a union-find on the whole mesh.
//!
//! Three lines to read first are in `together.rs`: `labels.private()`, by which a process works on
//! its own part as a slice, `labels.at(…).store_min(…)`, by which components are merged, and
//! `labels.gather(…)`, by which a process looks up many labels at once.
//!
//! ```text
//! cargo run --release --example connected_components
//! cargo run --release --example connected_components -- --processes 2 --dimensions 3 --side 100
//! cargo run --release --example connected_components -- --quick --device udp:127.0.0.1:0
//! ```

mod alone;
mod mesh;
#[path = "../spmd/mod.rs"]
mod spmd;
mod together;

use std::io::{self, Write};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use doorbell::splitc::{BoxError, World};

use mesh::Mesh;
use spmd::{Launch, Measured, Stopwatch, print_table};

#[derive(Parser)]
#[command(about = "Processes find the connected components of a random mesh, in Split-C")]
struct Args {
    /// How many nodes are along each dimension of the mesh
    #[arg(long, default_value_t = 1500, value_parser = clap::value_parser!(u32).range(1..))]
    side: u32,

    /// How many dimensions the mesh has
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=3))]
    dimensions: u32,

    /// How many per cent of the mesh's edges are there
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(..=100))]
    percent: u64,

    /// Programs with equal seeds make equal meshes
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// A small side, in place of the number above
    #[arg(long, conflicts_with = "side")]
    quick: bool,

    #[command(flatten)]
    launch: Launch,
}

impl Args {
    fn mesh(&self) -> Mesh {
        let Args { side, dimensions, percent, seed, .. } = *self;
        let side = if self.quick { 30 } else { side };
        Mesh { side, dimensions, percent, seed }
    }
}

/// The results that a process returns.
struct Outcome {
    rank: usize,
    processes: usize,
    measured: Measured,
    /// In how many rounds the processes merged components.
    rounds: u32,
    /// The labels of all nodes at process 0, and none at the others.
    labels: Vec<u32>,
}

/// Finds the components, as the program of each process.
async fn run(world: &World, mesh: Mesh, nodes: u32) -> Result<Outcome, BoxError> {
    let labels = world.blocked(nodes as usize).await?;
    let first = labels.own_indices().next().map_or(nodes, |first| first as u32);
    let part = mesh.part(first..first + labels.own_len() as u32);
    let mut watch = Stopwatch::start(world).await?;
    let rounds = together::find(world, &part, &labels, &mut watch).await?;
    let measured = watch.stop(world).await?;
    let own = labels.private().await?.to_vec();
    let labels = world.gather_vec(0, &own).await?.unwrap_or_default().concat();
    Ok(Outcome { rank: world.rank(), processes: world.size(), measured, rounds, labels })
}

fn main() -> Result<()> {
    let args = Args::parse();
    let mesh = args.mesh();
    let nodes = mesh.nodes().context(
        "that many nodes have numbers beyond 32 bits: choose fewer with --side or --dimensions",
    )?;
    let outcome = args.launch.job()?.run(async |world| run(&world, mesh, nodes).await)?;
    if outcome.rank != 0 {
        return Ok(());
    }
    let Outcome { processes, measured, rounds, labels, .. } = outcome;
    writeln!(
        io::stdout(),
        "{processes} processes find components of {nodes} nodes in {} dimensions, with {} % of \
         their edges",
        mesh.dimensions,
        mesh.percent
    )?;
    let whole = mesh.part(0..nodes);
    let mut expected = vec![0; nodes as usize];
    let start = Instant::now();
    alone::find(&whole, &mut expected);
    let time = start.elapsed();
    print_table(time, &[("components".to_owned(), measured)])?;
    let rate = f64::from(nodes) / measured.time.as_secs_f64() / 1e6;
    writeln!(
        io::stdout(),
        "components: {rate:.1} million nodes a second, merged in {rounds} rounds"
    )?;
    if let Some(node) = labels.iter().zip(&expected).position(|(label, expected)| label != expected)
    {
        let (label, expected) = (labels[node], expected[node]);
        anyhow::bail!("not verified: node {node} has the label {label}, and must have {expected}");
    }
    ensure!(
        labels.len() == expected.len(),
        "not verified: there are labels of {} nodes",
        labels.len()
    );
    let count = (0..nodes).zip(&expected).filter(|(node, label)| node == *label).count();
    writeln!(io::stdout(), "verified: {count} components, those of the sequential program")?;
    Ok(())
}
