//! How links come about.
//!
//! A device that has joined listens by its name. Who reaches for it calls: connects, and says
//! hello. The one that is called looks who that is, makes the memory, and sends it with its answer;
//! the caller believes nothing of it before it has seen the seals. The socket stays, and its end is
//! how each side learns that the other is gone, be it killed.
//!
//! There is one link between two names. If both call each other at once, the call of the lesser
//! name goes on: the other side takes it and forgets its own.

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use doorbell_core::encap::PathId;
use doorbell_core::nic::Way;
use doorbell_core::time::Time;

use super::Shm;
use super::link::{Link, Segment, Side, receive, send};
use super::message::{LONGEST, Message, Refusal, is_name};
use super::sleep::{self, Shared};
use crate::address::{Address, ReachError};
use crate::device::Trouble;
use crate::holder::Holder;
use crate::sys::closer;
use crate::sys::limit::Limit;
use crate::sys::memfd::Sealed;
use crate::sys::unix::{self, Listener, Received, Reserve, Socket};
use crate::sys::watch::Watch;

/// How long a peer may take to answer a call.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often the sockets are asked which of them have something, of which they tell a few at a time.
const MOST_ROUNDS: u32 = 16;

/// The most that have connected and not yet said hello.
const MOST_CALLERS: usize = 16;

/// The numbers by which sockets are watched: those of links are their own.
const OTHERS: u64 = 1 << 32;
const LISTENER: u64 = OTHERS;

pub(super) struct Meeting {
    pub name: Box<str>,
    pub listener: Option<Listener>,
    /// Closed for a moment to take in a caller, and tell it so, when no descriptor is left.
    reserve: Option<Reserve>,
    /// True while no callers are taken in, since too much that strangers have passed waits to be
    /// closed.
    pub shut: bool,
    /// The stranger who called last.
    pub stranger: Option<Holder>,
    /// How many lines each ring has at most.
    lines: u32,
    callers: VecDeque<(u64, Socket)>,
    calls: Vec<Call>,
    /// The number of the last socket that was neither a link's nor the listener's.
    last: u64,
    /// Whether somebody is to be called again, since too many were waiting there.
    pub busy: bool,
}

/// Why nobody was called.
enum NotCalled {
    /// No process listens by the name that was called.
    Nobody,
    /// A process of another user listens by the name that was called.
    Stranger(Holder),
    /// Too many callers have been waiting at the device that was called, for too long.
    Busy,
    System(io::Error),
}

/// A call that is not answered yet.
struct Call {
    number: u64,
    name: Box<str>,
    since: Time,
    /// While its answer is awaited. When two have crossed, the other's call is.
    socket: Option<Socket>,
    /// True if the call is to be made again, since too many callers were waiting at the peer.
    again: bool,
    failed: Option<Failed>,
}

/// Why a call came to nothing.
enum Failed {
    /// The peer has not answered, or its answer makes no sense.
    There(&'static str),
    /// The peer has refused a link.
    Refused(&'static str),
    /// The peer has refused a link, since this process is another user's.
    Stranger(Holder),
    /// There is something wrong on this side.
    Here(io::Error),
}

impl Meeting {
    pub fn new(name: &str, lines: u32) -> Self {
        Self {
            name: name.into(),
            listener: None,
            reserve: None,
            shut: false,
            stranger: None,
            lines,
            callers: VecDeque::new(),
            calls: Vec::new(),
            last: LISTENER,
            busy: false,
        }
    }

    fn next_number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }
}

/// The abstract name by which a device listens.
pub(super) fn listening(name: &str) -> Vec<u8> {
    ["doorbell/", name].concat().into_bytes()
}

impl Shm {
    /// Lets others find this device by its name.
    pub(super) fn listen(&mut self) -> io::Result<()> {
        let listener = Listener::by_name(&listening(&self.meeting.name))?;
        self.watch.add(listener.raw(), LISTENER)?;
        (self.meeting.listener, self.meeting.reserve) = (Some(listener), Some(Reserve::new()?));
        Ok(())
    }

    /// Looks after whatever has something to say.
    #[cold]
    pub(super) fn attend(&mut self) {
        self.turns = 0;
        if self.meeting.shut {
            self.open_again();
        }
        self.see_who_dozes();
        for round in 0..MOST_ROUNDS {
            let (numbers, found) = self.watch.ready();
            for &number in &numbers[..found] {
                match number {
                    LISTENER => self.accept(),
                    ..OTHERS => self.listen_to(PathId(number as u32)),
                    _ if self.meeting.calls.iter().any(|call| call.number == number) => {
                        self.answered(number);
                    }
                    _ => self.hear(number),
                }
            }
            if found > 0 && round == 0 {
                // What was to wake whoever sleeps is taken now.
                self.call_back();
            }
            if found < Watch::MOST {
                return;
            }
        }
    }

    fn accept(&mut self) {
        for _ in 0..MOST_CALLERS {
            let socket = match self.meeting.listener.as_ref().map(Listener::accept) {
                Some(Ok(socket)) => socket,
                Some(Err(why)) if why.kind() == io::ErrorKind::ResourceBusy => return self.shut(),
                Some(Err(why)) if Limit::behind(&why).is_some() => return self.turn_away(),
                _ => return,
            };
            if !socket.is_trusted() {
                self.meeting.stranger = Some(socket.holder());
                self.refuse(&socket, Refusal::Stranger);
                continue;
            }
            if self.meeting.callers.len() == MOST_CALLERS {
                self.meeting.callers.pop_front();
                self.statistics.strangers += 1;
            }
            let number = self.meeting.next_number();
            if self.watch.add(socket.raw(), number).is_ok() {
                self.meeting.callers.push_back((number, socket));
                self.hear(number);
            }
        }
    }

    /// Takes nobody in until there is room for what strangers pass: those who have called wait.
    #[cold]
    fn shut(&mut self) {
        if let Some(listener) = &self.meeting.listener
            && self.watch.remove(listener.raw()).is_ok()
        {
            tracing::warn!("too much that strangers have passed waits to be closed");
            self.meeting.shut = true;
        }
    }

    /// Takes callers in again, if there is room.
    #[cold]
    fn open_again(&mut self) {
        if let Some(listener) = &self.meeting.listener
            && closer::has_room()
            && self.watch.add(listener.raw(), LISTENER).is_ok()
        {
            self.meeting.shut = false;
        }
    }

    /// Returns the trouble of a device that takes no callers in, or `None` if it takes them in.
    pub(super) fn held_up(&self) -> Option<Trouble> {
        if !self.meeting.shut {
            return None;
        }
        let mut found = format!("{} descriptors that were passed wait to be closed", closer::MOST);
        if let Some(stranger) = self.meeting.stranger {
            found.push_str(&format!("; the last stranger who called was {stranger}"));
        }
        Some(Trouble {
            what: format!("taking in callers of {}", self.address),
            found,
            advice: "links go on, and callers wait; end the process that passes them. From Linux 6.16 \
                     on, strangers can pass nothing",
        })
    }

    /// Tells those who call that there is no descriptor left for them: otherwise they would wait
    /// for an answer in vain.
    #[cold]
    fn turn_away(&mut self) {
        for _ in 0..MOST_CALLERS {
            self.meeting.reserve = None;
            let caller = self.meeting.listener.as_ref().map(Listener::accept);
            if let Some(Ok(caller)) = &caller {
                self.refuse(caller, Refusal::Descriptors);
            }
            let done = !matches!(caller, Some(Ok(_)));
            drop(caller);
            // If somebody else has taken the descriptor by now, the next caller waits.
            self.meeting.reserve = Reserve::new().ok();
            if done {
                return;
            }
        }
    }

    fn refuse(&mut self, caller: &Socket, why: Refusal) {
        self.statistics.strangers += u64::from(why == Refusal::Stranger);
        let _ = send(caller, Message::Answer(Err(why)), None);
    }

    /// Hears what a caller says first.
    fn hear(&mut self, number: u64) {
        let found = self.meeting.callers.iter().position(|(caller, _)| *caller == number);
        let Some(at) = found else { return };
        let mut bytes = [0; LONGEST + 1];
        let len = match receive(&self.meeting.callers[at].1, &mut bytes) {
            Received::Nothing => return,
            Received::Message(len, _) => len,
            // Who hangs up without a word has looked who has the name.
            Received::End => return drop(self.meeting.callers.remove(at)),
            Received::NoDescriptor => 0,
        };
        let Some((_, mut socket)) = self.meeting.callers.remove(at) else { return };
        // It is trusted, or would not be here. What it may pass is memory.
        socket.let_descriptors_in();
        match Message::read(&bytes[..len]) {
            Some(Ok(Message::Hello { lines, name })) => match self.offer(&socket, lines, name) {
                Ok(segment) => {
                    self.meeting.calls.retain(|call| *call.name != *name);
                    self.link(&segment, Side::Called, socket, name);
                }
                Err(why) => self.refuse(&socket, why),
            },
            Some(Err(why)) => self.refuse(&socket, why),
            _ => self.statistics.strangers += 1,
        }
    }

    /// Sends a caller the memory of a link, if it can have one.
    fn offer(&mut self, caller: &Socket, lines: u32, name: &str) -> Result<Segment, Refusal> {
        if let Some(id) = self.links.named(name).map(|link| link.id) {
            // It may have died, and this be the next by its name.
            self.listen_to(id);
        }
        if *name == *self.meeting.name || self.links.named(name).is_some() {
            return Err(Refusal::Linked);
        }
        let crossed = self.meeting.calls.iter().any(|call| *call.name == *name);
        if crossed && *self.meeting.name < *name {
            return Err(Refusal::Crossed);
        }
        if self.links.is_full() {
            return Err(Refusal::Full);
        }
        let lines = lines.min(self.meeting.lines);
        let offer = || {
            let segment = Segment::new(lines)?;
            send(caller, Message::Answer(Ok(lines)), Some(segment.sealed.as_fd()))?;
            Ok::<_, io::Error>(segment)
        };
        offer().map_err(|why| Refusal::of(&why))
    }

    /// The link to a peer whose socket is watched already; none if there is no room.
    fn link(
        &mut self,
        segment: &Segment,
        side: Side,
        socket: Socket,
        name: &str,
    ) -> Option<PathId> {
        let added = self.links.add(|id| {
            self.watch.rename(socket.raw(), id.0.into())?;
            Ok::<_, io::Error>(Link::new(id, segment, side, socket, name))
        });
        let link = added?.ok()?;
        sleep::begin::<Shared>(link.reader.sleeping(), self.armed);
        Some(link.id)
    }

    /// A link without a meeting, to the other of a pair, or to this device itself.
    pub(super) fn link_at_once(
        &mut self,
        make: impl FnOnce(PathId) -> io::Result<Link>,
    ) -> io::Result<Option<PathId>> {
        let added = self.links.add(|id| {
            let link = make(id)?;
            self.watch.add(link.socket.raw(), id.0.into())?;
            Ok::<_, io::Error>(link)
        });
        let Some(link) = added.transpose()? else { return Ok(None) };
        sleep::begin::<Shared>(link.reader.sleeping(), self.armed);
        Ok(Some(link.id))
    }

    /// The way to whoever joined by a name.
    pub(super) fn way_to(&mut self, address: &Address) -> Result<Option<Way>, ReachError> {
        let Address::Shm(name) = address else {
            let (address, takes) = (address.clone(), "shm:NAME");
            return Err(ReachError::Kind { address, device: "shm", takes });
        };
        self.attend();
        if let Some(link) = self.links.named(name) {
            return Ok(Some(Way::Link(link.id)));
        }
        let system = |source| ReachError::System { address: address.clone(), source };
        let most = self.links.most();
        let full = || ReachError::TooMany { address: address.clone(), most };
        if **name == *self.meeting.name {
            let segment = Segment::new(self.meeting.lines).map_err(system)?;
            let made = self.link_at_once(|id| Link::to_self(id, &segment, name)).map_err(system)?;
            return made.map(|id| Some(Way::Link(id))).ok_or_else(full);
        }
        let nobody = |why| ReachError::Nobody { address: address.clone(), why };
        let stranger = |holder| {
            let (address, own) = (address.clone(), unix::own_user());
            ReachError::Stranger { address, holder, own }
        };
        if !is_name(name) {
            let why = "a name has 1 to 90 bytes, without control characters";
            return Err(ReachError::NoPeers { address: address.clone(), why });
        }
        if self.meeting.listener.is_none() {
            return Err(nobody("this device is one of a pair, and reaches no other"));
        }
        let now = self.clock.now();
        let since = match self.meeting.calls.iter().position(|call| call.name == *name) {
            Some(at) if self.meeting.calls[at].again => self.meeting.calls.remove(at).since,
            Some(at) => {
                return self.meeting.outcome(at, now).map_err(|failed| match failed {
                    Failed::There(why) => nobody(why),
                    Failed::Refused(why) => ReachError::Refused { address: address.clone(), why },
                    Failed::Stranger(holder) => stranger(holder),
                    Failed::Here(why) => system(why),
                });
            }
            None if self.links.count() + self.meeting.calls.len() >= most => return Err(full()),
            None => now,
        };
        self.call(name, since, now).map_err(|why| match why {
            NotCalled::Nobody => nobody("no process has joined by this name"),
            NotCalled::Stranger(holder) => stranger(holder),
            NotCalled::Busy if unix::is_anothers(&listening(name)) => {
                stranger(unix::holder(&listening(name)))
            }
            NotCalled::Busy => nobody("others have called before, and were not heard for 5 s"),
            NotCalled::System(error) => system(error),
        })
    }

    /// Calls a peer, whose answer is then awaited: since some time, if too many were waiting there.
    fn call(&mut self, name: &str, since: Time, now: Time) -> Result<Option<Way>, NotCalled> {
        let mut socket = match Socket::connect(&listening(name)) {
            Ok(socket) => socket,
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock if now.since(since) > PATIENCE => {
                    return Err(NotCalled::Busy);
                }
                io::ErrorKind::WouldBlock => {
                    self.meeting.busy = true;
                    let number = self.meeting.next_number();
                    self.meeting.await_answer(number, name, since, None);
                    return Ok(None);
                }
                io::ErrorKind::ConnectionRefused => return Err(NotCalled::Nobody),
                _ => return Err(NotCalled::System(error)),
            },
        };
        if !socket.is_trusted() {
            return Err(NotCalled::Stranger(socket.holder()));
        }
        socket.let_descriptors_in();
        let Meeting { lines, name: own, .. } = &self.meeting;
        match send(&socket, Message::Hello { lines: *lines, name: own }, None) {
            // It was turned away before it said a word, and is to hear why.
            Err(why) if why.kind() == io::ErrorKind::BrokenPipe => {}
            said => said.map_err(NotCalled::System)?,
        }
        let number = self.meeting.next_number();
        self.watch.add(socket.raw(), number).map_err(NotCalled::System)?;
        self.meeting.await_answer(number, name, now, Some(socket));
        Ok(None)
    }

    /// Hears what a peer that was called says.
    fn answered(&mut self, number: u64) {
        let Some(at) = self.meeting.calls.iter().position(|call| call.number == number) else {
            return;
        };
        let call = &mut self.meeting.calls[at];
        let Some(socket) = &call.socket else { return };
        let mut bytes = [0; LONGEST + 1];
        let (len, fd) = match receive(socket, &mut bytes) {
            Received::Nothing => return,
            Received::Message(len, fd) => (len, fd),
            Received::NoDescriptor => {
                call.socket = None;
                let why = Limit::Descriptors.refused("taking in the memory of a link");
                call.failed = Some(Failed::Here(why));
                return;
            }
            Received::End => (0, None),
        };
        let socket = call.socket.take();
        call.failed = match (Message::read(&bytes[..len]), fd, socket) {
            (Some(Ok(Message::Answer(Ok(lines)))), Some(fd), Some(socket)) => {
                let fits = lines <= self.meeting.lines;
                let found = fits.then(|| Sealed::received(fd, Segment::bytes(lines) as u64));
                match found.and_then(Result::ok).map(|sealed| Segment::of(sealed, lines)) {
                    Some(Ok(segment)) => {
                        let name = call.name.clone();
                        self.meeting.calls.remove(at);
                        self.link(&segment, Side::Caller, socket, &name);
                        return;
                    }
                    Some(Err(why)) if Limit::behind(&why).is_some() => Some(Failed::Here(why)),
                    Some(Err(_)) => {
                        Some(Failed::There("the memory that it sent can't be mapped here"))
                    }
                    None => Some(Failed::There("the memory that it sent is not what it must be")),
                }
            }
            // Its own call goes on, and is awaited.
            (Some(Ok(Message::Answer(Err(Refusal::Crossed)))), ..) => None,
            (Some(Ok(Message::Answer(Err(Refusal::Stranger)))), _, Some(socket)) => {
                Some(Failed::Stranger(socket.holder()))
            }
            (Some(Ok(Message::Answer(Err(why)))), ..) => Some(Failed::Refused(why.why())),
            (None, ..) if len == 0 => Some(Failed::There("it hung up")),
            _ => Some(Failed::There("its answer makes no sense")),
        };
    }
}

impl Meeting {
    /// Notes a call whose answer is awaited; without a socket, one that is to be made again.
    fn await_answer(&mut self, number: u64, name: &str, since: Time, socket: Option<Socket>) {
        let (name, again) = (name.into(), socket.is_none());
        self.calls.push(Call { number, name, since, socket, again, failed: None });
    }

    /// What has become of a call, if it is over.
    fn outcome(&mut self, at: usize, now: Time) -> Result<Option<Way>, Failed> {
        let call = &mut self.calls[at];
        let late = now.since(call.since) > PATIENCE;
        let silent = Failed::There("it is there, but has not answered for 5 s");
        let failed = call.failed.take().or(late.then_some(silent));
        let Some(failed) = failed else { return Ok(None) };
        self.calls.remove(at);
        Err(failed)
    }
}
