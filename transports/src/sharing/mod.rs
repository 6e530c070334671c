//! Several processes on one interface: who of them is its owner, who listens to what, and which tag
//! each of them has.
//!
//! Every process on an interface sees every datagram for queue pair 1; names of connections and
//! numbers of queue pairs carry a tag that says whose they are; and one process, the owner, answers
//! for what is nobody's. A [`Membership`] is a process's part in agreeing upon all this.
//!
//! It rests on one thing: in a network namespace, the kernel gives an abstract Unix socket's name
//! to one process at a time, and takes it back when that process ends, be it killed.
//!
//! * A **tag** is such a name. No two living processes can have the same, whoever is the owner.
//! * The **owner** is who has the owner's name. All others are connected to it, and hear at once of
//!   its end: each tries to take the name, one gets it, and the rest connect to that one.
//! * A **service** is granted by the owner, to one process at a time. The others are told before
//!   the one that asked: any of them may be the next owner.
//!
//! A new owner does not call itself so, and grants nothing, before it has heard everybody who is
//! there (whose tag is taken); so it never refuses or gives away what somebody serves. Meanwhile
//! nobody refuses anything, and peers ask again. Who is there and does not come for a second
//! (stopped, say) is waited for no longer.
//!
//! All are processes of one user: others are not spoken to, and whoever finds another user's process
//! in the way is told whose it is. There are at most 63 of them, with
//! [`SERVICES`] each, which is what bounds memory: nothing is queued.
//!
//! The driver tells its [`ConnectionManager`](doorbell_core::cm::ConnectionManager), which was made
//! with [`TAG_BITS`] and not as an owner:
//!
//! | event | what it tells |
//! |---|---|
//! | [`Welcome`](Event::Welcome) | nothing; the device may be opened now, and connections made |
//! | [`BecameOwner`](Event::BecameOwner) | `set_owner(true)` |
//! | [`Joined`](Event::Joined), [`Left`](Event::Left) | `set_vacant`, with `false` or `true` |
//! | [`Listens`](Event::Listens), [`StopsListening`](Event::StopsListening) | `others_listen` |
//! | [`Granted`](Event::Granted) | `listen` |
//! | [`Taken`](Event::Taken) | `stop`, if it was granted before |
//!
//! It has no thread and never waits: see [`Membership::turn`].
//!
//! ```
//! use doorbell_core::wire::ServiceId;
//! use doorbell_transports::sharing::{Event, Membership};
//!
//! // Two in one process are as good as one in each of two.
//! # let key = &format!("example/{}", std::process::id());
//! let mut one = Membership::join(key)?;
//! let mut other = Membership::join(key)?;
//! assert_ne!(one.tag(), other.tag());
//! other.listen(ServiceId(7))?;
//! loop {
//!     while one.turn().is_some() {}
//!     match other.turn() {
//!         Some(Event::Granted(service)) => break assert_eq!(service, ServiceId(7)),
//!         _ => continue, // or sleep until the readiness tells
//!     }
//! }
//! assert!(one.is_owner() && !other.is_owner());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
pub(crate) mod floor;
#[cfg(test)]
mod hostile;
mod member;
mod message;
mod owner;
mod roll;

use std::fmt;
use std::io;
use std::iter::{empty, once};
use std::ops::RangeInclusive;
use std::os::fd::BorrowedFd;
use std::os::fd::RawFd;
use std::time::Duration;

use doorbell_core::nic::Numbering;
use doorbell_core::wire::ServiceId;

use crate::device::Trouble;
use crate::sys;
use crate::sys::interface::{self, Interface};
use crate::sys::sentry::Sentry;
use crate::sys::unix::{self, Claim, Listener, Socket};
use crate::sys::watch::Watch;
use member::Member;
use owner::Owner;
use roll::Roll;

pub use error::{ServiceError, SharingError};

/// The most services that a process listens to.
pub const SERVICES: usize = 256;

/// How many bits tags have. All processes of an interface must agree, so it is not to be chosen.
pub const TAG_BITS: u32 = 6;

/// The tags. 0 is left to those who share with nobody, and keeps clear of InfiniBand's own numbers.
const TAGS: RangeInclusive<u32> = 1..=(1 << TAG_BITS) - 1;

/// Until something is tried again that nothing tells of.
const PAUSE: Duration = Duration::from_millis(10);

/// A timer that is of no concern.
const NEVER: Duration = Duration::from_secs(3600);

const WATCHING: &str = "watching sockets";

/// What a process that shares an interface is told.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Event {
    /// The tag is known to who must know it: from here on it may be used. Comes once.
    Welcome,
    /// This process answers for the whole interface, until it ends. Who was the owner has ended.
    BecameOwner,
    /// Another process is there, of this tag.
    Joined(u32),
    /// There is none of this tag: told of one that has ended, and by a new owner of all that are
    /// free.
    Left(u32),
    /// Another process listens to this service.
    Listens(ServiceId),
    /// No other process listens to it any more.
    StopsListening(ServiceId),
    /// The service that was asked for is this process's.
    Granted(ServiceId),
    /// It is another's. If it was granted before, it is no more: two had it since the owner was
    /// killed, and a process stopped, in the worst moment.
    Taken(ServiceId),
}

/// A process's part in sharing an interface. See the [module](self).
///
/// When it is dropped, the others take that for the end of the process: so let the connection
/// manager and the device go before.
pub struct Membership {
    /// Holds the tag. It is dropped first: who hears of the end finds the tag free.
    _claim: Claim,
    key: Box<str>,
    roll: Roll,
    role: Role,
    /// All sockets.
    watch: Watch,
    /// The same, and a timer.
    sentry: Sentry,
}

impl fmt::Debug for Membership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Membership")
            .field("key", &self.key)
            .field("tag", &self.roll.own)
            .finish_non_exhaustive()
    }
}

enum Role {
    Owner(Owner),
    Member(Member),
    /// Neither yet, or no more; and why that is so.
    Seeking(String),
}

/// The name that the owner has.
fn owners(key: &str) -> Vec<u8> {
    format!("doorbell-owner/{key}").into_bytes()
}

/// The name that whoever has a tag has.
fn tagged(key: &str, tag: u32) -> Vec<u8> {
    format!("doorbell-tag/{tag}/{key}").into_bytes()
}

/// Takes a tag, as long as what is returned lives.
fn claim(key: &str, tag: u32) -> io::Result<Claim> {
    Claim::take(&tagged(key, tag))
}

/// Takes any tag. Which, is luck: so what is under way for a process that has ended hardly ever
/// finds another by its tag.
fn claim_any(key: &str) -> Result<(u32, Claim), SharingError> {
    let [luck] = sys::random().map_err(SharingError::system(key, "getting random numbers"))?;
    // Each twice: an owner that looks who is there has free ones for a moment.
    for next in 0..2 * TAGS.end() {
        let tag = TAGS.start() + (u32::from(luck) + next) % TAGS.end();
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

impl Membership {
    /// Shares whatever a key stands for with all processes that give the same key, in the same
    /// network namespace. For the device `packet` that is `packet/INDEX`, the interface's number:
    /// names may change. The most are 80 bytes. Turns must be taken in that namespace, too.
    ///
    /// # Errors
    /// When another user shares it, there are too many processes, or the system refuses.
    pub fn join(key: &str) -> Result<Self, SharingError> {
        let watching = || SharingError::system(key, WATCHING);
        let (tag, claim) = claim_any(key)?;
        let watch = Watch::new().map_err(watching())?;
        let mut sentry = Sentry::new().map_err(watching())?;
        sentry.arm(once(watch.as_raw_fd()), Some(Duration::ZERO)).map_err(watching())?;
        let (roll, role) = (Roll::new(tag), Role::Seeking(String::new()));
        let mut new = Self { _claim: claim, key: key.into(), roll, role, watch, sentry };
        new.role = new.seek()?;
        if matches!(new.role, Role::Seeking(_)) && unix::is_anothers(&owners(key)) {
            return Err(SharingError::stranger(key, unix::holder(&owners(key))));
        }
        Ok(new)
    }

    /// Shares an interface with all processes that do the same.
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

    /// The tag that this process has, and no other.
    pub fn tag(&self) -> u32 {
        self.roll.own
    }

    /// Which queue pair numbers are this process's.
    pub fn numbering(&self) -> Numbering {
        Numbering { tag: self.tag(), tag_bits: TAG_BITS, ..Numbering::default() }
    }

    /// Whether this process [became](Event::BecameOwner) the owner.
    pub fn is_owner(&self) -> bool {
        matches!(&self.role, Role::Owner(owner) if owner.settled)
    }

    /// Asks for a service, to listen to it: [`Granted`](Event::Granted) or [`Taken`](Event::Taken)
    /// is the answer.
    ///
    /// # Errors
    /// When it was asked for before, or there are too many.
    pub fn listen(&mut self, service: ServiceId) -> Result<(), ServiceError> {
        if self.roll.wanted.contains(&service) {
            return Err(ServiceError::Already(service));
        }
        if self.roll.wanted.len() >= SERVICES {
            return Err(ServiceError::Full(service));
        }
        self.roll.wanted.insert(service);
        self.wake_after(Duration::ZERO);
        Ok(())
    }

    /// Gives a service back, or asks for it no more. To be called when the connection manager has
    /// stopped.
    pub fn stop(&mut self, service: ServiceId) {
        self.roll.stop(service);
        self.wake_after(Duration::ZERO);
    }

    /// The next event; and when there are none, looks what the others say. After none it is time to
    /// sleep until the [readiness](Self::readiness) tells.
    ///
    /// The others are told what this process knows when it has taken all events, and acted upon
    /// them: so an owner that is slow to do so can't be wrong, but all wait for it.
    pub fn turn(&mut self) -> Option<Event> {
        if self.roll.events.is_empty() {
            self.attend();
        }
        self.roll.events.pop_front()
    }

    /// What is readable when there is something to do. It stays the same, and may stay in an epoll.
    pub fn readiness(&self) -> BorrowedFd<'_> {
        self.sentry.readiness()
    }

    /// What keeps this process from its part at this moment, if something does. It goes on trying.
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

    fn attend(&mut self) {
        let after = match &mut self.role {
            Role::Owner(owner) => owner.turn(&mut self.roll, &self.watch, &self.key),
            Role::Member(member) => match member.turn(&mut self.roll) {
                Ok(()) => NEVER,
                Err(why) => {
                    // At once, but not again and again where somebody only hangs up.
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
                let owner = Owner::new(listener, &self.watch, self.roll.own);
                self.roll.welcome();
                return owner.map(Role::Owner).map_err(SharingError::system(key, WATCHING));
            }
        }
        match Socket::connect(&owners(key)) {
            Ok(owner) if !owner.is_same_user() => Err(SharingError::stranger(key, owner.holder())),
            Ok(owner) => {
                let watched = self.watch.add(owner.raw(), 0);
                watched.map_err(SharingError::system(key, WATCHING))?;
                Ok(Role::Member(Member::new(owner)))
            }
            // It has the name and does not listen yet, or has ended by now; or many are before us.
            Err(error) => match error.kind() {
                io::ErrorKind::ConnectionRefused | io::ErrorKind::WouldBlock => {
                    Ok(Role::Seeking(format!("the owner's name is taken, but: {error}")))
                }
                _ => Err(SharingError::system(key, "connecting to the owner")(error)),
            },
        }
    }

    fn wake_after(&mut self, after: Duration) {
        // A live descriptor's timer can always be set; what is watched is so from the beginning.
        let _ = self.sentry.arm(empty::<RawFd>(), Some(after));
    }
}
