//! Sample sort: processes sort random keys together. In the beginning, each process has a part of
//! the keys, in no order.
//!
//! 1. Each process shows all others some of its keys, the samples. All samples are sorted, and cut
//!    into as many equal pieces as there are processes. The keys at the cuts are the splitters.
//! 2. Between two splitters are the keys of one process. Every process stores its keys into an
//!    array that is spread over the processes, each key into the part of the process to which it
//!    belongs, and all keys for one process at once.
//! 3. Each process sorts its part of the array.
//!
//! The algorithm is that of W. D. Frazer and A. C. McKellar: "Samplesort: A Sampling Approach to
//! Minimal Storage Tree Sorting", Journal of the ACM 17 (1970). The result is compared with that of
//! `sort_unstable` on all keys.
//!
//! Three lines to read first are in `sort.rs`: `world.all_gather_vec(…)`, by which all processes
//! learn all samples, `world.span(…).store(…)`, by which keys go to their process, and
//! `sorted.private()`, behind which all stored keys are in, and this process's keys are a slice.
//!
//! ```text
//! cargo run --release --example sample_sort
//! cargo run --release --example sample_sort -- --processes 2 --keys 1000000
//! cargo run --release --example sample_sort -- --quick --threads 3 --device udp:127.0.0.1:0
//! ```

mod sort;
#[path = "../spmd/mod.rs"]
mod spmd;

use std::io::{self, Write};
use std::time::Instant;

use anyhow::{Result, ensure};
use clap::Parser;
use doorbell::splitc::{BoxError, Error, Spread, World};

use spmd::{Launch, Measured, Random, Stopwatch, print_table};

#[derive(Parser)]
#[command(about = "Processes sort random keys together, by sample sort, in Split-C")]
struct Args {
    /// How many keys there are, of all processes together
    #[arg(long, default_value_t = 4 << 20)]
    keys: usize,

    /// Programs with equal seeds sort equal keys
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// How many different keys there may be; without this flag, 2⁶⁴
    #[arg(long)]
    different: Option<u64>,

    /// Few keys, in place of the number above
    #[arg(long, conflicts_with = "keys")]
    quick: bool,

    #[command(flatten)]
    launch: Launch,
}

impl Args {
    /// The keys that a process has before they are sorted.
    fn keys_of(&self, rank: usize, processes: usize) -> Vec<u64> {
        let mut random = Random::new(&[self.seed, rank as u64]);
        let count = (rank + 1) * self.keys / processes - rank * self.keys / processes;
        let key = |_| match self.different {
            Some(different) => random.below(different),
            None => random.bits(),
        };
        (0..count).map(key).collect()
    }
}

/// The results that a process returns.
struct Outcome {
    rank: usize,
    processes: usize,
    measured: Measured,
    /// All keys in ascending order at process 0, and none at the others.
    sorted: Vec<u64>,
}

/// Sorts the keys and checks the result, as the program of each process.
async fn run(world: &World, args: &Args) -> Result<Outcome, BoxError> {
    let mut keys = args.keys_of(world.rank(), world.size());
    let before = Summary::of(world, &keys).await?;
    // An eighth more room than keys, since parts differ a little; and equal room for each process.
    let room = (args.keys + args.keys / 8).div_ceil(world.size());
    let sorted = world.blocked(room * world.size()).await?;
    let mut watch = Stopwatch::start(world).await?;
    let (sorted, own) = sort::sort(world, &mut keys, sorted, &mut watch).await?;
    let measured = watch.stop(world).await?;

    let own = own_keys(world, &sorted, own).await?;
    if Summary::of(world, &own).await? != before {
        return Err("there are other keys than before".into());
    }
    check_order(world, &own).await?;
    let sorted = world.gather_vec(0, &own).await?.unwrap_or_default().concat();
    Ok(Outcome { rank: world.rank(), processes: world.size(), measured, sorted })
}

/// The first `count` keys of this process's part.
async fn own_keys(world: &World, sorted: &Spread<u64>, count: usize) -> Result<Vec<u64>, Error> {
    if count == 0 {
        return Ok(Vec::new());
    }
    let room = sorted.len() / world.size();
    world.span(sorted.pointer(world.rank() * room)?, count).read().await
}

/// A summary of all processes' keys, which sorting does not change.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Summary {
    count: u64,
    sum: u64,
    xor: u64,
}

impl Summary {
    /// The summary of all processes' keys. A collective call: all processes await it.
    async fn of(world: &World, keys: &[u64]) -> Result<Self, Error> {
        let sum = keys.iter().copied().fold(0, u64::wrapping_add);
        let xor = keys.iter().fold(0, |all, key| all ^ key);
        let own = [keys.len() as u64, sum, xor];
        let add = |a: [u64; 3], b: [u64; 3]| {
            [a[0].wrapping_add(b[0]), a[1].wrapping_add(b[1]), a[2] ^ b[2]]
        };
        let [count, sum, xor] = world.all_reduce(own, add).await?;
        Ok(Self { count, sum, xor })
    }
}

/// Checks that this process's keys are in order, and that none of them is less than a key of the
/// processes before. A collective call: all processes await it.
async fn check_order(world: &World, own: &[u64]) -> Result<(), BoxError> {
    // A process without keys has nothing to compare with.
    let ends = own.first().zip(own.last()).map(|(first, last)| vec![*first, *last]);
    let ends = world.all_gather_vec(&ends.unwrap_or_default()).await?.concat();
    if own.is_sorted() && ends.is_sorted() {
        return Ok(());
    }
    Err("the keys are not in order".into())
}

fn main() -> Result<()> {
    let mut args = Args::parse();
    if args.quick {
        args.keys = 20_000;
    }
    ensure!(args.different != Some(0), "there must be a key that may be chosen");
    let outcome = args.launch.job()?.run(async |world| run(&world, &args).await)?;
    if outcome.rank != 0 {
        return Ok(());
    }
    let parts = (0..outcome.processes).map(|rank| args.keys_of(rank, outcome.processes));
    let mut expected = parts.collect::<Vec<_>>().concat();
    let start = Instant::now();
    expected.sort_unstable();
    let time = start.elapsed();
    ensure!(outcome.sorted == expected, "the result is not that of the sequential program");
    writeln!(io::stdout(), "{} processes sort {} keys together", outcome.processes, args.keys)?;
    print_table(time, &[("sample sort".to_owned(), outcome.measured)])?;
    writeln!(io::stdout(), "the result is that of the sequential program")?;
    Ok(())
}
