//! A process's side of the rendezvous.

use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::lines::Lines;
use super::proof::{About, Side, holds, nonce, prove};
use super::{Terms, VERSION};
use crate::error::JobError;

/// How long a host may take to answer that is asked for a connection.
const CONNECTING: Duration = Duration::from_secs(2);
/// The pause before all places are tried again.
const PAUSE: Duration = Duration::from_millis(20);

/// A process that has met all others.
#[derive(Debug)]
pub struct Joined {
    /// The cards of all processes, by their ranks.
    pub cards: Vec<String>,
    lines: TcpStream,
    heard: Arc<Heard>,
}

/// What the service has told since all have met.
#[derive(Default, Debug)]
struct Heard {
    news: Mutex<News>,
    changed: Condvar,
}

#[derive(Clone, Default, Debug)]
struct News {
    /// The processes that have ended without being done.
    ended: Vec<usize>,
    /// Whether all are done.
    over: bool,
    /// Whether the service has ended.
    lost: bool,
}

/// What came of an attempt to join.
enum Attempt {
    /// All have come.
    Joined(Lines, Vec<String>),
    /// There may be another service at another place, or later.
    Elsewhere(String),
    /// For good.
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
    // The service itself waits for so long, and says then who has not come.
    let deadline = Instant::now() + terms.within + Duration::from_secs(2);
    let mut last = String::new();
    let named: Vec<_> = places.iter().map(|(host, port)| format!("{host}:{port}")).collect();
    loop {
        for place in places {
            match attempt(rank, place, card, terms, deadline) {
                Ok(Attempt::Joined(lines, cards)) => return Joined::new(lines, cards, notice),
                Ok(Attempt::Refused(why)) => return Err(JobError::Refused { rank, why }),
                Ok(Attempt::Elsewhere(why)) => last = why,
                // That nobody listens there says less than what somebody has said.
                Err(why) if last.is_empty() => last = why.to_string(),
                Err(_) => {}
            }
        }
        if Instant::now() + PAUSE >= deadline {
            let within = terms.within;
            return Err(JobError::NoRendezvous { rank, places: named, within, why: last });
        }
        std::thread::sleep(PAUSE);
    }
}

fn attempt(
    rank: usize,
    place: &(String, u16),
    card: &str,
    terms: &Terms,
    deadline: Instant,
) -> io::Result<Attempt> {
    let (host, port) = place;
    let stream = connect(host, *port)?;
    let mut lines = Lines::new(stream)?;
    let own = nonce();
    let size = terms.size;
    // A service of something else may answer nothing at all.
    let soon = deadline.min(Instant::now() + CONNECTING);
    lines.write(&format!("doorbell-job {VERSION} {rank} {size} {own}"), soon)?;
    let answer = lines.read(Some(soon))?;
    let at = format!("{host}:{port}");
    if let Some(why) = answer.strip_prefix("refused ") {
        return Ok(Attempt::Elsewhere(format!("at {at}: {why}")));
    }
    let words = answer.strip_prefix("nonce ").and_then(|rest| rest.split_once(' '));
    let Some((theirs, proof)) = words else {
        return Ok(Attempt::Elsewhere(format!("at {at} is something else")));
    };
    let about = About { rank, size, nonces: [&own, theirs] };
    if !holds(proof, &terms.secret, Side::Service, about) {
        // Nothing is told to a service of another job.
        return Ok(Attempt::Elsewhere(format!(
            "at {at} is a rendezvous whose secret is another one: it is of another job, or the \
             secrets differ"
        )));
    }
    let proof = prove(&terms.secret, Side::Process, about);
    lines.write(&format!("card {proof} {card}"), deadline)?;
    let answer = lines.read(Some(deadline))?;
    if let Some(why) = answer.strip_prefix("refused ").or(answer.strip_prefix("failed ")) {
        return Ok(Attempt::Refused(why.to_owned()));
    }
    if answer != format!("cards {size}") {
        return Ok(Attempt::Refused(format!("at {at}: `{answer}` makes no sense")));
    }
    let cards = (0..size).map(|_| lines.read(Some(deadline))).collect::<io::Result<_>>()?;
    Ok(Attempt::Joined(lines, cards))
}

fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, format!("{host} has no address"));
    for address in (host, port).to_socket_addrs()?.collect::<Vec<SocketAddr>>() {
        match TcpStream::connect_timeout(&address, CONNECTING) {
            Ok(stream) => return Ok(stream),
            Err(why) => last = io::Error::new(why.kind(), format!("{address}: {why}")),
        }
    }
    Err(last)
}

impl Joined {
    fn new(
        mut lines: Lines,
        cards: Vec<String>,
        notice: impl Fn(Option<usize>) + Send + 'static,
    ) -> Result<Self, JobError> {
        let system = |source| JobError::System { what: "watching the other processes", source };
        let stream = lines.stream().try_clone().map_err(system)?;
        let heard = Arc::new(Heard::default());
        let hears = heard.clone();
        let body = move || {
            loop {
                let line = lines.read(None);
                let mut news = hears.news.lock().unwrap_or_else(PoisonError::into_inner);
                let told = match line.as_deref() {
                    Ok("over") => {
                        news.over = true;
                        None
                    }
                    Ok(line) => match line.strip_prefix("ended ").map(str::parse) {
                        Some(Ok(rank)) => {
                            news.ended.push(rank);
                            Some(Some(rank))
                        }
                        _ => None,
                    },
                    Err(_) => {
                        news.lost = true;
                        (!news.over).then_some(None)
                    }
                };
                let lost = news.lost;
                drop(news);
                hears.changed.notify_all();
                if let Some(told) = told {
                    notice(told);
                }
                if lost {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("job-watch".to_owned());
        thread.spawn(body).map_err(system)?;
        Ok(Self { cards, lines: stream, heard })
    }

    /// Says that this process is done, and waits until all are, or one has ended without being so.
    ///
    /// # Errors
    /// When a process has ended, or the service has.
    pub fn finish(self) -> Result<(), JobError> {
        use std::io::Write;
        let _ = (&self.lines).write_all(b"bye\n");
        let news = self.heard.news.lock().unwrap_or_else(PoisonError::into_inner);
        let goes_on = |news: &mut News| !news.over && !news.lost && news.ended.is_empty();
        let news = self.heard.changed.wait_while(news, goes_on);
        let news = news.unwrap_or_else(PoisonError::into_inner).clone();
        match (news.over, news.ended.first()) {
            (_, Some(&rank)) => Err(JobError::Ended { rank }),
            (true, None) => Ok(()),
            (false, None) => Err(JobError::ServiceEnded),
        }
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        let _ = self.lines.shutdown(std::net::Shutdown::Both);
    }
}
