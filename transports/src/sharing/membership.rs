//! A process's part in sharing an interface.

use std::fmt;
use std::io;
use std::iter::{empty, once};
use std::os::fd::BorrowedFd;
use std::time::Duration;

use doorbell_core::nic::Numbering;
use doorbell_core::wire::ServiceId;

use super::error::{ServiceError, SharingError};
use super::event::Event;
use super::member::Member;
use super::message::SERVICES;
use super::owner::{NEVER, Owner, PAUSE};
use super::roster::Roster;
use super::tag::{TAG_BITS, TAGS, claim, owners, tagged};
use crate::device::Trouble;
use crate::sys;
use crate::sys::epoll::Epoll;
use crate::sys::epoll_timer::EpollTimer;
use crate::sys::interface::{self, Interface};
use crate::sys::unix::{self, Claim, Listener, Socket};

const WATCHING: &str = "watching sockets";

/// A process's part in sharing an interface. See the [module](crate::sharing).
///
/// The other processes take the drop of a membership for the end of the process: so the connection
/// manager and the device are to be dropped before.
pub struct Membership {
    /// The claim that holds the tag. It is dropped first, so that processes which hear of the end
    /// find the tag free.
    _claim: Claim,
    key: Box<str>,
    pub(super) roster: Roster,
    pub(super) role: Role,
    /// The epoll instance that watches all sockets.
    watch: Epoll,
    /// The epoll instance that watches `watch`, with a timer.
    timer: EpollTimer,
}

impl fmt::Debug for Membership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Membership")
            .field("key", &self.key)
            .field("tag", &self.roster.own)
            .finish_non_exhaustive()
    }
}

/// The role of a process among those that share an interface.
pub(super) enum Role {
    Owner(Owner),
    Member(Member),
    /// The process is neither owner nor member yet, or no longer, for the reason given.
    Seeking(String),
}

impl Membership {
    /// Shares whatever a key stands for with all processes that give the same key, in the same
    /// network namespace. For the device `packet` the key is `packet/INDEX`, with the number of the
    /// interface, since names may change. A key has at most 80 bytes. Turns must be taken in the
    /// same namespace, too.
    ///
    /// # Errors
    /// When processes of another user share it, there are too many processes, or the system
    /// refuses.
    pub fn join(key: &str) -> Result<Self, SharingError> {
        let watching = || SharingError::system(key, WATCHING);
        let (tag, claim) = claim_any(key)?;
        let watch = Epoll::new().map_err(watching())?;
        let mut timer = EpollTimer::new().map_err(watching())?;
        timer.arm(once(&watch), Some(Duration::ZERO)).map_err(watching())?;
        let (roster, role) = (Roster::new(tag), Role::Seeking(String::new()));
        let mut new = Self { _claim: claim, key: key.into(), roster, role, watch, timer };
        new.role = new.seek()?;
        if matches!(new.role, Role::Seeking(_)) && unix::is_anothers(&owners(key)) {
            return Err(SharingError::stranger(key, unix::holder(&owners(key))));
        }
        Ok(new)
    }

    /// Shares an interface with all processes that share it in this way.
    ///
    /// # Errors
    /// As [`join`](Self::join), and when there is no such interface.
    pub fn of_interface(name: &str) -> Result<Self, SharingError> {
        let found = Interface::named(name).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::InvalidInput => {
                let there = interface::names();
                SharingError::NoInterface { interface: name.into(), there, source }
            }
            _ => SharingError::system(name, "looking at the interface")(source),
        })?;
        Self::join(&format!("packet/{}", found.index))
    }

    /// Returns the tag of this process, which no other has.
    pub fn tag(&self) -> u32 {
        self.roster.own
    }

    /// Returns which queue pair numbers are this process's.
    pub fn numbering(&self) -> Numbering {
        Numbering { tag: self.tag(), tag_bits: TAG_BITS, ..Numbering::default() }
    }

    /// Returns whether this process [became](Event::BecameOwner) the owner.
    pub fn is_owner(&self) -> bool {
        matches!(&self.role, Role::Owner(owner) if owner.settled)
    }

    /// Asks for a service, to listen to it: [`Granted`](Event::Granted) or [`Taken`](Event::Taken)
    /// is the answer.
    ///
    /// # Errors
    /// When this process has asked for the service before, or for too many.
    pub fn listen(&mut self, service: ServiceId) -> Result<(), ServiceError> {
        if self.roster.wanted.contains(&service) {
            return Err(ServiceError::Already(service));
        }
        if self.roster.wanted.len() >= SERVICES {
            return Err(ServiceError::Full(service));
        }
        self.roster.wanted.insert(service);
        self.wake_after(Duration::ZERO);
        Ok(())
    }

    /// Gives a service back, or takes back the question for it. To be called when the connection
    /// manager has stopped listening.
    pub fn stop(&mut self, service: ServiceId) {
        self.roster.stop(service);
        self.wake_after(Duration::ZERO);
    }

    /// Returns the next event. If there is none, this first takes messages of the other processes;
    /// and if there is still none, it is time to sleep until the [readiness](Self::readiness)
    /// tells.
    ///
    /// The others are told what this process knows when it has taken all events, and acted upon
    /// them. So an owner that is slow to take events is never wrong, but all others wait for it.
    pub fn turn(&mut self) -> Option<Event> {
        if self.roster.events.is_empty() {
            self.attend();
        }
        self.roster.events.pop_front()
    }

    /// Returns a descriptor that is readable when there is something to do. It stays the same, and
    /// may stay in an epoll instance.
    pub fn readiness(&self) -> BorrowedFd<'_> {
        self.timer.readiness()
    }

    /// Returns what keeps this process from its part at this moment, if something does. The process
    /// goes on trying.
    pub fn trouble(&self) -> Option<Trouble> {
        let found = match &self.role {
            Role::Owner(owner) if !owner.settled => "not all processes there have come to this one",
            Role::Owner(_) => return None,
            Role::Member(member) if member.known => return None,
            Role::Member(_) => "the owner has not answered yet",
            Role::Seeking(why) => why,
        };
        let mut found = found.to_owned();
        if matches!(self.role, Role::Seeking(_)) && unix::is_anothers(&owners(&self.key)) {
            found.push_str(&format!(" (it is that of {})", unix::holder(&owners(&self.key))));
        }
        Some(Trouble {
            what: format!("sharing `{}`", self.key),
            found,
            advice: "if that lasts, a process there has stopped, has no file descriptor left, or is of \
                     another version or user: \
                     `ss -xap` lists who has names that begin with `@doorbell-`",
        })
    }

    /// Acts in this process's role, and sets the timer.
    fn attend(&mut self) {
        let after = match &mut self.role {
            Role::Owner(owner) => owner.turn(&mut self.roster, &self.watch, &self.key),
            Role::Member(member) => match member.turn(&mut self.roster) {
                Ok(()) => NEVER,
                Err(why) => {
                    // Another owner is looked for at once, but after a pause where each only hangs
                    // up.
                    let after = if member.known { Duration::ZERO } else { PAUSE };
                    self.role = Role::Seeking(format!("the owner is lost: {why}"));
                    after
                }
            },
            Role::Seeking(_) => {
                self.role = self.seek().unwrap_or_else(|why| Role::Seeking(why.to_string()));
                let found = !matches!(self.role, Role::Seeking(_));
                if found { Duration::ZERO } else { PAUSE }
            }
        };
        self.wake_after(after);
    }

    /// Becomes the owner if there is none, and else a member.
    fn seek(&mut self) -> Result<Role, SharingError> {
        let key = &*self.key;
        match Listener::by_name(&owners(key)) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            Err(error) => return Err(SharingError::system(key, "taking the owner's name")(error)),
            Ok(listener) => {
                let owner = Owner::new(listener, &self.watch, self.roster.own);
                self.roster.welcome();
                return owner.map(Role::Owner).map_err(SharingError::system(key, WATCHING));
            }
        }
        match Socket::connect(&owners(key)) {
            Ok(owner) if !owner.is_same_user() => Err(SharingError::stranger(key, owner.holder())),
            Ok(owner) => {
                let watched = self.watch.add(&owner, 0);
                watched.map_err(SharingError::system(key, WATCHING))?;
                Ok(Role::Member(Member::new(owner)))
            }
            // The owner does not listen yet, or has ended by now, or many others call it.
            Err(error) => match error.kind() {
                io::ErrorKind::ConnectionRefused | io::ErrorKind::WouldBlock => {
                    Ok(Role::Seeking(format!("the owner's name is taken, but: {error}")))
                }
                _ => Err(SharingError::system(key, "connecting to the owner")(error)),
            },
        }
    }

    /// Makes the readiness readable after some time.
    fn wake_after(&mut self, after: Duration) {
        // It can't fail: the timer of a live descriptor can be set, and the sockets are watched
        // already.
        let _ = self.timer.arm(empty::<BorrowedFd<'_>>(), Some(after));
    }
}

/// Takes a tag that is drawn at random, so that packets for a process that has ended hardly ever
/// find another process with its tag.
fn claim_any(key: &str) -> Result<(u32, Claim), SharingError> {
    let [drawn] = sys::random().map_err(SharingError::system(key, "getting random numbers"))?;
    // Each tag is tried twice: an owner that looks who is there takes free tags for a moment.
    for next in 0..2 * TAGS.end() {
        let tag = TAGS.start() + (u32::from(drawn) + next) % TAGS.end();
        match claim(key, tag) {
            Ok(claim) => return Ok((tag, claim)),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            Err(error) => return Err(SharingError::system(key, "taking a tag")(error)),
        }
    }
    let names = TAGS.map(|tag| tagged(key, tag));
    let stranger = names.into_iter().find(|name| unix::is_anothers(name));
    let stranger = stranger.map(|name| unix::holder(&name));
    Err(SharingError::Full { key: key.into(), stranger })
}
