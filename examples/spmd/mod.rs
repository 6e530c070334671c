//! The common parts of the examples in Split-C: the flags that choose the processes, a stopwatch
//! that tells computation from communication, the table that is printed, and random numbers.

#[allow(dead_code, reason = "some examples draw no random numbers, or not in every way")]
mod random;

#[allow(unused_imports, reason = "some examples draw no random numbers")]
pub use random::Random;

use std::io::{self, Write};
use std::time::{Duration, Instant};

use doorbell::splitc::{Carrier, Error, Job, RunError, World};

// Flags that choose the processes of the program, and the device and carrier between them. (A
// documentation comment would be the first line of the program's help.)
#[derive(clap::Args)]
pub struct Launch {
    /// Run as this many processes of this machine
    #[arg(long, conflicts_with = "threads")]
    processes: Option<usize>,

    /// Run as this many threads of this process. Without this flag and `--processes` the
    /// environment decides (DOORBELL_PROCESSES, DOORBELL_RANK and others), and then the number of
    /// processors
    #[arg(long)]
    threads: Option<usize>,

    /// The device that each process opens: `shm`, or `udp:127.0.0.1:0`, for example
    #[arg(long)]
    device: Option<String>,

    /// How operations are carried to other processes: mapped, one-sided, messages or mixed
    #[arg(long)]
    carrier: Option<Carrier>,
}

impl Launch {
    /// The job that the flags ask for.
    pub fn job(&self) -> Result<Job, RunError> {
        let mut job = match (self.processes, self.threads) {
            (Some(count), _) => Job::processes(count),
            (None, Some(count)) => Job::threads(count),
            (None, None) => Job::from_environment()?,
        };
        if let Some(device) = &self.device {
            job = job.device(device);
        }
        if let Some(carrier) = self.carrier {
            job = job.carrier(carrier);
        }
        Ok(job)
    }
}

/// The time that a parallel program took, and the share that its processes spent on communication.
#[derive(Clone, Copy)]
pub struct Measured {
    pub time: Duration,
    /// The share of the time in which the processes did not compute, from 0 to 1: their average.
    pub communication: f64,
}

/// A stopwatch for a parallel program, and for its computation by itself. Everything else counts as
/// communication, waiting for other processes included.
pub struct Stopwatch {
    start: Instant,
    /// How long this process has computed so far. A program that can't time its computation by
    /// [`compute`](Self::compute) sets the duration itself.
    pub computing: Duration,
}

impl Stopwatch {
    /// Starts the stopwatch once all processes have called `start`.
    pub async fn start(world: &World) -> Result<Self, Error> {
        world.barrier().await?;
        Ok(Self { start: Instant::now(), computing: Duration::ZERO })
    }

    /// Runs a computation, and counts its time as such.
    pub fn compute<T>(&mut self, computation: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = computation();
        self.computing += start.elapsed();
        result
    }

    /// Stops the stopwatch once all processes have called `stop`. Every process gets the same
    /// result.
    pub async fn stop(self, world: &World) -> Result<Measured, Error> {
        world.barrier().await?;
        let time = self.start.elapsed();
        let both = [self.computing, time].map(|time| time.as_secs_f64());
        let [computing, all] = world.all_reduce(both, |a, b| [a[0] + b[0], a[1] + b[1]]).await?;
        let communication = (1.0 - computing / all).max(0.0);
        let longest = world.all_reduce(time.as_nanos() as u64, u64::max).await?;
        Ok(Measured { time: Duration::from_nanos(longest), communication })
    }
}

/// Prints a table of parallel programs beside the sequential program, which took `sequential`.
pub fn print_table(sequential: Duration, rows: &[(String, Measured)]) -> io::Result<()> {
    writeln!(io::stdout(), "{:<12}{:>10}{:>15}{:>10}", "", "time", "communication", "speed-up")?;
    writeln!(io::stdout(), "{:<12}{:>7.1} ms", "sequential", milliseconds(sequential))?;
    for (name, Measured { time, communication }) in rows {
        let speed_up = sequential.as_secs_f64() / time.as_secs_f64();
        let (time, percent) = (milliseconds(*time), 100.0 * communication);
        writeln!(io::stdout(), "{name:<12}{time:>7.1} ms{percent:>13.1} %{speed_up:>10.2}")?;
    }
    Ok(())
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
