//! Shared memory: processes and threads of one machine, found by name.
//!
//! Two rings of cache lines between each two of them, in memory that nobody can shrink; a record in
//! a ring is a packet and nothing else ([`shm_record`](doorbell_core::encap::shm_record)). Nothing can be lost,
//! so there is no ICRC, and how far a ring was read is the acknowledgement.
//!
//! Whoever runs as the same user in the same network namespace may link up: each side asks the kernel
//! who the other is before it says a word. A user who has no number in this user
//! namespace is the same as nobody, and neither is this process's if it has none. A name belongs to
//! whoever joined by it first, of any user, until he leaves; errors say who that is. Names leave
//! nothing behind, nor does any of this: memory and sockets are unnamed and go with the last who
//! holds them. A peer that leaves or dies closes its socket, of which this side's kernel tells; of a
//! process that has forked without `exec` and is killed, the fork keeps it open.
//!
//! Peers map memory that is passed by descriptor. From strangers the kernel lets none in, if it can
//! (Linux 6.16 and newer). What must be thrown away is closed by a thread of its own, since that may
//! take any time.
//!
//! A message that comes while its receiver polls costs one cache line's way and no system call. Who
//! [arms](Device::arm) says so in the ring, and is then woken by the socket, once.

pub(crate) mod floor;
mod link;
mod links;
mod meeting;
mod message;
mod ring;
mod sleep;
#[cfg(test)]
mod strangers;

use std::io;
use std::iter::once;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use doorbell_core::encap::{Full, Path, PathId};
use doorbell_core::nic::{Inbox, Outbox, Way};
use doorbell_core::payload::Payload;
use doorbell_core::time::Time;
use doorbell_core::wire::{Headers, PathMtu};

use crate::address::{Address, ReachError};
use crate::burst::Burst;
use crate::clock::Clock;
use crate::device::{Capabilities, Device, Statistics, Trouble};
use crate::grant::{Grant, GrantError, SharedMemory, Waiting};
use crate::open::OpenError;
use crate::sys;
use crate::sys::limit::Limit;
use crate::sys::process::PeerProcess;
use crate::sys::sentry::Sentry;
use crate::sys::unix::{self, Received, Socket};
use crate::sys::watch::Watch;

use link::{Link, Segment, Side, Standing};
use links::{AWAKE, Links, Set};
use meeting::Meeting;
use message::{LONGEST, Message};
use ring::Spare;
use sleep::{Shared, Written};

/// After how many looks that found nothing the sockets are looked at: a system call, which a frame
/// that comes just then has to wait for.
const TURNS: u32 = 2048;

/// After how many looks that found nothing, and after how many in all, since there may always be
/// something.
const ALL_AWAKE: [u32; 2] = [TURNS, 16 * TURNS];

/// The same while some links doze, whose sockets alone tell that they have something.
const SOME_DOZE: [u32; 2] = [TURNS / 32, TURNS / 4];

/// How many messages of one peer's socket are taken at once.
const MESSAGES: usize = 16;

/// How many looks in a row may find something before writers are told of what was settled: which is
/// otherwise done when nothing else is.
const MOST_BUSY: u32 = 4;

/// How many grants a peer may send before the program has taken any.
const MOST_GRANTS: usize = 64;

/// How many numbers of links that are no more are remembered, to be told again.
const MOST_STRAYS: usize = 64;

/// When to call somebody again at whom too many were waiting, and to take callers in again.
const AGAIN: Duration = Duration::from_millis(10);

/// How large a device of shared memory may grow.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct Limits {
    /// How many peers it has at most, up to 4096. Each takes a descriptor.
    pub peers: usize,
    /// The size of each ring in bytes: a power of two from 16 KiB to 4 MiB. A link has two, of the
    /// size that its smaller end allows, and takes the first 16 KiB of each when it is made. The
    /// rest is taken when a writer gets so far ahead of its reader, and kept as long as the link:
    /// streams go two to four times as fast through a ring that is longer than a processor's own
    /// cache.
    ///
    /// What is on its way, or read and not yet answered for, must fit, each packet in whole lines
    /// of 64 bytes: 240 KiB always do in a ring of 256 KiB or more.
    pub ring: usize,
    /// How many bytes this device may take for the rings that it writes, beside up to 256 KiB of
    /// each; what peers take for those that they write is on their account. A ring that gets no
    /// more goes on with what it has.
    pub spare: usize,
}

impl Default for Limits {
    /// 4096 peers, and rings of 4 MiB, for which 64 MiB may be taken.
    fn default() -> Self {
        Self { peers: links::MOST, ring: 4 << 20, spare: 64 << 20 }
    }
}

/// Shared memory with whoever else joined on this machine. See the [module](self).
pub struct Shm {
    links: Links,
    /// The place of the link that spoke last.
    at: usize,
    burst: Burst,
    /// Links that were written to since the last flush.
    unflushed: Set,
    /// Links that were read from since the last settling.
    unsettled: Set,
    /// Links that are to be told what was settled, when there is nothing else to do.
    untold: Set,
    /// Links whose peers are to be woken. Empty but while that is found out.
    woken: Set,
    /// Links that are to be taken down.
    leaving: Set,
    /// Those that were taken down last, and how far their peers had come.
    last: Vec<(PathId, u64)>,
    /// Numbers of links that are no more, and were sent to.
    strays: Vec<PathId>,
    /// How many times it was looked since the sockets were looked at.
    turns: u32,
    /// After how many looks that found nothing, and after how many in all, the sockets are looked
    /// at.
    turns_to_attend: [u32; 2],
    /// After how many looks at the sockets silent links doze.
    attends_to_doze: u32,
    /// How many looks in a row have found something.
    busy: u32,
    armed: bool,
    /// Whether the timer was set meanwhile, to have whoever sleeps look at once.
    called_back: bool,
    statistics: Statistics,
    grants: Waiting,
    watch: Watch,
    sentry: Sentry,
    meeting: Meeting,
    clock: Clock,
    address: Address,
    capabilities: Capabilities,
}

impl Shm {
    /// Joins by a name, which others then [reach](Device::reach) as `shm:NAME`.
    ///
    /// # Errors
    /// When somebody has that name, or it is longer than 90 bytes, or empty, or has control
    /// characters in it.
    pub fn join(name: &str) -> Result<Self, OpenError> {
        Self::join_within(name, Limits::default())
    }

    /// Joins by a name that nobody else has, whatever the user, the process and the container:
    /// `auto/` and a random number of 64 bits. [`Device::address`] tells it, for peers to reach
    /// this device by.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn join_unique() -> Result<Self, OpenError> {
        let drawn = sys::random().map_err(|source| {
            let what = "drawing a name".to_owned();
            OpenError::System { device: "shm", what, source }
        })?;
        Self::join(&format!("auto/{:016x}", u64::from_ne_bytes(drawn)))
    }

    /// The same with other limits.
    ///
    /// # Errors
    /// As [`join`](Self::join), and when the limits can't be.
    pub fn join_within(name: &str, limits: Limits) -> Result<Self, OpenError> {
        let what = || format!("the name `{name}`");
        if let Some(why) = message::not_a_name(name) {
            return Err(OpenError::Name { device: "shm", name: name.into(), why });
        }
        let mut joined = Self::new(name, limits)?;
        match joined.listen() {
            Ok(()) => Ok(joined),
            Err(source) if source.kind() == io::ErrorKind::AddrInUse => Err(OpenError::Taken {
                device: "shm",
                what: what(),
                by: Some(unix::holder(&meeting::listening(name))),
                source,
                advice: "take another, or end that process: a name is one process's at a time, \
                         whoever its user is",
            }),
            Err(source) => Err(OpenError::System { device: "shm", what: what(), source }),
        }
    }

    /// Two devices that are linked to each other, and to nobody else: [reach](Device::reach) leads
    /// from the one to the [address](Device::address) of the other.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn pair() -> Result<[Self; 2], OpenError> {
        Self::pair_within(Limits::default())
    }

    /// The same with other limits.
    ///
    /// # Errors
    /// When the system refuses, or the limits can't be.
    pub fn pair_within(limits: Limits) -> Result<[Self; 2], OpenError> {
        static PAIRS: AtomicU64 = AtomicU64::new(0);
        let number = PAIRS.fetch_add(1, Ordering::Relaxed);
        let names = ["a", "b"].map(|end| format!("in-process/{number}/{end}"));
        let mut ends = [Self::new(&names[0], limits)?, Self::new(&names[1], limits)?];
        let mut link = || -> io::Result<()> {
            let segment = Segment::new(lines(limits))?;
            let [a, b] = &mut ends;
            let [here, there] = Socket::pair()?;
            a.link_at_once(|id| Ok(Link::new(id, &segment, Side::Caller, here, &names[1])))?;
            b.link_at_once(|id| Ok(Link::new(id, &segment, Side::Called, there, &names[0])))?;
            Ok(())
        };
        let what = "a pair".to_owned();
        link().map_err(|source| OpenError::System { device: "shm", what, source })?;
        Ok(ends)
    }

    fn new(name: &str, limits: Limits) -> Result<Self, OpenError> {
        let system = |what: &str, source| {
            let what = what.to_owned();
            OpenError::System { device: "shm", what, source }
        };
        let sizes = (ring::FEWEST as usize * 64)..=(ring::MOST as usize * 64);
        if !(1..=links::MOST).contains(&limits.peers)
            || !limits.ring.is_power_of_two()
            || !sizes.contains(&limits.ring)
        {
            let why = "peers may be 1 to 4096, and rings a power of two from 16 KiB to 4 MiB";
            let source = io::Error::new(io::ErrorKind::InvalidInput, why);
            return Err(system(&format!("{limits:?}"), source));
        }
        let watch = Watch::new().map_err(|source| system("an epoll", source))?;
        let sentry = Sentry::new().map_err(|source| system("an epoll and a timer", source))?;
        Ok(Self {
            links: Links::new(limits.peers, Spare::new(limits.spare)),
            at: 0,
            burst: Burst::new(),
            unflushed: Set::default(),
            unsettled: Set::default(),
            untold: Set::default(),
            woken: Set::default(),
            leaving: Set::default(),
            last: Vec::new(),
            strays: Vec::with_capacity(MOST_STRAYS),
            turns: 0,
            turns_to_attend: ALL_AWAKE,
            attends_to_doze: 1,
            busy: 0,
            armed: false,
            called_back: false,
            statistics: Statistics::default(),
            grants: Waiting::default(),
            watch,
            sentry,
            meeting: Meeting::new(name, lines(limits)),
            clock: Clock::new(),
            address: Address::Shm(name.into()),
            capabilities: Capabilities {
                name: "shm",
                mtu: PathMtu::Mtu4096,
                run: 1,
                segmentation: false,
                checksum: false,
                lossless: true,
                mapping: true,
                simulated: false,
                memory: (limits.peers * Segment::first_bytes(lines(limits)))
                    .saturating_add(limits.spare),
            },
        })
    }

    /// Hands the next record of any link to `inbox`, if there is one. Who spoke last is looked at
    /// first.
    #[inline]
    fn take(&mut self, inbox: &mut impl Inbox) -> bool {
        for _ in 0..self.links.awake() {
            if self.at >= self.links.awake() {
                self.at = 0;
            }
            let (slot, link) = self.links.at(self.at);
            if link.standing != Standing::Broken {
                match link.reader.take(link.id, inbox) {
                    Ok(Some(bytes)) => {
                        self.unsettled.insert(slot);
                        self.statistics.frames_received += 1;
                        self.statistics.bytes_received += bytes as u64;
                        return true;
                    }
                    Ok(None) => {}
                    Err(ring::Nonsense) => self.break_link(slot),
                }
            }
            self.at += 1;
        }
        false
    }

    /// Whoever is at the other end wrote what can't be: there is no telling what else it did.
    #[cold]
    fn break_link(&mut self, slot: u16) {
        let Some(link) = self.links.slot(slot) else { return };
        if link.standing != Standing::Broken {
            tracing::warn!(peer = %link.name, "what it wrote makes no sense: its link is taken down");
            link.standing = Standing::Broken;
            self.statistics.broken += 1;
        }
        self.leaving.insert(slot);
        self.call_back();
    }

    /// Has whoever sleeps look again at once, since there is something to tell.
    fn call_back(&mut self) {
        if self.armed {
            self.called_back = true;
            // It is armed already, and a live timer can always be set.
            let _ = self.sentry.arm(once(self.watch.as_raw_fd()), Some(Duration::ZERO));
        }
    }

    /// Tells the writers of what was settled. Answers to what was read left long ago, and would
    /// have waited for the line that is written here to come over.
    #[inline]
    fn tell(&mut self) {
        if self.untold.is_empty() {
            return;
        }
        while let Some(slot) = self.untold.pop() {
            if let Some(link) = self.links.slot(slot) {
                link.tell();
                self.woken.insert(slot);
            }
        }
        wake(&mut self.links, &mut self.woken);
    }

    /// Has silent links doze, if there are more links than are looked at in each turn, and sees to it
    /// that the sockets are looked at more often while any do.
    pub(super) fn see_who_dozes(&mut self) {
        self.attends_to_doze -= 1;
        if self.attends_to_doze == 0 {
            if self.links.awake() > AWAKE && !self.armed {
                self.links.doze();
            }
            self.attends_to_doze = if self.links.any_doze() { TURNS / SOME_DOZE[0] } else { 1 };
        }
        self.turns_to_attend = if self.links.any_doze() { SOME_DOZE } else { ALL_AWAKE };
    }

    /// Hears what a peer says by its socket.
    fn listen_to(&mut self, id: PathId) {
        // Whatever it says, there may be something in its ring, too.
        if self.links.get(id).is_some() {
            self.links.rouse(links::slot(id));
        }
        for _ in 0..MESSAGES {
            let Some(link) = self.links.get(id).filter(|link| link.standing == Standing::Up) else {
                return;
            };
            let mut bytes = [0; LONGEST + 1];
            let (len, fd) = match link::receive(&link.socket, &mut bytes) {
                Received::Message(len, fd) => (len, fd),
                Received::Nothing => return,
                Received::NoDescriptor => {
                    let why = Limit::Descriptors.refused("taking in memory that was granted");
                    tracing::warn!(peer = %link.name, %why, "its link is taken down");
                    link.standing = Standing::Broken;
                    self.statistics.broken += 1;
                    return self.break_link(links::slot(id));
                }
                Received::End => {
                    link.standing = Standing::Left;
                    return self.leaving.insert(links::slot(id));
                }
            };
            let sense = match (Message::read(&bytes[..len]), fd) {
                (Some(Ok(Message::Bell)), None) => true,
                (Some(Ok(Message::GrantTaken)), None) if link.granted > 0 => {
                    link.granted -= 1;
                    true
                }
                (Some(Ok(Message::Grant { tag, len })), Some(fd)) if link.waiting < MOST_GRANTS => {
                    link.waiting += 1;
                    let added = self.grants.add(id, tag, fd, len);
                    if let Err(why) = &added {
                        tracing::warn!(peer = %link.name, %why, "what it grants is not mapped");
                    }
                    added.is_ok()
                }
                _ => false,
            };
            if !sense {
                return self.break_link(links::slot(id));
            }
        }
    }

    /// Tells of links whose peers are gone, when all that they wrote has been read, and takes them
    /// down. How many frames were still to be read.
    #[cold]
    fn take_down(&mut self, inbox: &mut impl Inbox) -> usize {
        let mut found = 0;
        self.last.clear();
        while let Some(slot) = self.leaving.pop() {
            let Some(link) = self.links.slot(slot) else { continue };
            let id = link.id;
            // Not more than a ring holds: somebody else may still write there.
            while link.standing == Standing::Left && found < ring::MOST as usize {
                match link.reader.take(id, inbox) {
                    Ok(Some(bytes)) => {
                        found += 1;
                        self.statistics.frames_received += 1;
                        self.statistics.bytes_received += bytes as u64;
                    }
                    Ok(None) | Err(ring::Nonsense) => break,
                }
            }
            self.last.push((id, link.writer.delivered(link.reader.read())));
            self.links.remove(slot);
            self.grants.forget(id);
            for set in [&mut self.unflushed, &mut self.unsettled, &mut self.untold] {
                set.remove(slot);
            }
            inbox.gone(id);
        }
        for id in self.strays.drain(..) {
            inbox.gone(id);
        }
        found
    }

    /// How far a peer had come that has left.
    #[cold]
    fn last_delivered(&self, path: PathId) -> u64 {
        self.last.iter().find(|(id, _)| *id == path).map_or(0, |&(_, delivered)| delivered)
    }

    /// Somebody sends along a path that leads nowhere: it is told again that the peer is gone.
    #[cold]
    fn stray(&mut self, path: PathId) -> Result<u64, Full> {
        if !self.strays.contains(&path) {
            if self.strays.len() == MOST_STRAYS {
                return Err(Full);
            }
            self.strays.push(path);
            self.call_back();
        }
        // Never delivered.
        Ok(u64::MAX)
    }
}

/// Wakes those of some peers that sleep, and forgets who they were.
#[inline]
fn wake(links: &mut Links, peers: &mut Set) {
    let written = Written::<Shared>::new();
    while let Some(slot) = peers.pop() {
        if let Some(link) = links.slot(slot) {
            link.wake(&written);
        }
    }
}

/// How many lines a ring has at most.
fn lines(limits: Limits) -> u32 {
    (limits.ring / 64) as u32
}

impl Drop for Shm {
    fn drop(&mut self) {
        // Whoever waits for what was settled is to hear of it before the end.
        self.tell();
    }
}

impl Outbox for Shm {
    // Into each caller: otherwise a frame's way takes 530 instructions instead of 420.
    #[inline(always)]
    fn push(&mut self, path: &Path, headers: Headers, payload: impl Payload) -> Result<u64, Full> {
        let id = path.id();
        let Some(link) = self.links.get(id) else { return self.stray(id) };
        match link.writer.push(&headers, payload) {
            Ok((end, bytes)) => {
                self.unflushed.insert(links::slot(id));
                self.statistics.frames_sent += 1;
                self.statistics.packets_sent += 1;
                self.statistics.bytes_sent += bytes as u64;
                Ok(end)
            }
            Err(full) => {
                if link.writer.nonsense() {
                    self.break_link(links::slot(id));
                }
                Err(full)
            }
        }
    }

    #[inline]
    fn prepare(&mut self, path: PathId) {
        if let Some(link) = self.links.get(path) {
            link.writer.claim_early();
        }
    }

    #[inline]
    fn flush(&mut self) {
        if !self.unflushed.is_empty() {
            wake(&mut self.links, &mut self.unflushed);
        }
    }

    #[inline]
    fn delivered(&mut self, path: PathId) -> u64 {
        let Some(link) = self.links.get(path) else { return self.last_delivered(path) };
        let delivered = link.writer.delivered(link.reader.read());
        if link.writer.nonsense() {
            self.break_link(links::slot(path));
        }
        delivered
    }
}

impl Device for Shm {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    #[inline]
    fn receive(&mut self, inbox: &mut impl Inbox) -> usize {
        let mut burst = self.burst;
        let mut found = burst.take(|| self.take(inbox));
        self.burst = burst;
        if !self.leaving.is_empty() || !self.strays.is_empty() {
            found += self.take_down(inbox);
        }
        self.turns += 1;
        if found == 0 {
            self.tell();
            self.busy = 0;
            if self.turns >= self.turns_to_attend[0] {
                self.attend();
            }
        } else {
            self.busy += 1;
            if self.busy == MOST_BUSY {
                // A peer of which too little is read to hear of it otherwise would wait for ever.
                self.tell();
                self.busy = 0;
            }
            if found == Burst::MOST {
                // Whoever has so much to say lets others speak.
                self.at += 1;
            }
            if self.turns >= self.turns_to_attend[1] {
                self.attend();
            }
        }
        found
    }

    #[inline]
    fn settle(&mut self, owes: impl Fn(PathId) -> bool) {
        if self.unsettled.is_empty() {
            return;
        }
        let Self { woken: urgent, .. } = self;
        self.unsettled.retain(|slot| {
            let Some(link) = self.links.slot(slot) else { return false };
            if owes(link.id) {
                return true;
            }
            // What is settled while somebody is about to sleep would wait for an idle turn in vain.
            match link.reader.settle() || self.armed {
                true => {
                    link.tell();
                    urgent.insert(slot);
                }
                false => self.untold.insert(slot),
            }
            false
        });
        if !urgent.is_empty() {
            wake(&mut self.links, urgent);
        }
    }

    #[inline]
    fn now(&self) -> Time {
        self.clock.now()
    }

    fn address(&self) -> &Address {
        &self.address
    }

    fn reach(&mut self, peer: &Address) -> Result<Option<Way>, ReachError> {
        self.way_to(peer)
    }

    fn readiness(&self) -> BorrowedFd<'_> {
        self.sentry.readiness()
    }

    fn arm(&mut self, until: Option<Time>) -> io::Result<()> {
        self.statistics.sleeps += 1;
        let after = until.map(|until| until.since(self.now()));
        let again = std::mem::take(&mut self.meeting.busy) || self.meeting.shut;
        let again = again.then_some(AGAIN);
        // Of whoever is armed anew, the timer may have been set to wake him at once.
        let called = self.called_back.then_some(Duration::ZERO);
        let after = after.into_iter().chain(again).chain(called).min();
        self.sentry.arm(once(self.watch.as_raw_fd()), after)?;
        self.armed = true;
        sleep::fall_asleep::<Shared>(self.links.all_awake().map(|link| link.reader.sleeping()));
        Ok(())
    }

    fn disarm(&mut self) {
        self.sentry.disarm(once(self.watch.as_raw_fd()));
        (self.armed, self.called_back) = (false, false);
        sleep::wake_up::<Shared>(self.links.all_awake().map(|link| link.reader.sleeping()));
        self.attend();
    }

    fn trouble(&mut self) -> Option<Trouble> {
        self.held_up()
    }

    fn statistics(&mut self) -> Statistics {
        self.statistics
    }

    fn grant(&mut self, to: PathId, tag: u128, memory: &SharedMemory) -> Result<(), GrantError> {
        let descriptor = memory.descriptor().ok_or(GrantError::Piece)?;
        // What the peer has taken makes room. And what was to wake whoever sleeps may be taken now.
        self.listen_to(to);
        self.call_back();
        let up = |link: &&mut Link| link.standing == Standing::Up;
        let link = self.links.get(to).filter(up).ok_or(GrantError::NoLink(to))?;
        let grant = Message::Grant { tag, len: memory.len() as u64 };
        let waiting = GrantError::Waiting { most: MOST_GRANTS };
        if link.granted == MOST_GRANTS {
            return Err(waiting);
        }
        match link.say(grant, Some(descriptor)) {
            Ok(()) => {
                link.granted += 1;
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(waiting),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(GrantError::NoLink(to)),
            Err(error) => Err(error.into()),
        }
    }

    fn peer_process(&mut self, link: PathId) -> Option<PeerProcess> {
        PeerProcess::behind(self.links.get(link)?.socket.raw())
    }

    fn granted(&mut self) -> Option<Grant> {
        if self.grants.is_empty() {
            self.attend();
        }
        let grant = self.grants.take()?;
        if let Some(link) = self.links.get(grant.from) {
            link.waiting -= 1;
            // There is room: a peer that reads nothing only harms itself.
            let _ = link.say(Message::GrantTaken, None);
        }
        Some(grant)
    }
}
