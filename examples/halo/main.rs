//! Heat that spreads over a plate: a two-dimensional stencil, whose processes exchange the edges of
//! their blocks, the halo, by tagged messages after each step.
//!
//! The plate is a square of cells. Each step, every cell becomes the mean of its four neighbours;
//! the upper edge is kept hot, and the others cold. The processes divide the plate into blocks, as
//! square as may be. After each step, a process sends the outermost cells of its block to the
//! processes above, below, left and right, and receives theirs, all at the same time. In the end,
//! process 0 gathers all blocks, and compares them with the result of a sequential run, bit for
//! bit.
//!
//! ```text
//! cargo run --release --example halo
//! cargo run --release --example halo -- --members 6 --cells 500
//! cargo run --release --example halo -- --members 3 --cells 100 --device udp:127.0.0.1:0
//! ```
//!
//! By itself, the program is one process with several members, each a task. A launcher starts a
//! process for each member: `doorbell run -n 4 target/release/examples/halo`.

mod block;
mod launch;

use std::io::{self, Write};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use clap::Parser;
use doorbell::messages::collectives::Group;

use block::{Block, Division};

#[derive(Parser, Clone)]
#[command(about = "Heat that spreads over a plate: halo exchange by tagged messages")]
struct Args {
    /// Cells along each side of the plate
    #[arg(long, default_value_t = 240, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    cells: u32,

    /// Steps of all cells
    #[arg(long, default_value_t = 200)]
    steps: u32,

    /// Members of the group, if no launcher has started this process
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    members: u32,

    /// The device that each member opens
    #[arg(long, default_value = "shm")]
    device: String,
}

/// The tag of halos.
const HALO: u32 = 1;

/// Runs the program of one member. At the first member, returns the report of the run.
async fn run(group: Group, args: Args) -> Result<Option<String>> {
    let (cells, members) = (args.cells as usize, group.size());
    ensure!(cells >= members, "--cells {cells}: at least as many as there are members, {members}");
    let division = Division::new(cells, members);
    let mut block = Block::new(&division, group.rank());
    group.barrier().await?;
    let (start, mut waiting) = (Instant::now(), Duration::ZERO);
    for _ in 0..args.steps {
        block.step();
        let began = Instant::now();
        exchange(&group, &mut block).await?;
        waiting += began.elapsed();
    }
    group.barrier().await?;
    let time = start.elapsed();
    let share = waiting.as_secs_f64() / time.as_secs_f64().max(f64::MIN_POSITIVE);
    let shares = group.reduce(0, vec![share], |a, b| a + b).await?;
    let blocks = group.gather(0, block.to_bytes()).await?;
    group.leave().await;
    let (Some(shares), Some(blocks)) = (shares, blocks) else { return Ok(None) };
    let communication = 100.0 * shares[0] / members as f64;
    let said = verified(&args, &division, &blocks)?;
    Ok(Some(format!(
        "{members} members, {cells} × {cells} cells, {} steps: {:.1} ms, of which \
         {communication:.0} % is communication\n{said}",
        args.steps,
        time.as_secs_f64() * 1e3,
    )))
}

/// Sends the outermost cells of a block to the members around it, and receives theirs.
async fn exchange(group: &Group, block: &mut Block) -> Result<()> {
    let sides = block.sides();
    let edges = sides.iter().map(|(side, rank)| (*rank, block.edge(*side)));
    let came = group.exchange(HALO, edges.collect()).await?;
    for ((side, _), bytes) in sides.into_iter().zip(came) {
        block.set_rim(side, &bytes).context("a halo of another length")?;
    }
    Ok(())
}

/// Compares the blocks of all members with a plate that one member has by itself.
fn verified(args: &Args, division: &Division, blocks: &[Bytes]) -> Result<String> {
    let cells = args.cells as usize;
    let start = Instant::now();
    let mut whole = Block::new(&Division::new(cells, 1), 0);
    (0..args.steps).for_each(|_| whole.step());
    let time = start.elapsed().as_secs_f64() * 1e3;
    for (rank, bytes) in blocks.iter().enumerate() {
        let same = whole.part(division.place(rank)) == *bytes;
        ensure!(same, "not verified: the block of member {rank} is not that of a sequential run");
    }
    Ok(format!("verified: all cells are those of a sequential run, which took {time:.1} ms"))
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    let (device, members) = (args.device.clone(), args.members as usize);
    let said = launch::run(&device, members, move |group| run(group, args.clone())).await?;
    if let Some(said) = said {
        writeln!(io::stdout(), "{said}")?;
    }
    Ok(())
}
