//! The kernel IS, integer sort, of the NAS Parallel Benchmarks: processes rank small integers
//! together, ten times. The rank of a key is its place in the order of all keys.
//!
//! Two ways give the same ranks. By `keys`, as in NAS's own program, the processes agree on ranges
//! of values with about as many keys each, and each key is stored to the process that has its
//! range, all keys for one process at once. By `counts`, each process counts how many of its own
//! keys have each value, and stores the counts instead: these are fewer than keys, as long as there
//! are few processes.
//!
//! The result is verified by the rules of the benchmark. In each iteration five keys must have the
//! ranks that the benchmark gives; and in the end all keys are moved to where their ranks say, and
//! must be in order then.
//!
//! The kernel is described in D. H. Bailey et al.: "The NAS Parallel Benchmarks", NASA Technical
//! Report RNR-94-007 (1994). Parameters and ranks are those of the NAS Parallel Benchmarks 3.
//!
//! ```text
//! cargo run --release --example is
//! cargo run --release --example is -- --processes 2 --class A --way counts
//! cargo run --release --example is -- --class S --threads 3 --device udp:127.0.0.1:0
//! ```

mod by_counts;
mod by_keys;
#[path = "../nas/mod.rs"]
mod nas;
mod order;
mod problem;
mod ranks;
mod sequential;
#[path = "../spmd/mod.rs"]
mod spmd;
mod ways;

use std::io::{self, Write};

use anyhow::{Result, ensure};
use clap::{Parser, ValueEnum};
use doorbell::splitc::{BoxError, World};

use nas::Class;
use problem::{ITERATIONS, Problem, TESTS};
use spmd::{Launch, Measured, Stopwatch, print_table};
use ways::{Ranker, Way};

#[derive(Parser)]
#[command(
    about = "Processes rank integers together: the kernel IS of the NAS Parallel Benchmarks, \
                   in Split-C"
)]
struct Args {
    /// The problem class, which says how many keys there are: 2¹⁶, 2²⁰ or 2²³
    #[arg(long, default_value = "W", ignore_case = true)]
    class: Class,

    /// The only way to run; without this flag, one after the other
    #[arg(long)]
    way: Option<Way>,

    #[command(flatten)]
    launch: Launch,
}

/// The results that a process returns.
struct Outcome {
    rank: usize,
    processes: usize,
    runs: Vec<Run>,
}

/// The results of one way, which are the same at all processes.
struct Run {
    way: Way,
    measured: Measured,
    /// How many tests of ranks have passed.
    passed: u32,
    /// Whether the keys were in order when they were where their ranks say.
    in_order: bool,
}

/// Ranks the keys in each way, as the program of each process.
async fn run(world: &World, args: &Args) -> Result<Outcome, BoxError> {
    let problem = Problem::new(args.class);
    let ways = args.way.as_ref().map_or(Way::value_variants(), std::slice::from_ref);
    let mut runs = Vec::new();
    for &way in ways {
        runs.push(run_way(world, &problem, way).await?);
    }
    Ok(Outcome { rank: world.rank(), processes: world.size(), runs })
}

/// Ranks the keys in one way. A collective call: all processes await it.
async fn run_way(world: &World, problem: &Problem, way: Way) -> Result<Run, BoxError> {
    let part = problem.part(world.rank(), world.size());
    let first = part.start;
    let mut keys = problem.make_keys(part);
    let mut ranker = Ranker::new(way, world, problem).await?;

    // The first time is not measured: caches are cold, and pages new.
    let mut watch = Stopwatch::start(world).await?;
    let (mut ranks, _) = ranker.rank(&keys, [0; TESTS], &mut watch).await?;
    let mut watch = Stopwatch::start(world).await?;
    let mut passed = 0;
    for iteration in 1..=ITERATIONS {
        problem.change_keys(&mut keys, first, iteration);
        let own = problem.tested_keys(&keys, first);
        let tested;
        (ranks, tested) = ranker.rank(&keys, own, &mut watch).await?;
        passed += ranks.test(problem, tested, iteration);
    }
    let measured = watch.stop(world).await?;

    ranker.free().await?;
    let passed = world.all_reduce(passed, |a, b| a + b).await?;
    let in_order = order::sort_and_check(ranks, world, &keys).await?;
    Ok(Run { way, measured, passed, in_order })
}

fn main() -> Result<()> {
    let args = Args::parse();
    let outcome = args.launch.job()?.run(async |world| run(&world, &args).await)?;
    if outcome.rank != 0 {
        return Ok(());
    }
    let problem = Problem::new(args.class);
    let (keys, values, processes) = (problem.keys(), problem.values(), outcome.processes);
    writeln!(
        io::stdout(),
        "IS, class {:?}: {processes} processes rank {keys} keys below {values}, {ITERATIONS} times",
        args.class
    )?;
    let (time, passed) = sequential::run(&problem);
    let rows = outcome.runs.iter().map(|run| (run.way.to_string(), run.measured));
    print_table(time, &rows.collect::<Vec<_>>())?;
    let tests = ITERATIONS * TESTS as u32;
    ensure!(passed == tests, "the sequential program passed {passed} of {tests} tests of ranks");
    for Run { way, measured, passed, in_order } in outcome.runs {
        let rate = f64::from(ITERATIONS) * keys as f64 / measured.time.as_secs_f64() / 1e6;
        writeln!(io::stdout(), "{way}: {rate:.1} million keys ranked a second")?;
        ensure!(passed == tests, "not verified, {way}: {passed} of {tests} tests of ranks passed");
        ensure!(in_order, "not verified, {way}: the keys are not in order where their ranks say");
    }
    writeln!(
        io::stdout(),
        "verified: {tests} tests of ranks passed each time, and the keys were in order"
    )?;
    Ok(())
}
