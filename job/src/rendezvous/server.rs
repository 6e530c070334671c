//! The service that processes meet at. Process 0 runs it, or whoever starts the processes.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::lines::Lines;
use super::proof::{About, Side, holds, nonce, prove};
use super::{LONGEST, Terms, VERSION};

/// How long somebody who has connected may take for each line of the greeting.
const GREETING: Duration = Duration::from_secs(10);
/// How many connections there may be beside one for each process.
const STRANGERS: usize = 64;
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
    state: Mutex<State>,
    changed: Condvar,
    /// Held while processes are told something. It is taken before the state is let go, so that they
    /// hear things in their order, and before the service ends.
    telling: Mutex<()>,
    stopped: AtomicBool,
    connections: AtomicUsize,
}

#[derive(Default, Debug)]
struct State {
    /// The processes that have come, by their ranks.
    members: Vec<Option<Member>>,
    /// Whether all have come.
    complete: bool,
    /// Why not all can come any more.
    failed: Option<String>,
    /// Somebody who came without the secret.
    stranger: Option<String>,
}

#[derive(Debug)]
struct Member {
    card: String,
    /// What it tells all others, until all have told something.
    tells: Option<String>,
    stream: TcpStream,
    from: SocketAddr,
    /// Whether the process is done, or its connection has ended.
    done: bool,
    ended: bool,
}

impl Service {
    /// Serves the processes of a job that connect to a listener.
    ///
    /// # Errors
    /// When the system refuses a thread.
    pub fn start(listener: TcpListener, terms: Terms) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let members = (0..terms.size).map(|_| None).collect();
        let shared = Arc::new(Shared {
            terms,
            state: Mutex::new(State { members, ..State::default() }),
            changed: Condvar::new(),
            telling: Mutex::new(()),
            stopped: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
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
        let state = self.shared.lock();
        let streams = state.members.iter().flatten().map(|member| &member.stream);
        let addresses = streams.filter_map(|stream| stream.local_addr().ok());
        addresses.map(|address| address.ip().to_canonical()).find(|ip| !ip.is_loopback())
    }

    /// Has all processes that have come, and that come yet, end with an error.
    pub fn fail(&self, why: &str) {
        self.shared.fail(self.shared.lock(), why.to_owned());
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Relaxed);
        let state = self.shared.lock();
        let _telling = self.shared.telling();
        for member in state.members.iter().flatten() {
            let _ = member.stream.shutdown(std::net::Shutdown::Both);
        }
        drop(state);
        self.shared.changed.notify_all();
        // Whoever accepts sees that it is to stop when somebody comes.
        let mut own = self.address;
        if own.ip().is_unspecified() {
            own.set_ip(match own {
                SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
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
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn telling(&self) -> MutexGuard<'_, ()> {
        self.telling.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    fn accept(self: &Arc<Self>, listener: &TcpListener) {
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
            if self.connections.fetch_add(1, Ordering::Relaxed) >= self.terms.size + STRANGERS {
                self.connections.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            let shared = self.clone();
            let attends = move || {
                if let Err(why) = shared.attend(stream, from) {
                    tracing::debug!(%from, %why, "a connection to the rendezvous ended");
                }
                shared.connections.fetch_sub(1, Ordering::Relaxed);
            };
            if thread("job-member", attends).is_err() {
                self.connections.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }

    /// Waits until all have come, and fails if they do not in time.
    fn wait_for_all(&self) {
        let until = Instant::now() + self.terms.within.min(LONGEST);
        let mut state = self.lock();
        while !state.complete && state.failed.is_none() && !self.is_stopped() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let why = missing(&state, self.terms.within);
                return self.fail(state, why);
            }
            state =
                self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Tells all who have come why not all can come.
    fn fail(&self, mut state: MutexGuard<'_, State>, why: String) {
        if state.complete || state.failed.is_some() {
            return;
        }
        state.failed = Some(why.clone());
        let streams = streams(&state);
        let _telling = self.telling();
        drop(state);
        self.changed.notify_all();
        tell(&streams, &format!("failed {why}"));
    }

    /// Serves a connection until it ends.
    fn attend(&self, stream: TcpStream, from: SocketAddr) -> io::Result<()> {
        let mut lines = Lines::new(stream)?;
        let within = || Instant::now() + GREETING;
        let hello = lines.read(Some(within()))?;
        let (rank, size, theirs) = match greeting(&hello) {
            Ok(greeting) => greeting,
            Err(why) => return lines.write(&format!("refused {why}"), within()),
        };
        let own = nonce();
        let about = About { rank, size, nonces: [theirs, &own] };
        let proof = prove(&self.terms.secret, Side::Service, about);
        lines.write(&format!("nonce {own} {proof}"), within())?;
        let answer = lines.read(Some(within()))?;
        let parts = answer.strip_prefix("card ").and_then(|rest| rest.split_once(' '));
        let proved =
            parts.filter(|(proof, _)| holds(proof, &self.terms.secret, Side::Process, about));
        let Some((_, card)) = proved else {
            self.lock().stranger = Some(format!("process {rank} at {from}"));
            return lines.write("refused the secret of the job is another one", within());
        };
        if let Err(why) = self.enter(rank, size, card, &lines, from)? {
            return lines.write(&format!("refused {why}"), within());
        }
        loop {
            match lines.read(None).as_deref() {
                Ok("bye") => break self.leave(rank, true),
                Ok(line) if line.starts_with("tell ") => self.take(rank, &line["tell ".len()..]),
                _ => {
                    self.leave(rank, false);
                    return Ok(());
                }
            }
        }
        // The connection stays until the other side ends it.
        let _ = lines.read(None);
        self.leave(rank, false);
        Ok(())
    }

    /// Takes what a process tells all others, and passes it on when all have told something.
    fn take(&self, rank: usize, text: &str) {
        let mut state = self.lock();
        if !state.complete {
            return;
        }
        if let Some(member) = &mut state.members[rank] {
            member.tells = Some(text.to_owned());
        }
        if state.members.iter().flatten().any(|member| member.tells.is_none()) {
            return;
        }
        let mut all = format!("told {}", self.terms.size);
        for member in state.members.iter_mut().flatten() {
            all.push('\n');
            all.push_str(&member.tells.take().unwrap_or_default());
        }
        let streams = streams(&state);
        let _telling = self.telling();
        drop(state);
        tell(&streams, &all);
    }

    /// Enters a process, and tells all their cards when it is the last one. The inner error is for
    /// the process.
    fn enter(
        &self,
        rank: usize,
        size: usize,
        card: &str,
        lines: &Lines,
        from: SocketAddr,
    ) -> io::Result<Result<(), String>> {
        let stream = lines.stream().try_clone()?;
        let mut state = self.lock();
        if let Some(why) = &state.failed {
            return Ok(Err(why.clone()));
        }
        if size != self.terms.size || rank >= size {
            let why = format!(
                "process {rank} at {from} says that the job has {size} processes, and the \
                 rendezvous that it has {}",
                self.terms.size
            );
            self.fail(state, why.clone());
            return Ok(Err(why));
        }
        if let Some(before) = &state.members[rank] {
            let before = before.from;
            return Ok(Err(format!("process {rank} has come already, from {before}")));
        }
        let (card, tells) = (card.to_owned(), None);
        state.members[rank] = Some(Member { card, tells, stream, from, done: false, ended: false });
        if state.members.iter().any(Option::is_none) {
            return Ok(Ok(()));
        }
        state.complete = true;
        let mut text = format!("cards {}", self.terms.size);
        for member in state.members.iter().flatten() {
            text.push('\n');
            text.push_str(&member.card);
        }
        let streams = streams(&state);
        let _telling = self.telling();
        drop(state);
        self.changed.notify_all();
        tell(&streams, &text);
        Ok(Ok(()))
    }

    /// A process is done, or its connection has ended.
    fn leave(&self, rank: usize, done: bool) {
        let mut state = self.lock();
        let complete = state.complete;
        let Some(member) = &mut state.members[rank] else { return };
        let was_done = member.done;
        member.done |= done;
        member.ended |= !done;
        if !complete {
            if !done {
                // It has not seen the others yet, and may come again.
                state.members[rank] = None;
            }
            return;
        }
        let all_done = state.members.iter().flatten().all(|member| member.done || member.ended);
        let streams = streams(&state);
        let _telling = self.telling();
        drop(state);
        if !done && !was_done {
            tell(&streams, &format!("ended {rank}"));
        }
        if all_done {
            tell(&streams, "over");
        }
    }
}

/// What a process says of itself first: its rank, how many there are, and a random number.
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

/// Which processes have not come.
fn missing(state: &State, within: Duration) -> String {
    let of = state.members.len();
    let missing: Vec<_> = (0..of).filter(|&rank| state.members[rank].is_none()).collect();
    let named: Vec<_> = missing.iter().take(8).map(ToString::to_string).collect();
    let more = if missing.len() > named.len() { " and others" } else { "" };
    let stranger = state.stranger.as_ref();
    let stranger =
        stranger.map_or_else(String::new, |who| format!("; {who} came with another secret"));
    format!(
        "{} of {of} processes have not come within {within:?}: {}{more}{stranger}",
        missing.len(),
        named.join(", ")
    )
}

/// The connections to all who are there.
fn streams(state: &State) -> Vec<TcpStream> {
    let there = state.members.iter().flatten().filter(|member| !member.ended);
    there.filter_map(|member| member.stream.try_clone().ok()).collect()
}

/// Writes to all of them. One that does not take it in time hears no more.
fn tell(streams: &[TcpStream], text: &str) {
    use std::io::Write;
    for mut stream in streams {
        let _ = stream.set_write_timeout(Some(GREETING));
        if stream.write_all(format!("{text}\n").as_bytes()).is_err() {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }
}
