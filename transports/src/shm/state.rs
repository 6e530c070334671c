//! The parts of a device, and what several of its activities do with them.

use std::io;
use std::iter::once;
use std::time::Duration;

use doorbell_core::encap::{Full, PathId};
use doorbell_core::wire::PathMtu;

use super::handshakes::Handshakes;
use super::limits::Limits;
use super::link::{Link, PeerState, Segment, Side};
use super::links::{self, AWAKE, Links};
use super::ring::{self, Spare};
use super::sleep::{self, Shared, Written};
use super::slot_set::SlotSet;
use crate::address::Address;
use crate::burst::Burst;
use crate::clock::Clock;
use crate::device::{Capabilities, Statistics};
use crate::grant::UntakenGrants;
use crate::open::DeviceError;
use crate::sys::epoll::Epoll;
use crate::sys::epoll_timer::EpollTimer;
use crate::sys::unix::Socket;

/// After how many looks that found nothing the sockets are looked at. That is a system call, which
/// a frame that comes just then has to wait for.
const TURNS: u32 = 2048;

/// After how many looks that found nothing, and after how many looks of any kind, the sockets are
/// looked at. The second number is for devices where each look finds something.
const ALL_AWAKE: [u32; 2] = [TURNS, 16 * TURNS];

/// The two numbers of [`ALL_AWAKE`] while some links doze, since only sockets tell that a dozing
/// link has something.
const SOME_DOZE: [u32; 2] = [TURNS / 32, TURNS / 4];

/// The most numbers of former links that wait to be told again, after something was sent there.
const MOST_STRAYS: usize = 64;

/// Shared memory with the other devices that joined on this machine. See the
/// [module](crate::shm).
pub struct Shm {
    pub(super) links: Links,
    /// The place, among the links that are awake, of the link from which something came last.
    pub(super) at: usize,
    pub(super) burst: Burst,
    /// Links that were written to since the last flush.
    pub(super) unflushed: SlotSet,
    /// Links that were read from since the last settling.
    pub(super) unsettled: SlotSet,
    /// Links whose peers are to be told what was settled, when there is nothing else to do.
    pub(super) untold: SlotSet,
    /// Links whose peers are to be woken. The set is empty except while links are gathered for
    /// that.
    pub(super) woken: SlotSet,
    /// Links that are to be taken down.
    pub(super) leaving: SlotSet,
    /// The links that were taken down last, and how far their peers had come.
    pub(super) last: Vec<(PathId, u64)>,
    /// Numbers of former links, along which something was sent since.
    pub(super) strays: Vec<PathId>,
    /// How many looks at the links there were since the sockets were looked at.
    pub(super) turns: u32,
    /// After how many looks that found nothing, and after how many of any kind, the sockets are
    /// looked at.
    pub(super) turns_to_attend: [u32; 2],
    /// After how many more looks at the sockets silent links are put to doze.
    pub(super) attends_to_doze: u32,
    /// How many looks at the links in a row have found something.
    pub(super) busy: u32,
    pub(super) armed: bool,
    /// True if the timer was set, while the device was armed, to have the driver look at once.
    pub(super) called_back: bool,
    pub(super) statistics: Statistics,
    pub(super) grants: UntakenGrants,
    pub(super) watch: Epoll,
    pub(super) timer: EpollTimer,
    pub(super) handshakes: Handshakes,
    pub(super) clock: Clock,
    pub(super) address: Address,
    pub(super) capabilities: Capabilities,
}

impl Shm {
    pub(super) fn new(name: &str, limits: Limits) -> Result<Self, DeviceError> {
        let system = |what: &str, source| {
            let what = what.to_owned();
            DeviceError::System { device: "shm", what, source }
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
        let watch = Epoll::new().map_err(|source| system("an epoll", source))?;
        let timer = EpollTimer::new().map_err(|source| system("an epoll and a timer", source))?;
        Ok(Self {
            links: Links::new(limits.peers, Spare::new(limits.spare)),
            at: 0,
            burst: Burst::new(),
            unflushed: SlotSet::default(),
            unsettled: SlotSet::default(),
            untold: SlotSet::default(),
            woken: SlotSet::default(),
            leaving: SlotSet::default(),
            last: Vec::new(),
            strays: Vec::with_capacity(MOST_STRAYS),
            turns: 0,
            turns_to_attend: ALL_AWAKE,
            attends_to_doze: 1,
            busy: 0,
            armed: false,
            called_back: false,
            statistics: Statistics::default(),
            grants: UntakenGrants::default(),
            watch,
            timer,
            handshakes: Handshakes::new(name, limits.lines()),
            clock: Clock::new(),
            address: Address::Shm(name.into()),
            capabilities: Capabilities {
                name: "shm",
                mtu: PathMtu::Mtu4096,
                encrypted_mtu: PathMtu::Mtu4096,
                run: 1,
                segmentation: false,
                checksum: false,
                lossless: true,
                mapping: true,
                simulated: false,
                labels: false,
                memory: (limits.peers * Segment::first_bytes(limits.lines()))
                    .saturating_add(limits.spare),
            },
        })
    }

    /// Takes down a link whose peer wrote what no honest peer writes.
    #[cold]
    pub(super) fn break_link(&mut self, slot: u16) {
        let Some(link) = self.links.slot(slot) else { return };
        if link.state != PeerState::Broken {
            tracing::warn!(peer = %link.name, "what it wrote makes no sense: its link is taken down");
            link.state = PeerState::Broken;
            self.statistics.broken += 1;
        }
        self.leaving.insert(slot);
        self.call_back();
    }

    /// Wakes a driver that sleeps, since there is something to tell.
    pub(super) fn call_back(&mut self) {
        if self.armed {
            self.called_back = true;
            // It can't fail: the device is armed, and the timer of a live descriptor can be set.
            let _ = self.timer.arm(once(&self.watch), Some(Duration::ZERO));
        }
    }

    /// Adds the link to a peer whose socket is watched already. `None` if there is no room.
    pub(super) fn link(
        &mut self,
        segment: &Segment,
        side: Side,
        socket: Socket,
        name: &str,
    ) -> Option<PathId> {
        if self.links.is_full() {
            return None;
        }
        let added = self.links.add(|id| {
            self.watch.change_token(&socket, id.0.into())?;
            Ok::<_, io::Error>(Link::new(id, segment, side, socket, name))
        });
        let link = added.ok()?;
        sleep::begin::<Shared>(link.reader.sleeping(), self.armed);
        Some(link.id)
    }

    /// Adds a link without a handshake, to the other device of a pair, or to this device itself.
    /// `None` if there is no room.
    pub(super) fn link_at_once(
        &mut self,
        make: impl FnOnce(PathId) -> io::Result<Link>,
    ) -> io::Result<Option<PathId>> {
        if self.links.is_full() {
            return Ok(None);
        }
        let link = self.links.add(|id| {
            let link = make(id)?;
            self.watch.add(&link.socket, id.0.into())?;
            Ok::<_, io::Error>(link)
        })?;
        sleep::begin::<Shared>(link.reader.sleeping(), self.armed);
        Ok(Some(link.id))
    }

    /// Tells peers how far what they wrote was settled. Answers to that left long ago: had the
    /// peers been told before, the answers would have waited for the cache line that is written
    /// here.
    #[inline]
    pub(super) fn tell(&mut self) {
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

    /// Puts silent links to doze, if there are more links than are looked at in each turn, and has
    /// the sockets looked at more often while any doze.
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

    /// Returns how far a peer had come that has left.
    #[cold]
    pub(super) fn last_delivered(&self, path: PathId) -> u64 {
        self.last.iter().find(|(id, _)| *id == path).map_or(0, |&(_, delivered)| delivered)
    }

    /// Notes that something was sent along a path whose peer is gone, for the NIC to be told again.
    #[cold]
    pub(super) fn stray(&mut self, path: PathId) -> Result<u64, Full> {
        if !self.strays.contains(&path) {
            if self.strays.len() == MOST_STRAYS {
                return Err(Full);
            }
            self.strays.push(path);
            self.call_back();
        }
        // A ticket of what is never delivered.
        Ok(u64::MAX)
    }
}

/// Wakes the peers of some links, as far as they sleep, and empties the set.
#[inline]
pub(super) fn wake(links: &mut Links, peers: &mut SlotSet) {
    let written = Written::<Shared>::new();
    while let Some(slot) = peers.pop() {
        if let Some(link) = links.slot(slot) {
            link.wake(&written);
        }
    }
}
