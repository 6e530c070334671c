//! The owner of an interface: it takes the messages of the members, decides which process listens
//! to which service, and tells all.

use std::io;
use std::time::Duration;

use doorbell_core::time::Time;

use super::event::Event;
use super::message::{self, LONGEST, Memory};
use super::roster::{Roster, bit, tags};
use super::tag::claim;
use crate::clock::Clock;
use crate::sys::deferred_close;
use crate::sys::epoll::Epoll;
use crate::sys::unix::{Listener, ReceivedMessage, Socket};

/// After what time something is tried again of which no message tells.
pub(super) const PAUSE: Duration = Duration::from_millis(10);

/// A time that is not meant to pass.
pub(super) const NEVER: Duration = Duration::from_secs(3600);

/// The most connections of an owner: more than there are tags, for processes that have not told
/// theirs.
const MOST: usize = 80;

/// The number by which the listening socket is watched. Connections have other numbers.
const LISTENER: u64 = 0;

/// The set of all tags.
const ALL: u64 = !1;

/// How long a process that has a tag may take to connect to a new owner. One that takes longer has
/// stopped, or is another user's.
const GRACE: Duration = Duration::from_secs(1);

/// The owner of an interface, with the connections of the members.
pub(super) struct Owner {
    listener: Listener,
    /// True while no connections are accepted, since too many descriptors that strangers have
    /// passed wait to be closed.
    shut: bool,
    connections: Vec<Connection>,
    /// The number of the connection that came last.
    last: u64,
    /// The tags of processes that are not connected and are there, or may be.
    awaited: u64,
    /// The time since when the last of those processes is awaited.
    since: Time,
    /// True once this process has told the program that it is the owner.
    pub settled: bool,
    clock: Clock,
}

/// The connection of a member.
struct Connection {
    number: u64,
    socket: Socket,
    /// The tag of the member, once it has told its tag.
    tag: Option<u32>,
    /// The tags of processes about which the member is to be told.
    owed: u64,
    /// True if there was no room to tell the member more.
    blocked: bool,
}

impl Owner {
    pub fn new(listener: Listener, watch: &Epoll, own: u32) -> io::Result<Self> {
        watch.add(&listener, LISTENER)?;
        let (clock, connections, awaited) = (Clock::new(), Vec::new(), ALL & !bit(own));
        let (last, since) = (LISTENER, clock.now());
        let shut = false;
        Ok(Self { listener, shut, connections, last, awaited, since, settled: false, clock })
    }

    /// Returns how many connections there are.
    #[cfg(test)]
    pub fn held(&self) -> usize {
        self.connections.len()
    }

    /// Returns whether the processes that are awaited have had their time.
    fn is_late(&self) -> bool {
        self.clock.now().since(self.since) > GRACE
    }

    /// Takes and sends messages. To be called when the program has taken all events, since the
    /// members are told what it has been told. Returns after what time to call this again, if no
    /// message comes.
    pub fn turn(&mut self, roster: &mut Roster, watch: &Epoll, key: &str) -> Duration {
        if self.settled {
            roster.judge(&roster.wanted.clone(), |roster, service| {
                roster.is_free_for(roster.own, service)
            });
        }
        self.tell(roster, watch);
        if self.shut && deferred_close::has_room() && watch.add(&self.listener, LISTENER).is_ok() {
            self.shut = false;
        }
        let (numbers, found) = watch.ready();
        for &number in &numbers[..found] {
            match number {
                LISTENER => self.accept(watch),
                _ => self.hear(number, roster),
            }
        }
        self.look(roster, key);
        let withheld = |tag| if self.settled { 0 } else { bit(tag) };
        let owes = |to: &Connection| {
            !to.blocked && to.tag.is_some_and(|tag| to.owed & !withheld(tag) != 0)
        };
        match self.awaited {
            _ if roster.changed != 0 || self.connections.iter().any(owes) => Duration::ZERO,
            _ if self.shut => PAUSE,
            0 => NEVER,
            _ if self.is_late() => GRACE,
            _ => PAUSE,
        }
    }

    /// Tells all members what is new; and then answers those that asked, since by then the others,
    /// any of which may be the next owner, know what was decided. No member is answered before all
    /// processes were heard, which may have services from another owner.
    fn tell(&mut self, roster: &mut Roster, watch: &Epoll) {
        let changed = std::mem::take(&mut roster.changed);
        for to in &mut self.connections {
            to.owed |= changed & !to.tag.map_or(0, bit);
        }
        for answers in [false, true] {
            for to in &mut self.connections {
                let Some(own) = to.tag.map(bit) else { continue };
                if !answers {
                    to.tell(to.owed & !own, roster, watch);
                } else if self.settled && to.owed == own {
                    to.tell(own, roster, watch);
                }
            }
        }
    }

    /// Accepts the connections of new members.
    fn accept(&mut self, watch: &Epoll) {
        for _ in 0..MOST {
            let socket = match self.listener.accept() {
                Ok(socket) => socket,
                Err(why) if why.kind() == io::ErrorKind::ResourceBusy => {
                    self.shut = watch.remove(&self.listener).is_ok();
                    return;
                }
                Err(_) => return,
            };
            if !socket.is_same_user() {
                continue;
            }
            if self.connections.len() == MOST {
                // There is one without a tag: there are fewer tags than connections.
                let silent = self.connections.iter().position(|silent| silent.tag.is_none());
                self.connections.remove(silent.unwrap_or_default());
            }
            let number = self.last + 1;
            if watch.add(&socket, number).is_ok() {
                self.last = number;
                let new = Connection { number, socket, tag: None, owed: ALL, blocked: false };
                self.connections.push(new);
            }
        }
    }

    /// Takes one message of a member. A message that makes no sense closes the connection.
    fn hear(&mut self, number: u64, roster: &mut Roster) {
        let find = |connection: &Connection| connection.number == number;
        let Some(at) = self.connections.iter().position(find) else { return };
        let from = &mut self.connections[at];
        let mut bytes: Memory = [0; LONGEST + 1];
        let said = match from.socket.receive(&mut bytes) {
            Ok(ReceivedMessage::Nothing) => return,
            Ok(ReceivedMessage::Message(len, _)) => message::read(&bytes[..len]),
            _ => None,
        };
        match said {
            Some((tag, Some(asked)))
                if tag != roster.own && from.tag.is_none_or(|own| own == tag) =>
            {
                from.tag = Some(tag);
                from.owed |= bit(tag);
                self.awaited &= !bit(tag);
                // One process has the tag, so another connection with it is that of a dead process.
                self.connections.retain(|other| other.number == number || other.tag != Some(tag));
                let free = asked.into_iter().filter(|&service| roster.is_free_for(tag, service));
                roster.enter(tag, free.collect());
            }
            _ => {
                let closed = self.connections.remove(at);
                if let Some(tag) = closed.tag {
                    self.awaited |= bit(tag);
                    self.since = self.clock.now();
                }
            }
        }
    }

    /// Finds out which of the awaited tags no process has.
    fn look(&mut self, roster: &mut Roster, key: &str) {
        for tag in tags(self.awaited) {
            if claim(key, tag).is_ok() {
                self.awaited &= !bit(tag);
                roster.leave(tag);
            }
        }
        if !self.settled && (self.awaited == 0 || self.is_late()) {
            self.settled = true;
            roster.events.push_back(Event::BecameOwner);
        }
    }
}

impl Connection {
    /// Tells the member about the processes of some tags, until there is no more room.
    fn tell(&mut self, of: u64, roster: &Roster, watch: &Epoll) {
        let before = self.blocked;
        self.blocked = false;
        for tag in tags(of) {
            match self.socket.send(&message::write(tag, roster.of(tag)), None) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.blocked = true;
                    break;
                }
                // If the member is gone, its connection tells so.
                _ => self.owed &= !bit(tag),
            }
        }
        if before != self.blocked {
            // If this fails, the member is told the rest when it sends something itself.
            let _ = watch.watch_room(&self.socket, self.number, self.blocked);
        }
    }
}
