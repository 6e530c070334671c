//! Jobs of processes of this machine, which the program starts itself.
//!
//! The process that is started first is process 0. It starts the others with its own arguments, and
//! with environment variables that say which process of which job each one is. Each process opens
//! its NIC, connects to a socket of process 0, reports the address of its NIC there, and gets the
//! addresses of all processes. The connection stays, so that each side notices when the other ends.

use std::io::{self, BufRead, BufReader, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use doorbell_job::SECONDARY;

use super::member::{joined, on_thread, open, play};
use super::{BoxError, RunError, secret, text};
use crate::config::Config;
use crate::world::{JoinError, LONGEST, World};

/// The environment variable with the job's name, which is the name of a socket, too. Only a process
/// that another has started has the variable.
const JOB: &str = "DOORBELL_JOB";
/// The environment variable with the rank of a process that another has started.
const RANK: &str = "DOORBELL_JOB_RANK";
/// The environment variable with the key of the job.
const KEY: &str = "DOORBELL_JOB_KEY";

/// Whether a job of processes has been run in this program.
static RAN: AtomicBool = AtomicBool::new(false);

/// How often process 0 looks, while it joins the world, whether another process has ended and, as
/// `AFTERMATH` says, how long it still tries to join when one has.
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);
const AFTERMATH: Duration = Duration::from_millis(100);

/// How long processes that still run may take to end when the job is over.
const GRACE: Duration = Duration::from_secs(10);

/// Runs a program in `count` processes. In a process that was started for the job, the function
/// does not return: the process exits here.
pub(super) fn run<T, F>(
    count: usize,
    device: Option<&str>,
    mut config: Config,
    program: &F,
) -> Result<T, RunError>
where
    T: Send,
    F: AsyncFn(World) -> Result<T, BoxError> + Sync,
{
    let device = device.unwrap_or("shm");
    if RAN.swap(true, Ordering::Relaxed) {
        return Err(RunError::SecondJob);
    }
    if let Some(job) = text(JOB) {
        let ended = started(&job, count, device, config, program);
        if let Err(why) = &ended {
            doorbell_job::report(&format!("doorbell: {why}\n"));
        }
        std::process::exit(match &ended {
            Ok(()) => 0,
            Err(why) if why.is_secondary() => SECONDARY,
            Err(_) => 1,
        });
    }
    config.key = secret();
    let job = format!("doorbell-job-{}-{:016x}", std::process::id(), secret());
    let failed = |what: &str| {
        let what = what.to_owned();
        move |why| RunError::Start { size: count, what, why }
    };
    let listener = address(&job).and_then(|address| UnixListener::bind_addr(&address));
    let listener = listener.map_err(failed("listening to a socket"))?;
    let started = Started::start(count, &job, config.key);
    let mut started = started.map_err(failed("starting this program again"))?;
    let played = std::thread::scope(|scope| {
        let (started, config) = (&mut started, &config);
        on_thread(scope, 0, move || {
            let join = async || {
                let nic = open(0, device, (config, count)).await?;
                let own = nic.address().to_string();
                let all = started.meet(&listener, own, config.start);
                // Where one has not reported, the others end, too, when their connections do.
                let all = all.inspect_err(|_| started.streams.clear())?;
                let joins = World::join_on(&nic, 0, &all, config);
                let joined = started.unless_one_ends(joins).await;
                joined.inspect_err(|_| started.streams.clear())
            };
            play(0, join, program)
        })
        .and_then(|thread| joined(0, thread.join()))
    });
    let ended = started.end(played.is_ok());
    match (played, ended) {
        // What a process has printed itself tells more than the notice of its end by process 0.
        (Err(why), Some((rank, status)))
            if why.is_secondary() && status.code() != Some(SECONDARY) =>
        {
            Err(RunError::Exited { rank, status })
        }
        (Err(why), _) => Err(why),
        (Ok(_), Some((rank, status))) => Err(RunError::Exited { rank, status }),
        (Ok(value), None) => Ok(value),
    }
}

/// The address of a job's socket, in the abstract namespace, which has no files.
fn address(job: &str) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(job)
}

/// Runs the program in a process that another has started.
fn started<T, F>(
    job: &str,
    count: usize,
    device: &str,
    mut config: Config,
    program: &F,
) -> Result<(), RunError>
where
    T: Send,
    F: AsyncFn(World) -> Result<T, BoxError> + Sync,
{
    let wrong = |variable, found| RunError::Environment {
        variable,
        found,
        expected: "a number, by the process that starts this one",
    };
    let found = text(RANK).unwrap_or_default();
    let rank: usize = found.parse().map_err(|_| wrong(RANK, found))?;
    let found = text(KEY).unwrap_or_default();
    config.key = u64::from_str_radix(&found, 16).map_err(|_| wrong(KEY, found))?;
    let config = &config;
    std::thread::scope(|scope| {
        on_thread(scope, rank, move || {
            let join = async || {
                let nic = open(rank, device, (config, count)).await?;
                let own = nic.address().to_string();
                let all = report(job, rank, &own).map_err(|why| JoinError::Missing {
                    rank: 0,
                    address: job.to_owned(),
                    within: config.start,
                    why: why.to_string(),
                })?;
                World::join_on(&nic, rank, &all, config).await
            };
            play(rank, join, program).map(drop)
        })
        .and_then(|thread| joined(rank, thread.join()))
    })
}

/// Reports the address of this process's NIC to process 0, and returns the addresses of all
/// processes.
fn report(job: &str, rank: usize, own: &str) -> io::Result<Vec<String>> {
    let mut stream = UnixStream::connect_addr(&address(job)?)?;
    writeln!(stream, "{rank} {own}")?;
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "process 0 has ended"));
    }
    // Process 0 sends nothing more. When it ends, so does this process.
    let watch = move || {
        let mut rest = String::new();
        let _ = reader.read_line(&mut rest);
        doorbell_job::report(&format!(
            "doorbell: process {rank} ends, since process 0 has ended\n"
        ));
        std::process::exit(SECONDARY);
    };
    std::thread::Builder::new().name("job".to_owned()).spawn(watch)?;
    Ok(line.trim_end().split(' ').map(str::to_owned).collect())
}

/// The processes that process 0 has started, and the connections to them.
struct Started {
    /// The processes in the order of their ranks, from 1 on.
    children: Vec<Child>,
    streams: Vec<UnixStream>,
}

impl Started {
    fn start(count: usize, job: &str, key: u64) -> io::Result<Self> {
        let program = std::env::current_exe()?;
        let mut started = Self { children: Vec::new(), streams: Vec::new() };
        for rank in 1..count {
            let child = Command::new(&program)
                .args(std::env::args_os().skip(1))
                .env(JOB, job)
                .env(RANK, rank.to_string())
                .env(KEY, format!("{key:x}"))
                .stdin(std::process::Stdio::null())
                .spawn();
            // If a process can't be started, those before it are killed when `started` is dropped.
            started.children.push(child?);
        }
        Ok(started)
    }

    /// Collects the addresses of all processes' NICs, and sends them to every process.
    fn meet(
        &mut self,
        listener: &UnixListener,
        own: String,
        within: Duration,
    ) -> Result<Vec<String>, JoinError> {
        let until = Instant::now() + within.min(LONGEST);
        let mut all = vec![own];
        all.resize(self.children.len() + 1, String::new());
        let missing = |all: &[String], why: String| {
            let rank = all.iter().position(String::is_empty).unwrap_or(0);
            let address = "an address that it has not told".to_owned();
            JoinError::Missing { rank, address, within, why }
        };
        let failed = |all: &[String], why: io::Error| missing(all, why.to_string());
        listener.set_nonblocking(true).map_err(|why| failed(&all, why))?;
        while self.streams.len() < self.children.len() {
            match listener.accept() {
                Ok((stream, _)) => {
                    let told = self.hear(stream, until).map_err(|why| failed(&all, why))?;
                    // A process that has ended instead is found below.
                    let Some(told) = told else { continue };
                    match all.get_mut(told.0).filter(|known| known.is_empty()) {
                        Some(known) => *known = told.1,
                        None => return Err(missing(&all, "two claim to be one process".into())),
                    }
                }
                Err(why) if why.kind() == io::ErrorKind::WouldBlock => {
                    if let Some(ended) = self.one_has_ended() {
                        return Err(ended);
                    }
                    if Instant::now() >= until {
                        return Err(missing(&all, "it did not report".to_owned()));
                    }
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(why) => return Err(failed(&all, why)),
            }
        }
        let line = all.join(" ");
        for mut stream in &self.streams {
            writeln!(stream, "{line}").map_err(|why| failed(&all, why))?;
        }
        Ok(all)
    }

    /// Reads the report of a process: its rank, and the address of its NIC; `None` if the process
    /// has ended instead. Keeps the connection.
    fn hear(&mut self, stream: UnixStream, until: Instant) -> io::Result<Option<(usize, String)>> {
        let left = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(left))?;
        let mut line = String::new();
        if BufReader::new(&stream).read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let told = line.trim_end().split_once(' ');
        let told = told.and_then(|(rank, address)| Some((rank.parse().ok()?, address.to_owned())));
        self.streams.push(stream);
        let told = told.map(Some);
        told.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a report makes no sense"))
    }

    /// Waits until this process has joined the world, or until one of the others, each of which has
    /// reported its address, has ended without having joined.
    async fn unless_one_ends<T>(
        &mut self,
        joins: impl Future<Output = Result<T, JoinError>>,
    ) -> Result<T, JoinError> {
        let ends = async {
            loop {
                if let Some(ended) = self.one_has_ended() {
                    // If that process had joined, this one joins as well, and learns the rest as a
                    // member of the world.
                    tokio::time::sleep(AFTERMATH).await;
                    return ended;
                }
                tokio::time::sleep(BETWEEN_LOOKS).await;
            }
        };
        tokio::select! {
            biased;
            joined = joins => joined,
            ended = ends => Err(ended),
        }
    }

    /// The error about a process that has ended, if one has: it will not join any more, even if it
    /// ended with success. Processes that ended by themselves come before those that ended because
    /// another had.
    fn one_has_ended(&mut self) -> Option<JoinError> {
        let by_itself = self.has_ended(|status| status.code() != Some(SECONDARY));
        let (rank, status) = by_itself.or_else(|| self.has_ended(|_| true))?;
        Some(JoinError::Ended { rank, status })
    }

    /// The first process that has ended with a status that `way` accepts.
    fn has_ended(&mut self, way: impl Fn(ExitStatus) -> bool) -> Option<(usize, ExitStatus)> {
        let mut all = self.children.iter_mut().enumerate();
        all.find_map(|(at, child)| match child.try_wait() {
            Ok(Some(status)) if way(status) => Some((at + 1, status)),
            _ => None,
        })
    }

    /// Waits for all processes to end. If a process has failed, or this one has, the others get
    /// [`GRACE`], and are killed when `self` is dropped. Returns the rank and the status of the
    /// first process that ended without success, if one did; processes that ended only because
    /// another had ended come last.
    fn end(mut self, succeeded: bool) -> Option<(usize, ExitStatus)> {
        let until = Instant::now() + GRACE;
        loop {
            let running = |child: &mut Child| matches!(child.try_wait(), Ok(None));
            let all_ended = !self.children.iter_mut().any(running);
            let by_itself =
                |status: ExitStatus| !status.success() && status.code() != Some(SECONDARY);
            let worst = self.has_ended(by_itself);
            let worst = worst.or_else(|| self.has_ended(|status| !status.success()));
            let time_is_over = (worst.is_some() || !succeeded) && Instant::now() >= until;
            if all_ended || time_is_over {
                return worst;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Started {
    /// Kills the processes that still run, and waits for their ends.
    fn drop(&mut self) {
        for child in &mut self.children {
            if matches!(child.try_wait(), Ok(None)) {
                let _ = child.kill();
            }
            let _ = child.wait();
        }
    }
}
