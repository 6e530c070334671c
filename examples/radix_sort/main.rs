//! Radix sort: processes sort random keys of 32 bits together, by one digit of eight bits after the
//! other, the least significant one first. A pass sorts by one digit:
//!
//! 1. Each process counts how many of its keys have each value of the digit.
//! 2. A scan over the processes tells each how many such keys the processes before it have, and a
//!    reduction how many there are. So each process knows the place of each of its keys.
//! 3. Each process stores its keys to their places in another array: all keys with the same digit
//!    at once, since their places are side by side.
//!
//! The algorithm is that of A. C. Dusseau, D. E. Culler, K. E. Schauser and R. P. Martin: "Fast
//! Parallel Sorting Under LogP: Experience with the CM-5", IEEE Transactions on Parallel and
//! Distributed Systems 7 (1996), where it is written in Split-C. The time is compared with that of
//! a radix sort of one process, and the result with that of `sort_unstable` on all keys.
//!
//! Three lines to read first are in `sort.rs`: `world.exclusive_scan(…)`, by which a process learns
//! where its keys go, `world.span(…).store(…)`, by which they go there, and `from.private()`,
//! behind which all stored keys are in, and this process's keys are a slice.
//!
//! ```text
//! cargo run --release --example radix_sort
//! cargo run --release --example radix_sort -- --processes 2 --keys 1000000
//! cargo run --release --example radix_sort -- --quick --threads 3 --device udp:127.0.0.1:0
//! ```

mod sort;
#[path = "../spmd/mod.rs"]
mod spmd;

use std::io::{self, Write};
use std::time::Instant;

use anyhow::{Result, ensure};
use clap::Parser;
use doorbell::splitc::{BoxError, World};

use spmd::{Launch, Measured, Random, Stopwatch, print_table};

#[derive(Parser)]
#[command(about = "Processes sort random keys together, by radix sort, in Split-C")]
struct Args {
    /// How many keys there are, of all processes together
    #[arg(long, default_value_t = 4 << 20, value_parser = clap::value_parser!(u32).range(1..))]
    keys: u32,

    /// Programs with equal seeds sort equal keys
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// How many different keys there may be; without this flag, 2³²
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    different: Option<u32>,

    /// Few keys, in place of the number above
    #[arg(long, conflicts_with = "keys")]
    quick: bool,

    #[command(flatten)]
    launch: Launch,
}

impl Args {
    /// How many keys all processes have together.
    fn count(&self) -> usize {
        if self.quick { 20_000 } else { self.keys as usize }
    }

    /// Draws the keys that a process has before they are sorted.
    fn keys_of(&self, rank: usize, count: usize) -> Vec<u32> {
        let mut random = Random::new(&[self.seed, rank as u64]);
        let below = self.different.map_or(1 << 32, u64::from);
        (0..count).map(|_| random.below(below) as u32).collect()
    }
}

/// The results that a process returns.
struct Outcome {
    rank: usize,
    processes: usize,
    measured: Measured,
    /// All keys before they were sorted, and after that, at process 0; none at the others.
    keys: [Vec<u32>; 2],
}

/// Sorts the keys, as the program of each process.
async fn run(world: &World, args: &Args) -> Result<Outcome, BoxError> {
    let mut keys = world.blocked(args.count()).await?;
    let mut other = world.blocked(args.count()).await?;
    let own = args.keys_of(world.rank(), keys.own_len());
    keys.private().await?.copy_from_slice(&own);
    keys.share().await?;
    let before = world.gather_vec(0, &own).await?.unwrap_or_default().concat();

    let mut watch = Stopwatch::start(world).await?;
    sort::sort(world, &mut keys, &mut other, &mut watch).await?;
    let measured = watch.stop(world).await?;

    let own = keys.private().await?.to_vec();
    let after = world.gather_vec(0, &own).await?.unwrap_or_default().concat();
    let keys = [before, after];
    Ok(Outcome { rank: world.rank(), processes: world.size(), measured, keys })
}

fn main() -> Result<()> {
    let args = Args::parse();
    let outcome = args.launch.job()?.run(async |world| run(&world, &args).await)?;
    if outcome.rank != 0 {
        return Ok(());
    }
    let Outcome { processes, measured, keys: [before, after], .. } = outcome;
    writeln!(io::stdout(), "{processes} processes sort {} keys of 32 bits together", before.len())?;
    let mut alone = before.clone();
    let start = Instant::now();
    sort::sort_alone(&mut alone);
    let time = start.elapsed();
    print_table(time, &[("radix sort".to_owned(), measured)])?;
    let rate = before.len() as f64 / measured.time.as_secs_f64() / 1e6;
    writeln!(io::stdout(), "radix sort: {rate:.1} million keys a second")?;

    let mut expected = before;
    expected.sort_unstable();
    ensure!(alone == expected, "not verified: the sequential radix sort has not sorted the keys");
    ensure!(after == expected, "not verified: the result is not that of a sequential sort");
    writeln!(io::stdout(), "verified: the keys are those from before, in order")?;
    Ok(())
}
