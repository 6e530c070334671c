//! A process's side of the rendezvous.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use super::lines::{Lines, left};
use super::proof::{About, Side, holds, nonce, prove};
use super::{LONGEST, Terms, VERSION};
use crate::error::JobError;
use crate::limits;

/// How long a host may take to answer that is asked for a connection, and whoever answers there for
/// the first line, the first time; twice as long each further time, up to the most.
const ANSWERING: Duration = Duration::from_millis(250);
const ANSWERING_AT_MOST: Duration = Duration::from_secs(2);
/// How long a process waits, beyond the time in which all have to come, for the service to say who
/// has not.
const VERDICT: Duration = Duration::from_secs(2);
/// How long a process that ends since another has gone waits for the service to note it, and to say
/// which one was the first.
const ANSWERS: Duration = Duration::from_secs(2);
/// The pause before all places are tried again.
const PAUSE: Duration = Duration::from_millis(20);

/// A process that has met all others.
#[derive(Debug)]
pub struct Joined {
    /// The cards of all processes, by their ranks.
    pub cards: Vec<String>,
    /// The random text by which this run of the job differs from all others.
    pub run: String,
    within: Duration,
    lines: TcpStream,
    heard: Arc<Heard>,
}

/// The messages of the service since all processes have met.
#[derive(Default, Debug)]
struct Heard {
    news: Mutex<News>,
    changed: Condvar,
}

#[derive(Default, Debug)]
struct News {
    /// The texts of all processes, for each exchange that is complete and not taken yet.
    told: VecDeque<Vec<String>>,
    /// The processes that have ended without being done.
    ended: Vec<usize>,
    /// The process that was the first to end so, and not because another had.
    first: Option<usize>,
    /// How often the service has noted that this process ends because of another.
    noted: usize,
    /// Whether every process is done with the service.
    over: bool,
    /// Whether the service has ended.
    lost: bool,
}

/// The outcome of an attempt to join.
enum Attempt {
    /// The process has joined, and all others have come.
    Joined(Lines, Vec<String>, String),
    /// The place has no service of this job; another place may have one, or this one later.
    Elsewhere(String),
    /// The service of the job refuses this process for good.
    Refused(String),
}

/// Meets the other processes at the first of some places where the service of this job is, and
/// tells them a card: a line of text. `notice` is called, by a thread, for each process that ends
/// without being done, and with `None` if the service does.
///
/// # Errors
/// When the service is not found in time, refuses this process, or not all processes come.
pub fn join(
    rank: usize,
    places: &[(String, u16)],
    card: &str,
    terms: &Terms,
    notice: impl Fn(Option<usize>) + Send + 'static,
) -> Result<Joined, JobError> {
    let until = Instant::now() + terms.within.min(LONGEST);
    let mut last = String::new();
    let named: Vec<_> = places.iter().map(|(host, port)| at(host, *port)).collect();
    let mut patience = ANSWERING;
    loop {
        for place in places {
            match attempt(rank, place, card, terms, (patience, until)) {
                Ok(Attempt::Joined(lines, cards, run)) => {
                    return Joined::new(lines, (cards, run), terms.within, notice);
                }
                Ok(Attempt::Refused(why)) => return Err(JobError::Refused { rank, why }),
                Ok(Attempt::Elsewhere(why)) => last = why,
                // Another attempt would meet the same limit.
                Err(why) if limits::is_of_descriptors(&why) => {
                    let (what, why) = ("connecting to the rendezvous", limits::named(why));
                    return Err(JobError::System { what, why });
                }
                // That nobody listens there says less than what somebody has said.
                Err(why) if last.is_empty() => last = why.to_string(),
                Err(_) => {}
            }
            if Instant::now() + PAUSE >= until {
                let within = terms.within;
                return Err(JobError::NoRendezvous { rank, places: named, within, why: last });
            }
        }
        patience = (2 * patience).min(ANSWERING_AT_MOST);
        std::thread::sleep(PAUSE);
    }
}

/// A host and a port, as one writes them.
fn at(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// Tries to join at one place, which may take so long to connect and as long to answer, until all
/// have to have come.
fn attempt(
    rank: usize,
    place: &(String, u16),
    card: &str,
    terms: &Terms,
    (patience, until): (Duration, Instant),
) -> io::Result<Attempt> {
    let (host, port) = place;
    let soon = || until.min(Instant::now() + patience);
    let stream = connect(host, *port, soon())?;
    let mut lines = Lines::new(stream)?;
    let own = nonce();
    let size = terms.size;
    // A service of something else may answer nothing at all.
    let soon = soon();
    lines.write(&format!("doorbell-job {VERSION} {rank} {size} {own}"), soon)?;
    let answer = lines.read(Some(soon))?;
    let at = at(host, *port);
    if let Some(why) = answer.strip_prefix("refused ") {
        // Nobody has proved anything yet, and a terminal may take its text for commands.
        let why = why.replace(|letter: char| letter.is_control(), "?");
        return Ok(Attempt::Elsewhere(format!("at {at}: {why}")));
    }
    let words = answer.strip_prefix("nonce ").and_then(|rest| rest.split_once(' '));
    let Some((theirs, proof)) = words else {
        return Ok(Attempt::Elsewhere(format!("at {at} is something else")));
    };
    let about = About { rank, size, port: *port, nonces: [&own, theirs] };
    if !holds(proof, &terms.secret, Side::Service, about) {
        // Nothing is told to a service of another job.
        return Ok(Attempt::Elsewhere(format!(
            "at {at} is a rendezvous whose secret is another one: it is of another job, or the \
             secrets differ"
        )));
    }
    lines.trust();
    let deadline = until + VERDICT;
    let proof = prove(&terms.secret, Side::Process, about);
    lines.write(&format!("card {proof} {card}"), deadline)?;
    let answer = lines.read(Some(deadline))?;
    if let Some(why) = answer.strip_prefix("refused ").or(answer.strip_prefix("failed ")) {
        return Ok(Attempt::Refused(why.to_owned()));
    }
    let Some(run) = answer.strip_prefix(&format!("cards {size} ")) else {
        return Ok(Attempt::Refused(format!("at {at}: `{answer}` makes no sense")));
    };
    let run = run.to_owned();
    let cards = (0..size).map(|_| lines.read(Some(deadline))).collect::<io::Result<_>>()?;
    Ok(Attempt::Joined(lines, cards, run))
}

fn connect(host: &str, port: u16, until: Instant) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, format!("{host} has no address"));
    for address in addresses(host, port, until)? {
        match TcpStream::connect_timeout(&address, left(until)) {
            Ok(stream) => return Ok(stream),
            Err(why) if limits::is_of_descriptors(&why) => return Err(why),
            Err(why) => last = io::Error::new(why.kind(), format!("{address}: {why}")),
        }
    }
    Err(last)
}

/// The addresses of a host. The system may take its time to look up a name: then the thread that
/// asks it is left behind.
fn addresses(host: &str, port: u16, until: Instant) -> io::Result<Vec<SocketAddr>> {
    if let Ok(ip) = host.parse::<IpAddr>() {
        return Ok(vec![(ip, port).into()]);
    }
    let (tells, told) = mpsc::channel();
    let name = (host.to_owned(), port);
    let looks_up = move || {
        let found = name.to_socket_addrs().map(Vec::from_iter);
        // Nobody may wait for it any more.
        let _ = tells.send(found);
    };
    std::thread::Builder::new().name("job-lookup".to_owned()).spawn(looks_up)?;
    let late = || io::Error::new(io::ErrorKind::TimedOut, format!("{host} is still looked up"));
    told.recv_timeout(left(until)).map_err(|_| late())?
}

impl Joined {
    fn new(
        mut lines: Lines,
        (cards, run): (Vec<String>, String),
        within: Duration,
        notice: impl Fn(Option<usize>) + Send + 'static,
    ) -> Result<Self, JobError> {
        let size = cards.len();
        let system = |why| JobError::System {
            what: "watching the other processes",
            why: limits::named(why),
        };
        let stream = lines.stream().try_clone().map_err(system)?;
        let heard = Arc::new(Heard::default());
        let hears = heard.clone();
        let body = move || {
            loop {
                let heard = hear(&mut lines, size);
                let mut news = hears.lock();
                let ended = news.add(heard);
                let lost = news.lost;
                drop(news);
                hears.changed.notify_all();
                match ended {
                    Some(Ended::Process(rank)) => notice(Some(rank)),
                    Some(Ended::Service) => notice(None),
                    None => {}
                }
                if lost {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("job-watch".to_owned());
        thread.spawn(body).map_err(system)?;
        Ok(Self { cards, run, within, lines: stream, heard })
    }

    /// The address of this host by which it reaches the service.
    pub fn own_ip(&self) -> Option<IpAddr> {
        self.lines.local_addr().ok().map(|address| address.ip().to_canonical())
    }

    /// Tells all others a line of text, and returns what all have told, when all have.
    ///
    /// # Errors
    /// When a process has ended, or the service has, or not all have told something in time.
    pub fn exchange(&self, text: &str) -> Result<Vec<String>, JobError> {
        let written = (&self.lines).write_all(format!("tell {text}\n").as_bytes());
        written.map_err(|_| JobError::ServiceEnded)?;
        let waits = |news: &mut News| news.told.is_empty() && !news.is_broken();
        let waited = self.heard.changed.wait_timeout_while(self.heard.lock(), self.within, waits);
        let (mut news, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if let Some(told) = news.told.pop_front() {
            return Ok(told);
        }
        news.broken()?;
        Err(JobError::Silent { within: self.within })
    }

    /// Sends that this process ends because another has ended, and waits until the service has noted
    /// it. Processes that then see this one end, and say so, come behind it.
    pub fn ends_after(&self, other: usize) {
        let before = self.heard.lock().noted;
        // The service may have ended, too, and then nobody wants to know.
        if (&self.lines).write_all(format!("after {other}\n").as_bytes()).is_ok() {
            drop(self.wait(|news| news.noted > before));
        }
    }

    /// Waits for an answer of the service, for [some time](ANSWERS), or until the service has ended.
    fn wait(&self, has_come: impl Fn(&News) -> bool) -> MutexGuard<'_, News> {
        let waits = |news: &mut News| !has_come(news) && !news.lost;
        let waited = self.heard.changed.wait_timeout_while(self.heard.lock(), ANSWERS, waits);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Sends that this process ends because another has gone, and returns the process that was the
    /// first to end, if the service says so soon. `None` if the service has ended before.
    pub fn first_ended(&self, other: usize) -> Option<usize> {
        self.ends_after(other);
        self.wait(|news| news.first.is_some()).first
    }

    /// Whether the service has ended.
    pub fn is_lost(&self) -> bool {
        self.heard.lock().lost
    }

    /// Sends that this process is done, and waits until all processes are.
    ///
    /// # Errors
    /// When a process has ended, or the service has.
    pub fn finish(self) -> Result<(), JobError> {
        let _ = (&self.lines).write_all(b"bye\n");
        let waits = |news: &mut News| !news.over && !news.is_broken();
        let waited = self.heard.changed.wait_while(self.heard.lock(), waits);
        let broken = waited.unwrap_or_else(PoisonError::into_inner).broken();
        match broken {
            Err(JobError::Ended { rank }) => {
                Err(JobError::Ended { rank: self.first_ended(rank).unwrap_or(rank) })
            }
            broken => broken,
        }
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        let _ = self.lines.shutdown(std::net::Shutdown::Both);
    }
}

/// Something that the service says once all have met.
enum Said {
    Told(Vec<String>),
    Ended(usize),
    First(usize),
    Noted,
    Over,
    Nonsense,
    /// The service has ended.
    Nothing,
}

fn hear(lines: &mut Lines, size: usize) -> Said {
    let Ok(line) = lines.read(None) else { return Said::Nothing };
    match &*line {
        "over" => return Said::Over,
        "noted" => return Said::Noted,
        _ => {}
    }
    if let Some(Ok(rank)) = line.strip_prefix("ended ").map(str::parse) {
        return Said::Ended(rank);
    }
    if let Some(Ok(rank)) = line.strip_prefix("first ").map(str::parse) {
        return Said::First(rank);
    }
    if line != format!("told {size}") {
        return Said::Nonsense;
    }
    let all: io::Result<_> = (0..size).map(|_| lines.read(None)).collect();
    all.map_or(Said::Nothing, Said::Told)
}

impl Heard {
    fn lock(&self) -> MutexGuard<'_, News> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whose end a message tells of.
enum Ended {
    /// The process of this rank.
    Process(usize),
    /// The service itself, before it was over.
    Service,
}

impl News {
    /// Adds a message of the service. Returns who has ended, if the message says so.
    fn add(&mut self, said: Said) -> Option<Ended> {
        match said {
            Said::Told(all) => self.told.push_back(all),
            Said::Over => self.over = true,
            Said::Nonsense => {}
            Said::Noted => self.noted += 1,
            Said::First(rank) => self.first = Some(rank),
            Said::Ended(rank) => {
                self.ended.push(rank);
                return Some(Ended::Process(rank));
            }
            Said::Nothing => {
                self.lost = true;
                return (!self.over).then_some(Ended::Service);
            }
        }
        None
    }

    fn is_broken(&self) -> bool {
        self.lost || !self.ended.is_empty()
    }

    /// Returns an error that names who has ended, if anybody has.
    fn broken(&self) -> Result<(), JobError> {
        match self.first.as_ref().or(self.ended.first()) {
            Some(&rank) => Err(JobError::Ended { rank }),
            None if self.lost && !self.over => Err(JobError::ServiceEnded),
            None => Ok(()),
        }
    }
}
