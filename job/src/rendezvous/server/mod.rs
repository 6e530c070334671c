//! The service at which processes meet. Process 0 runs it, or the program that starts the
//! processes.
//!
//! `guests` has connections that have not proved yet that they belong to the job, and `roll`
//! records which processes have come, are done, or have ended. The service is told cards and
//! farewells over TCP, and tells every process all cards, or why the job can't begin.

mod guests;
mod roll;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use guests::Guests;
pub use roll::Standing;
use roll::{Arrival, Refusal, Roll};

use super::lines::{Lines, write};
use super::proof::{About, Side, holds, nonce, prove};
use super::{LONGEST, Terms, VERSION};
use crate::limits::check_descriptors;

/// How long somebody who has connected may take for the greeting.
const GREETING: Duration = Duration::from_secs(10);
/// How long a process may take to receive what it is told.
const TELLING: Duration = Duration::from_secs(10);
/// How many connections there may be, beside one for each process, that have proved nothing.
const STRANGERS: usize = 64;
/// How many descriptors the connection of a process takes, and how many others there are for
/// moments: those of connections that have just come.
const EACH: usize = 3;
const OTHERS: usize = 4;
/// The stack of a connection's thread.
const STACK: usize = 128 << 10;

/// The service, which runs until it is dropped.
#[derive(Debug)]
pub struct Service {
    shared: Arc<Shared>,
    address: SocketAddr,
}

#[derive(Debug)]
struct Shared {
    terms: Terms,
    roll: Mutex<Roll>,
    changed: Condvar,
    /// Held while processes are told something. It is taken before the roll is let go, so that they
    /// hear things in their order, and before the service ends.
    telling: Mutex<()>,
    stopped: AtomicBool,
    /// The threads that serve connections.
    threads: AtomicUsize,
    guests: Guests,
    /// How many messages the service has taken from processes and sent to them.
    messages: AtomicU64,
}

impl Service {
    /// Serves the processes of a job that connect to a listener.
    ///
    /// # Errors
    /// When the system refuses a thread, or this process may not have as many file descriptors as
    /// the connections take.
    pub fn start(listener: TcpListener, terms: Terms) -> io::Result<Self> {
        let what = format!("serving {} processes", terms.size);
        check_descriptors(EACH * terms.size + OTHERS, &what)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            roll: Mutex::new(Roll::new(terms.size)),
            changed: Condvar::new(),
            telling: Mutex::new(()),
            stopped: AtomicBool::new(false),
            threads: AtomicUsize::new(0),
            messages: AtomicU64::new(0),
            guests: Guests::new(terms.size + STRANGERS),
            terms,
        });
        let (accepts, waits) = (shared.clone(), shared.clone());
        thread("job-accept", move || accepts.accept(&listener))?;
        thread("job-wait", move || waits.wait_for_all())?;
        Ok(Self { shared, address })
    }

    /// The address that it listens to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address of this host by which a process of another host has come, if one has.
    pub fn seen_as(&self) -> Option<IpAddr> {
        self.shared.lock().seen_as()
    }

    /// How many messages the service has taken from processes and sent to them. One with the cards
    /// or texts of all counts once.
    pub fn messages(&self) -> u64 {
        self.shared.messages.load(Ordering::Relaxed)
    }

    /// How a process stands with the rendezvous.
    pub fn standing(&self, rank: usize) -> Standing {
        self.shared.lock().standing(rank)
    }

    /// The process whose connection was the first to end, before it was done and without naming
    /// another whose end was the reason; none if no process has ended so.
    pub fn first_ended(&self) -> Option<usize> {
        self.shared.lock().first_ended
    }

    /// Why the job can't begin, if it can't.
    pub fn failure(&self) -> Option<String> {
        self.shared.lock().failed.clone()
    }

    /// Unless the job has begun, has all processes that have come, and that come yet, end with an
    /// error.
    pub fn fail(&self, why: &str) {
        self.shared.fail(self.shared.lock(), why.to_owned());
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Relaxed);
        let roll = self.shared.lock();
        let _telling = self.shared.telling();
        for stream in roll.streams() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        drop(roll);
        self.shared.changed.notify_all();
        // Whoever accepts sees that it is to stop when somebody comes.
        let mut own = self.address;
        if own.ip().is_unspecified() {
            own.set_ip(match own {
                SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            });
        }
        let _ = TcpStream::connect_timeout(&own, Duration::from_secs(1));
    }
}

fn thread(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let thread = std::thread::Builder::new().name(name.to_owned()).stack_size(STACK);
    thread.spawn(body).map(drop)
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Roll> {
        self.roll.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn telling(&self) -> MutexGuard<'_, ()> {
        self.telling.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    fn count(&self, messages: usize) {
        self.messages.fetch_add(messages as u64, Ordering::Relaxed);
    }

    fn accept(self: &Arc<Self>, listener: &TcpListener) {
        let mut number = 0;
        loop {
            let accepted = listener.accept();
            if self.is_stopped() {
                return;
            }
            let Ok((stream, from)) = accepted else {
                // Most likely there are no descriptors left for the moment.
                std::thread::sleep(Duration::from_millis(20));
                continue;
            };
            number += 1;
            self.serve(number, stream, from);
        }
    }

    /// Starts the thread of a connection. Without one, the connection ends, and a process of the
    /// job tries again.
    fn serve(self: &Arc<Self>, number: u64, stream: TcpStream, from: SocketAddr) {
        // The thread of a connection that has made room for another ends soon, but not at once.
        let most = 2 * (self.terms.size + STRANGERS);
        if self.threads.load(Ordering::Relaxed) >= most
            || self.guests.enter(number, &stream, from).is_err()
        {
            return;
        }
        self.threads.fetch_add(1, Ordering::Relaxed);
        let shared = self.clone();
        let attends = move || {
            let from = SocketAddr::new(from.ip().to_canonical(), from.port());
            if let Err(why) = shared.attend(number, stream, from) {
                tracing::debug!(%from, %why, "a connection to the rendezvous ended");
            }
            shared.guests.leave(number);
            shared.threads.fetch_sub(1, Ordering::Relaxed);
        };
        if thread("job-member", attends).is_err() {
            self.guests.leave(number);
            self.threads.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Waits until all have come, and fails if they do not in time.
    fn wait_for_all(&self) {
        let until = Instant::now() + self.terms.within.min(LONGEST);
        let mut roll = self.lock();
        while !roll.complete && roll.failed.is_none() && !self.is_stopped() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let why = roll.missing(self.terms.within);
                return self.fail(roll, why);
            }
            roll = self.changed.wait_timeout(roll, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Tells all who have come why not all can come.
    fn fail(&self, mut roll: MutexGuard<'_, Roll>, why: String) {
        if roll.complete || roll.failed.is_some() {
            return;
        }
        roll.failed = Some(why.clone());
        self.changed.notify_all();
        self.tell(roll, &[format!("failed {why}")]);
    }

    /// Tells lines to all processes that are there, in the order in which the roll has changed.
    fn tell(&self, roll: MutexGuard<'_, Roll>, lines: &[String]) {
        if lines.is_empty() {
            return;
        }
        let streams = roll.streams();
        let _telling = self.telling();
        drop(roll);
        self.count(streams.len() * lines.len());
        let text: String = lines.iter().flat_map(|line| [line, "\n"]).collect();
        for stream in &streams {
            // One that does not take it in time hears no more.
            if write(stream, &text, Instant::now() + TELLING).is_err() {
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
    }

    /// Serves a connection until it ends.
    fn attend(&self, number: u64, stream: TcpStream, from: SocketAddr) -> io::Result<()> {
        let mut lines = Lines::new(stream)?;
        let until = Instant::now() + GREETING;
        let Some(rank) = self.greet(number, &mut lines, from, until)? else { return Ok(()) };
        while let Ok(line) = lines.read(None) {
            self.count(1);
            let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
            let mut roll = self.lock();
            let told = match word {
                "bye" => roll.is_done(rank),
                "tell" => roll.take(rank, rest).into_iter().collect(),
                "after" => {
                    rest.parse().map_or_else(|_| Vec::new(), |other| roll.ends_after(rank, other))
                }
                _ => break,
            };
            self.tell(roll, &told);
            if word == "after" {
                self.count(1);
                let _telling = self.telling();
                if lines.write("noted", Instant::now() + TELLING).is_err() {
                    break;
                }
            }
        }
        let mut roll = self.lock();
        let told = roll.has_ended(rank);
        self.tell(roll, &told);
        Ok(())
    }

    /// Lets a process prove that it belongs to the job, and enters it. None if it does not.
    fn greet(
        &self,
        number: u64,
        lines: &mut Lines,
        from: SocketAddr,
        until: Instant,
    ) -> io::Result<Option<usize>> {
        let hello = lines.read(Some(until))?;
        let (rank, size, theirs) = match greeting(&hello) {
            Ok(greeting) => greeting,
            Err(why) => {
                lines.write(&format!("refused {why}"), until)?;
                return Ok(None);
            }
        };
        let own = nonce();
        let port = lines.stream().local_addr()?.port();
        let about = About { rank, size, port, nonces: [theirs, &own] };
        let proof = prove(&self.terms.secret, Side::Service, about);
        lines.write(&format!("nonce {own} {proof}"), until)?;
        let answer = match lines.read(Some(until)) {
            // A process leaves a service that does not prove that it has the same secret.
            Err(why) if why.kind() == io::ErrorKind::UnexpectedEof => String::new(),
            answer => answer?,
        };
        let parts = answer.strip_prefix("card ").and_then(|rest| rest.split_once(' '));
        let proved =
            parts.filter(|(proof, _)| holds(proof, &self.terms.secret, Side::Process, about));
        let Some((_, card)) = proved else {
            self.lock().stranger = Some((rank, from));
            lines.write("refused the secret of the job is another one", until)?;
            return Ok(None);
        };
        self.guests.leave(number);
        lines.trust();
        // The greeting has one message of the service and two of the process.
        self.count(3);
        match self.enter(&Arrival { rank, size, card, from }, lines.stream().try_clone()?) {
            Ok(()) => Ok(Some(rank)),
            Err(why) => {
                lines.write(&format!("refused {why}"), until)?;
                Ok(None)
            }
        }
    }

    /// Enters a process, and tells all their cards when it is the last one. The error is for the
    /// process.
    fn enter(&self, arrival: &Arrival<'_>, stream: TcpStream) -> Result<(), String> {
        let mut roll = self.lock();
        match roll.enter(arrival, stream) {
            Ok(all) => {
                if all.is_some() {
                    self.changed.notify_all();
                }
                self.tell(roll, all.as_slice());
                Ok(())
            }
            Err(Refusal { why, ends_job }) => {
                if ends_job {
                    self.fail(roll, why.clone());
                }
                Err(why)
            }
        }
    }
}

/// Parses the first line of a process: its rank, how many there are, and a random number.
fn greeting(hello: &str) -> Result<(usize, usize, &str), String> {
    let mut words = hello.split(' ');
    if words.next() != Some("doorbell-job") {
        return Err("this is the rendezvous of a job of Doorbell".to_owned());
    }
    let version = words.next().unwrap_or_default();
    if version != VERSION.to_string() {
        return Err(format!(
            "the rendezvous speaks version {VERSION}, and the process version {version}: build \
             both from the same version of Doorbell"
        ));
    }
    let numbers = (words.next().map(str::parse), words.next().map(str::parse), words.next());
    match numbers {
        (Some(Ok(rank)), Some(Ok(size)), Some(nonce)) => Ok((rank, size, nonce)),
        _ => Err("the greeting makes no sense".to_owned()),
    }
}
