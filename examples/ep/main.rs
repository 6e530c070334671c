//! The kernel EP, embarrassingly parallel, of the NAS Parallel Benchmarks: processes make pairs of
//! Gaussian random numbers, and count in which of ten squares around the origin the pairs are.
//!
//! The processes share out the batches of random numbers, and each begins at its own place in the
//! sequence. They communicate once, in the end, to add up what they have found: an `all_reduce`.
//! So this example shows how fast the processors are together, and nothing of the network.
//!
//! The result is verified by the rules of the benchmark: the sums of the numbers must be those that
//! the benchmark gives, within 10⁻⁸. Moreover, the counts must be those of a sequential program.
//!
//! The kernel is described in D. H. Bailey et al.: "The NAS Parallel Benchmarks", NASA Technical
//! Report RNR-94-007 (1994). Parameters and sums are those of the NAS Parallel Benchmarks 3.
//!
//! ```text
//! cargo run --release --example ep
//! cargo run --release --example ep -- --processes 2 --class W
//! cargo run --release --example ep -- --class S --threads 3 --device udp:127.0.0.1:0
//! ```

mod deviates;
#[path = "../nas/mod.rs"]
mod nas;
#[path = "../spmd/mod.rs"]
mod spmd;
mod verification;

use std::io::{self, Write};
use std::time::Instant;

use anyhow::{Result, ensure};
use clap::Parser;
use doorbell::splitc::{BoxError, World};

use deviates::{BATCH, SQUARES, Tally};
use nas::Class;
use spmd::{Launch, Measured, Stopwatch, print_table};
use verification::{uniform_pairs, verify};

#[derive(Parser)]
#[command(about = "Processes make Gaussian random numbers: the kernel EP of the NAS Parallel \
                   Benchmarks, in Split-C")]
struct Args {
    /// The problem class, which says how many pairs of random numbers are tried: 2²⁴, 2²⁵ or 2²⁸
    #[arg(long, default_value = "S", ignore_case = true)]
    class: Class,

    #[command(flatten)]
    launch: Launch,
}

/// The results that a process returns.
struct Outcome {
    rank: usize,
    processes: usize,
    measured: Measured,
    /// The tally of all processes' batches.
    tally: Tally,
}

/// Makes this process's share of the numbers, as the program of each process.
async fn run(world: &World, class: Class) -> Result<Outcome, BoxError> {
    let (rank, size) = (world.rank() as u64, world.size() as u64);
    let batches = uniform_pairs(class) / BATCH;
    let mut watch = Stopwatch::start(world).await?;
    let own = watch.compute(|| Tally::of(rank * batches / size..(rank + 1) * batches / size));
    let [x, y] = world.all_reduce(own.sums, |a, b| [a[0] + b[0], a[1] + b[1]]).await?;
    let add = |a: [u64; SQUARES], b: [u64; SQUARES]| std::array::from_fn(|at| a[at] + b[at]);
    let counts = world.all_reduce(own.counts, add).await?;
    let measured = watch.stop(world).await?;
    let tally = Tally { sums: [x, y], counts };
    Ok(Outcome { rank: world.rank(), processes: world.size(), measured, tally })
}

fn main() -> Result<()> {
    let Args { class, launch } = Args::parse();
    let outcome = launch.job()?.run(async |world| run(&world, class).await)?;
    if outcome.rank != 0 {
        return Ok(());
    }
    let (tried, tally) = (uniform_pairs(class), outcome.tally);
    writeln!(
        io::stdout(),
        "EP, class {class:?}: {} processes try {tried} pairs",
        outcome.processes
    )?;
    let start = Instant::now();
    let expected = Tally::of(0..tried / BATCH);
    let time = start.elapsed();
    print_table(time, &[("ep".to_owned(), outcome.measured)])?;
    let rate = 2.0 * tried as f64 / outcome.measured.time.as_secs_f64() / 1e6;
    writeln!(io::stdout(), "ep: {rate:.1} million random numbers a second")?;
    verify(class, &tally)?;
    let (counts, others) = (tally.counts, expected.counts);
    ensure!(counts == others, "not verified: the squares have {counts:?} pairs, not {others:?}");
    writeln!(
        io::stdout(),
        "verified: {} pairs of Gaussian numbers, whose sums are right",
        tally.pairs()
    )?;
    Ok(())
}
