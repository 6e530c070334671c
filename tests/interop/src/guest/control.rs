//! The host's side of what is said over the agent's port; `agent.py` tells the words.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::Error;

use super::console::Console;

/// A command as far as is known.
#[derive(Clone, Default, Debug)]
pub struct Job {
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub status: Option<i32>,
}

/// What is known of the guest.
#[derive(Default, Debug)]
struct Known {
    ready: bool,
    gone: bool,
    started: u64,
    /// The commands that somebody still waits for.
    jobs: BTreeMap<u64, Job>,
}

/// What is said to the agent, and heard of it.
#[derive(Debug)]
pub struct Control {
    port: Mutex<UnixStream>,
    known: Mutex<Known>,
    news: Condvar,
    console: Arc<Console>,
}

/// The thread that hears; it ends with the guest.
#[derive(Debug)]
pub struct Reader(Option<JoinHandle<()>>);

impl Drop for Reader {
    fn drop(&mut self) {
        let ended = self.0.take().map(JoinHandle::join);
        if ended.is_some_and(|ended| ended.is_err()) && !std::thread::panicking() {
            panic!("the thread that hears the agent has panicked: it says why above");
        }
    }
}

impl Control {
    pub fn new(port: UnixStream, console: Arc<Console>) -> Result<(Arc<Self>, Reader), Error> {
        let failed = |what| move |source| Error::System { what, source };
        let hears = port.try_clone().map_err(failed("handing a socket on"))?;
        let (known, news) = (Mutex::default(), Condvar::new());
        let control = Arc::new(Self { port: Mutex::new(port), known, news, console });
        let own = Arc::clone(&control);
        let thread = std::thread::Builder::new().name("agent".to_owned());
        let thread = thread.spawn(move || own.hear(BufReader::new(hears)));
        let thread = thread.map_err(failed("starting a thread"))?;
        Ok((control, Reader(Some(thread))))
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().expect("nothing panics with it")
    }

    /// Waits until the agent is ready.
    pub fn ready(&self, at_most: Duration) -> Result<(), Error> {
        let known = self.wait(at_most, |known| known.ready || known.gone);
        let why = match *known {
            Known { ready: true, .. } => return Ok(()),
            Known { gone: true, .. } => "it has ended".to_owned(),
            _ => format!("it is not ready in {at_most:?}"),
        };
        drop(known);
        Err(Error::Boot { why, console: self.console.tail() })
    }

    /// Starts a command; returns its number.
    pub fn start(&self, command: &str) -> Result<u64, Error> {
        let number = {
            let mut known = self.known();
            known.started += 1;
            let number = known.started;
            known.jobs.insert(number, Job::default());
            number
        };
        let said = self.say(&format!("start {number} {}\n{command}", command.len()));
        said.map_err(|_| self.gone()).map(|()| number)
    }

    /// Sends all processes of a command a signal, unless it has ended.
    pub fn signal(&self, number: u64, signal: i32) {
        // A guest that is gone runs no commands.
        let _ = self.say(&format!("signal {number} {signal}\n"));
    }

    /// Nobody waits for a command any more.
    pub fn forget(&self, number: u64) {
        self.known().jobs.remove(&number);
    }

    /// What is known of a command by now.
    pub fn job(&self, number: u64) -> Job {
        self.known().jobs.get(&number).cloned().unwrap_or_default()
    }

    /// Waits until a command has ended, or what is known of it is enough. What is known then.
    pub fn follow(
        &self,
        number: u64,
        at_most: Duration,
        enough: impl Fn(&Job) -> bool,
    ) -> Result<Job, Error> {
        let known = self.wait(at_most, |known| {
            let job = known.jobs.get(&number);
            known.gone || job.is_none_or(|job| job.status.is_some() || enough(job))
        });
        let job = known.jobs.get(&number).cloned().unwrap_or_default();
        let gone = known.gone;
        drop(known);
        if gone && job.status.is_none() { Err(self.gone()) } else { Ok(job) }
    }

    /// Waits until one of two commands has ended. What is known of both then.
    pub fn follow_both(&self, numbers: [u64; 2], at_most: Duration) -> Result<[Job; 2], Error> {
        let job = |known: &Known, number| known.jobs.get(&number).cloned().unwrap_or_default();
        let ended =
            |known: &Known, number| known.jobs.get(&number).is_none_or(|job| job.status.is_some());
        let known = self.wait(at_most, |known| {
            known.gone || numbers.iter().any(|&number| ended(known, number))
        });
        let (jobs, gone) = (numbers.map(|number| job(&known, number)), known.gone);
        drop(known);
        if gone { Err(self.gone()) } else { Ok(jobs) }
    }

    /// The guest is there no more.
    fn gone(&self) -> Error {
        Error::Gone { console: self.console.tail() }
    }

    fn wait(&self, at_most: Duration, is_so: impl Fn(&Known) -> bool) -> MutexGuard<'_, Known> {
        let end = Instant::now() + at_most;
        let mut known = self.known();
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if is_so(&known) || left.is_zero() {
                return known;
            }
            known = self.news.wait_timeout(known, left).expect("nothing panics with it").0;
        }
    }

    fn say(&self, what: &str) -> io::Result<()> {
        self.port.lock().expect("nothing panics with it").write_all(what.as_bytes())
    }

    fn hear(&self, mut from: BufReader<UnixStream>) {
        while let Ok(Some(())) = self.hear_one(&mut from) {
            self.news.notify_all();
        }
        self.known().gone = true;
        self.news.notify_all();
    }

    /// Hears one message; none when there will be no more.
    fn hear_one(&self, from: &mut BufReader<UnixStream>) -> io::Result<Option<()>> {
        let mut line = String::new();
        if from.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let words: Vec<_> = line.split_whitespace().collect();
        let strange = || io::Error::new(io::ErrorKind::InvalidData, line.clone());
        let [verb, number, value] = words[..] else {
            self.known().ready |= words == ["ready"];
            return Ok(Some(()));
        };
        let number: u64 = number.parse().map_err(|_| strange())?;
        let value: i32 = value.parse().map_err(|_| strange())?;
        let mut bytes = Vec::new();
        if verb != "end" {
            bytes = vec![0; usize::try_from(value).map_err(|_| strange())?];
            from.read_exact(&mut bytes)?;
        }
        if let Some(job) = self.known().jobs.get_mut(&number) {
            match verb {
                "out" => job.stdout.extend(bytes),
                "err" => job.stderr.extend(bytes),
                _ => job.status = Some(value),
            }
        }
        Ok(Some(()))
    }
}
