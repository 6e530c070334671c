//! Running a program: as threads, as processes of one machine, or as a member of a world that
//! others have started.
//!
//! `member` runs the program in one process, and every kind of job comes down to it. `threads`
//! starts many members in one process, `processes` starts processes of this machine, and `launched`
//! joins the job of a launcher. `secret` makes the key of a job, and `error` has the errors of all of
//! them. A job is given a program and a configuration, and returns what the program returns.

mod error;
mod launched;
mod member;
mod processes;
mod program;
mod secret;
mod threads;

use std::env::VarError;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use doorbell_job::Place;
pub use error::{BoxError, RunError};
use program::Program;

use crate::config::{Carrier, Config};
use crate::world::{Membership, World};
use doorbell_verbs::floor::locked;

/// A way to run a program: the kind and number of its processes, their device, and the
/// configuration of their world.
///
/// ```
/// use doorbell_splitc::Job;
///
/// let sum = Job::threads(4).run(async |world| {
///     Ok(world.all_reduce(world.rank(), |a, b| a + b).await?)
/// })?;
/// assert_eq!(sum, 6);
/// # Ok::<(), doorbell_splitc::RunError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing runs before `run`"]
pub struct Job {
    mode: Mode,
    device: Option<String>,
    config: Config,
}

#[derive(Clone, Debug)]
enum Mode {
    Threads(usize),
    Processes(usize),
    Member(Membership),
    Launched,
}

/// Runs a program in every process of a world that environment variables describe: see
/// [`Job::from_environment`]. Returns what the program returned in process 0 or, for a member of a
/// world that others started, in this process.
///
/// ```
/// doorbell_splitc::run(async |world| {
///     println!("I am process {} of {}", world.rank(), world.size());
///     Ok(())
/// })?;
/// # Ok::<(), doorbell_splitc::RunError>(())
/// ```
///
/// # Errors
/// When a process can't join, fails or panics.
pub fn run<T, F>(program: F) -> Result<T, RunError>
where
    T: Send,
    F: AsyncFn(World) -> Result<T, BoxError> + Sync,
{
    Job::from_environment()?.run(program)
}

impl Job {
    fn new(mode: Mode) -> Self {
        Self { mode, device: None, config: Config::default() }
    }

    /// A job of `count` threads of this process, each of which is a process of the world.
    ///
    /// From nine threads on, threads share NICs, up to 32 threads each, and one piece of memory holds
    /// the heaps of all. So descriptors, addresses and memory do not grow with the square of the
    /// number of threads.
    pub fn threads(count: usize) -> Self {
        Self::new(Mode::Threads(count))
    }

    /// A job of `count` processes of this machine. The calling process is process 0, and starts the
    /// others with the same program and arguments. They run from the beginning of `main` to this
    /// job, and end with it.
    ///
    /// The processes meet over pairs of sockets: each process inherits one from process 0, by which
    /// it hears the key of the world and the addresses of all. No name and no port leads there, so
    /// another user of the machine can neither take part nor disturb the start. The variables
    /// `DOORBELL_JOB_…` tell a process its rank and the number of its descriptor. They are removed
    /// from the environment when the job runs, unless the process has other threads by then.
    pub fn processes(count: usize) -> Self {
        Self::new(Mode::Processes(count))
    }

    /// A job that makes this process a member of a world that others started: `rank` is its rank,
    /// and `addresses` are the addresses of all processes in the order of their ranks. Unless all of
    /// them are of this host, the members must be given a [key](Config::key).
    pub fn member(rank: usize, addresses: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let addresses = addresses.into_iter().map(Into::into).collect();
        Self::new(Mode::Member(Membership { rank, addresses, device: None }))
    }

    /// The job that environment variables describe:
    ///
    /// | variable | |
    /// |---|---|
    /// | `DOORBELL_RANK`, `DOORBELL_ADDRESSES` | the rank of this process, and the addresses of all, with commas between: a [member](Self::member) |
    /// | `DOORBELL_RANK`, `DOORBELL_SIZE`, `DOORBELL_RENDEZVOUS`, `DOORBELL_SECRET`; or those of a launcher | a process of a job: see [`doorbell_job`] |
    /// | `DOORBELL_PROCESSES` | how many [processes](Self::processes) |
    /// | `DOORBELL_THREADS` | how many [threads](Self::threads); as many as there are processors, if nothing is said |
    /// | `DOORBELL_DEVICE` | the [device](Self::device); for processes that a launcher has started, several with commas between, by preference: `shm,udp` if nothing is said |
    /// | `DOORBELL_INTERFACE`, `DOORBELL_ROUTES` | the interface of [devices](doorbell_job::Devices) that are named without one; whether each process prints by which device it reaches the others |
    /// | `DOORBELL_KEY` | the [key](Config::key) of members, a hexadecimal number of 64 bits; `head -c 8 /dev/urandom \| od -An -tx8 \| tr -d ' '` draws one |
    /// | `DOORBELL_SPIN` | for how many microseconds a process that waits [spins](Config::spin) |
    /// | `DOORBELL_WITHIN` | how many seconds all processes together may take to [start](Config::start) |
    /// | `DOORBELL_STALL` | after how many seconds a process that waits [reports](Config::stall) for whom |
    /// | `DOORBELL_CARRIER` | the [carrier](crate::Carrier): mapped, one-sided, messages, mixed |
    ///
    /// # Errors
    /// When a variable has a value that makes no sense.
    pub fn from_environment() -> Result<Self, RunError> {
        let mut job = match (number("DOORBELL_RANK")?, text("DOORBELL_ADDRESSES")?) {
            (Some(rank), Some(addresses)) => Self::member(rank, addresses.split(',')),
            (None, Some(found)) => {
                let expected = "DOORBELL_RANK must say which of these this process is";
                let variable = "DOORBELL_ADDRESSES";
                return Err(RunError::Environment { variable, found, expected });
            }
            _ if Place::is_given()? => Self::new(Mode::Launched),
            _ => match (count("DOORBELL_PROCESSES")?, count("DOORBELL_THREADS")?) {
                (Some(count), _) => Self::processes(count),
                (None, Some(count)) => Self::threads(count),
                (None, None) => Self::threads(processors()),
            },
        };
        job.device = text("DOORBELL_DEVICE")?;
        let environment =
            |variable, found, expected| RunError::Environment { variable, found, expected };
        if let Some(found) = text("DOORBELL_KEY")? {
            let key = u64::from_str_radix(found.trim(), 16);
            // What was mistyped is a secret nearly.
            let wrong = |_| {
                let found = format!("{} characters, not shown here", found.chars().count());
                let expected = "it must be a hexadecimal number of at most 16 digits, without 0x";
                environment("DOORBELL_KEY", found, expected)
            };
            job.config.key = key.map_err(wrong)?;
        }
        if let Some(micros) = number("DOORBELL_SPIN")? {
            job.config.spin = Duration::from_micros(micros as u64);
        }
        if let Some(seconds) = number("DOORBELL_WITHIN")? {
            job.config.start = Duration::from_secs(seconds as u64);
        }
        if let Some(seconds) = number("DOORBELL_STALL")? {
            job.config.stall = Duration::from_secs(seconds as u64);
        }
        if let Some(found) = text("DOORBELL_CARRIER")? {
            let carrier = found.parse();
            let expected = "mapped, one-sided, messages, or mixed";
            let wrong = |_| environment("DOORBELL_CARRIER", found, expected);
            job.config.carrier = Some(carrier.map_err(wrong)?);
        }
        Ok(job)
    }

    /// Sets the device that each process opens, or several [devices](doorbell_job::Devices) for
    /// processes that a launcher has started. Threads and processes open `shm` by default, and
    /// can use `udp:127.0.0.1:0` as well. A member opens what its address says.
    pub fn device(self, device: impl Into<String>) -> Self {
        Self { device: Some(device.into()), ..self }
    }

    /// Sets the configuration of the world.
    pub fn config(self, config: Config) -> Self {
        Self { config, ..self }
    }

    /// Sets the carrier of operations on the memory of other processes: see [`Config::carrier`].
    pub fn carrier(mut self, carrier: Carrier) -> Self {
        self.config.carrier = Some(carrier);
        self
    }

    /// Sets how long a process may be silent before it is taken for dead: see [`Config::patience`].
    pub fn patience(mut self, patience: Duration) -> Self {
        self.config.patience = patience;
        self
    }

    /// Runs a program in every process of the world. When all have returned without an error, and
    /// all operations of all processes are done, `run` returns what the program returned in process
    /// 0 or, for a [member](Self::member), in this process.
    ///
    /// The program may return errors of any type; [`RunError`] says which one `run` returns. When a
    /// process ends with an error, the operations and collectives that others have under way with
    /// it end with an error, too, as they do when a process dies.
    ///
    /// # Errors
    /// When a process can't join, fails or panics.
    pub fn run<T, F>(self, program: F) -> Result<T, RunError>
    where
        T: Send,
        F: AsyncFn(World) -> Result<T, BoxError> + Sync,
    {
        if let Mode::Threads(count) | Mode::Processes(count) = self.mode
            && !(1..=MOST).contains(&count)
        {
            return Err(RunError::Count { count, most: MOST });
        }
        // In a job of threads, all run in this process, and what the others return is dropped.
        let many = matches!(self.mode, Mode::Threads(_));
        let returned = Mutex::new(None);
        let keeps = async |world: World| {
            let counts = !many || world.rank() == 0;
            let value = program(world).await?;
            if counts {
                *locked(&returned) = Some(value);
            }
            Ok(())
        };
        self.run_kept(&|world| Box::pin(keeps(world)))?;
        let returned = returned.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(returned.expect("a program that ends without an error has returned"))
    }

    /// Runs a program as [`run`](Self::run) does. All that is below this is compiled once, and not
    /// again for each program.
    fn run_kept(self, program: Program<'_>) -> Result<(), RunError> {
        match self.mode {
            Mode::Threads(count) => {
                threads::run(count, self.device.as_deref(), self.config, program)
            }
            Mode::Processes(count) => {
                processes::run(count, self.device.as_deref(), self.config, program)
            }
            Mode::Member(membership) => {
                let membership = Membership { device: self.device, ..membership };
                member::run(&membership, &self.config, program)
            }
            Mode::Launched => match launched::take_place(&self.config)? {
                Some(place) => launched::run(place, self.device.as_deref(), self.config, program),
                // The variables are gone that said so.
                None => threads::run(1, self.device.as_deref(), self.config, program),
            },
        }
    }
}

/// The most processes of a job on one machine.
const MOST: usize = 4096;

/// How many processors this process may use.
fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The value of a variable; `None` if it is not set, or empty.
fn text(variable: &'static str) -> Result<Option<String>, RunError> {
    match std::env::var(variable) {
        Ok(text) => Ok(Some(text).filter(|text| !text.is_empty())),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(found)) => {
            let found = match variable {
                // What was garbled is nearly the key.
                "DOORBELL_KEY" => format!("{} bytes, not shown here", found.len()),
                _ => found.to_string_lossy().into_owned(),
            };
            Err(RunError::Environment { variable, found, expected: "it must be text in UTF-8" })
        }
    }
}

fn count(variable: &'static str) -> Result<Option<usize>, RunError> {
    match number(variable)? {
        Some(count) if !(1..=MOST).contains(&count) => {
            let expected = "the job must have at least 1 process, and 4096 at most";
            Err(RunError::Environment { variable, found: count.to_string(), expected })
        }
        found => Ok(found),
    }
}

fn number(variable: &'static str) -> Result<Option<usize>, RunError> {
    let Some(found) = text(variable)? else { return Ok(None) };
    match found.parse() {
        Ok(number) => Ok(Some(number)),
        Err(_) => Err(RunError::Environment { variable, found, expected: "a decimal number" }),
    }
}
