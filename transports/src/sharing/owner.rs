//! The owner of an interface: it hears the others, decides who listens to what, and tells all.

use std::io;
use std::time::Duration;

use doorbell_core::time::Time;

use super::message::{self, LONGEST, Memory};
use super::roll::{Roll, bit, tags};
use super::{Event, NEVER, PAUSE, claim};
use crate::clock::Clock;
use crate::sys::closer;
use crate::sys::unix::{Listener, Received, Socket};
use crate::sys::watch::Watch;

/// The most connections: more than there are tags, for those that have not said theirs.
const MOST: usize = 80;

/// The number by which the listening socket is watched; connections have others.
const LISTENER: u64 = 0;

/// All tags.
const ALL: u64 = !1;

/// How long a process that is there may take to come to a new owner. Who takes longer has stopped,
/// or is another user's.
const GRACE: Duration = Duration::from_secs(1);

pub(super) struct Owner {
    listener: Listener,
    /// Whether nobody is taken in, since too much that strangers have passed waits to be closed.
    shut: bool,
    connections: Vec<Connection>,
    /// The number of the last connection.
    last: u64,
    /// The tags of those who are there, or may be, and are not connected.
    awaited: u64,
    /// Since when the last of them is.
    since: Time,
    /// Whether this process has called itself the owner.
    pub settled: bool,
    clock: Clock,
}

struct Connection {
    number: u64,
    socket: Socket,
    /// Once it has said so.
    tag: Option<u32>,
    /// The tags of those of whom it is to be told.
    owed: u64,
    /// Whether there was no room to tell it more.
    blocked: bool,
}

impl Owner {
    pub fn new(listener: Listener, watch: &Watch, own: u32) -> io::Result<Self> {
        watch.add(listener.raw(), LISTENER)?;
        let (clock, connections, awaited) = (Clock::new(), Vec::new(), ALL & !bit(own));
        let (last, since) = (LISTENER, clock.now());
        let shut = false;
        Ok(Self { listener, shut, connections, last, awaited, since, settled: false, clock })
    }

    /// How many connections there are.
    #[cfg(test)]
    pub fn held(&self) -> usize {
        self.connections.len()
    }

    fn is_late(&self) -> bool {
        self.clock.now().since(self.since) > GRACE
    }

    /// To be called when the program has taken all events: others are told what it has been told.
    /// After what time to do so again, though nothing is heard.
    pub fn turn(&mut self, roll: &mut Roll, watch: &Watch, key: &str) -> Duration {
        if self.settled {
            roll.judge(&roll.wanted.clone(), |roll, service| roll.is_free_for(roll.own, service));
        }
        self.tell(roll, watch);
        if self.shut && closer::has_room() && watch.add(self.listener.raw(), LISTENER).is_ok() {
            self.shut = false;
        }
        let (numbers, found) = watch.ready();
        for &number in &numbers[..found] {
            match number {
                LISTENER => self.accept(watch),
                _ => self.hear(number, roll),
            }
        }
        self.look(roll, key);
        let withheld = |tag| if self.settled { 0 } else { bit(tag) };
        let owes = |to: &Connection| {
            !to.blocked && to.tag.is_some_and(|tag| to.owed & !withheld(tag) != 0)
        };
        match self.awaited {
            _ if roll.changed != 0 || self.connections.iter().any(owes) => Duration::ZERO,
            _ if self.shut => PAUSE,
            0 => NEVER,
            _ if self.is_late() => GRACE,
            _ => PAUSE,
        }
    }

    /// Tells all what is new; and then those who asked what was decided, since by then the others,
    /// any of whom may be the next owner, know of it. Nobody is answered before all were heard who
    /// have what they ask for from another owner.
    fn tell(&mut self, roll: &mut Roll, watch: &Watch) {
        let changed = std::mem::take(&mut roll.changed);
        for to in &mut self.connections {
            to.owed |= changed & !to.tag.map_or(0, bit);
        }
        for answers in [false, true] {
            for to in &mut self.connections {
                let Some(own) = to.tag.map(bit) else { continue };
                if !answers {
                    to.tell(to.owed & !own, roll, watch);
                } else if self.settled && to.owed == own {
                    to.tell(own, roll, watch);
                }
            }
        }
    }

    fn accept(&mut self, watch: &Watch) {
        for _ in 0..MOST {
            let socket = match self.listener.accept() {
                Ok(socket) => socket,
                Err(why) if why.kind() == io::ErrorKind::ResourceBusy => {
                    self.shut = watch.remove(self.listener.raw()).is_ok();
                    return;
                }
                Err(_) => return,
            };
            if !socket.is_same_user() {
                continue;
            }
            if self.connections.len() == MOST {
                // Those with tags are fewer.
                let silent = self.connections.iter().position(|silent| silent.tag.is_none());
                self.connections.remove(silent.unwrap_or_default());
            }
            let number = self.last + 1;
            if watch.add(socket.raw(), number).is_ok() {
                self.last = number;
                let new = Connection { number, socket, tag: None, owed: ALL, blocked: false };
                self.connections.push(new);
            }
        }
    }

    /// Hears one message of a member's; one that makes no sense closes its connection.
    fn hear(&mut self, number: u64, roll: &mut Roll) {
        let find = |connection: &Connection| connection.number == number;
        let Some(at) = self.connections.iter().position(find) else { return };
        let from = &mut self.connections[at];
        let mut bytes: Memory = [0; LONGEST + 1];
        let said = match from.socket.receive(&mut bytes) {
            Ok(Received::Nothing) => return,
            Ok(Received::Message(len, _)) => message::read(&bytes[..len]),
            _ => None,
        };
        match said {
            Some((tag, Some(asked)))
                if tag != roll.own && from.tag.is_none_or(|own| own == tag) =>
            {
                from.tag = Some(tag);
                from.owed |= bit(tag);
                self.awaited &= !bit(tag);
                // Only one can have a tag: another connection by this one is a dead one's.
                self.connections.retain(|other| other.number == number || other.tag != Some(tag));
                let free = asked.into_iter().filter(|&service| roll.is_free_for(tag, service));
                roll.enter(tag, free.collect());
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

    /// Looks which of those who are awaited are not there at all.
    fn look(&mut self, roll: &mut Roll, key: &str) {
        for tag in tags(self.awaited) {
            if claim(key, tag).is_ok() {
                self.awaited &= !bit(tag);
                roll.leave(tag);
            }
        }
        if !self.settled && (self.awaited == 0 || self.is_late()) {
            self.settled = true;
            roll.events.push_back(Event::BecameOwner);
        }
    }
}

impl Connection {
    /// Tells it of some, until there is no more room.
    fn tell(&mut self, of: u64, roll: &Roll, watch: &Watch) {
        let before = self.blocked;
        self.blocked = false;
        for tag in tags(of) {
            match self.socket.send(&message::write(tag, roll.of(tag)), None) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.blocked = true;
                    break;
                }
                // If it is gone, that will be heard.
                _ => self.owed &= !bit(tag),
            }
        }
        if before != self.blocked {
            // Without this it would be told when it says something itself.
            let _ = watch.room(self.socket.raw(), self.number, self.blocked);
        }
    }
}
