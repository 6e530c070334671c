//! Peers, and whether they are still there.
//!
//! A peer is what runs at a host with one GUID: a NIC from its opening to its end. Whatever comes
//! from a peer says that it is there, on whichever connection. When nothing has come for half of
//! the time that it may be silent, it is asked: a write of nothing, with the number of a packet
//! that was acknowledged long ago, which any peer acknowledges again. There is one timer and one
//! question for a peer, however many connections lead to it: each time by another of them, for the
//! other end of one may have gone alone. What comes from another peer at the same host, as from one
//! that has taken the place of a peer that was killed, does not count. An operating system's peer
//! has one GUID for all processes of its host; it tells itself when one of them ends.
//!
//! A connection whose peer's GUID is not known, since no connection manager made it, has a peer of
//! its own.
//!
//! A peer may be [suspected](super::Nic::suspect) of being gone, when a newcomer at its host has a
//! queue pair number with the same process tag. Then it is asked at once, as often as a
//! [probe](super::probe) asks, and has as long to answer as when requests are under way to it. The
//! tag of a peer is that of the queue pair by which it was met first.
//!
//! The peers at a host are suspected, too, when the host's system [says](super::Inbox::port_closed)
//! that nobody is at the port. No system says so of a process that is merely stopped, so these
//! peers have only [`CLOSED`] to answer. Whoever answers stays, whatever the system has said.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::encap::Host;
use crate::planted::{Bug, planted};
use crate::time::Time;
use crate::wire::{CaGuid, Qpn};

use super::completion::Cause;
use super::leaps::Leaps;
use super::probe::QUESTIONS;

/// How long peers may be silent before the connections to them break with
/// [`Cause::PeerSilent`](super::Cause::PeerSilent). Each is
/// [`SHORTEST`](KeepAlive::SHORTEST) at least.
///
/// It is the patience of the side that *waits* that decides. A process that is stopped (by
/// `SIGSTOP`, a debugger, or a machine that has no processor for it) for longer than its peers are
/// patient loses the connections that they wait on: after `busy` those with something under way to
/// it, after `idle` the others. To survive a stop of ten seconds, configure `busy` to be longer
/// than that in its *peers*. The stopped process itself, when it goes on, takes in what has come
/// meanwhile before it judges any peer, and gives a peer from which nothing came an eighth of the
/// time anew.
///
/// A longer `busy` delays nothing but the news that a peer is gone, and only where no system tells
/// of that: what is lost is sent again within a quarter of a second, whatever it is. Over `udp`, a
/// peer that was killed, on a host that lives, is told of after half a second, since the host's
/// system [says](super::Inbox::port_closed) that the port is closed. With devices that lose nothing
/// neither time is used: `shm`, say, tells at once that a peer has ended, and waits for as long as
/// it takes for one that is stopped.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct KeepAlive {
    /// How long a peer may be silent while nothing is under way to it: 30 seconds by default. From
    /// half of this time on the peer is asked whether it is there, once for all connections to it.
    /// A peer is judged by its host and its CA GUID: what another process of the same host says
    /// does not count for it.
    ///
    /// A peer that a newcomer at its host can have replaced has only [`busy`](Self::busy) to
    /// answer: see [`Nic::suspect`](super::Nic::suspect).
    pub idle: Duration,
    /// How long a peer may be silent while it is waited for: five seconds by default, since a
    /// machine without processors to spare, a quota, or the migration of a virtual machine stops a
    /// healthy process for some seconds. A peer is waited for while a request is under way, which
    /// is sent again meanwhile, and while it is [probed](super::Nic::probe).
    pub busy: Duration,
}

/// Which of the times of [`KeepAlive`] has decided that a peer is gone.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Silence {
    /// [`KeepAlive::idle`].
    Idle,
    /// [`KeepAlive::busy`].
    Busy,
    /// Half a second, or [`KeepAlive::busy`] where that is less: the system of the peer's host has
    /// [said](super::Inbox::port_closed) that the port which the peer was at is closed.
    Closed,
}

impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Idle => "while nothing was under way to it (keep_alive.idle)",
            Self::Busy => "while it was waited for (keep_alive.busy)",
            Self::Closed => "since the system of its host said that nobody is at its port",
        })
    }
}

impl KeepAlive {
    /// The least that a peer may be silent: what is shorter counts as this.
    pub const SHORTEST: Duration = Duration::from_millis(10);

    /// How long a peer may be silent by a limit.
    fn of(&self, limit: Silence) -> Duration {
        match limit {
            Silence::Idle => self.idle,
            Silence::Busy => self.busy,
            Silence::Closed => self.busy.min(CLOSED),
        }
    }
}

impl Default for KeepAlive {
    fn default() -> Self {
        Self { idle: Duration::from_secs(30), busy: Duration::from_secs(5) }
    }
}

/// How long a peer may be silent after its host's system has said that its port is closed, unless
/// [`KeepAlive::busy`] is less.
const CLOSED: Duration = Duration::from_millis(500);

/// A peer among those of a host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Peer {
    /// What has said that this is its GUID.
    Guid(CaGuid),
    /// What the queue pair at this place is connected to, of which no more is known.
    Of(u32),
}

impl Peer {
    /// The first and the last in their order.
    const ALL: (Self, Self) = (Self::Guid(CaGuid(0)), Self::Of(u32::MAX));
}

/// Which peer, in the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct HostId(u32);

impl HostId {
    /// The number of the peer's timer. Queue pairs have the even numbers, and peers the odd ones,
    /// so that both tables may grow.
    pub fn timer(self) -> u32 {
        2 * self.0 + 1
    }

    /// The peer of a timer, or the place of the queue pair whose timer it is.
    pub fn of_timer(timer: u32) -> Result<Self, u32> {
        if timer % 2 == 1 { Ok(Self(timer / 2)) } else { Err(timer / 2) }
    }

    /// That of a queue pair without a peer, or of one whose device sees to it.
    pub const NONE: Self = Self(u32::MAX);
}

/// Why a peer is suspected of being gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Suspect {
    /// A newcomer at its host may have taken its place.
    Replaced,
    /// The system of its host says that its port is closed.
    Closed,
}

impl Suspect {
    /// Which limit decides about a peer that is suspected for this reason.
    fn limit(self) -> Silence {
        match self {
            Self::Replaced => Silence::Busy,
            Self::Closed => Silence::Closed,
        }
    }
}

/// Whether a peer is suspected of being gone.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Suspicion {
    /// The peer is not suspected.
    None,
    /// The peer is suspected, and is to be asked for a sign of life when the clock is read next:
    /// the time that was told last may be long ago.
    New,
    /// The peer was first asked for a sign of life at this time. Whatever has come from it since
    /// clears it.
    Since(Time),
    /// The peer has answered lately, and is suspected once more: it is to be asked again at this
    /// time.
    Again(Time),
}

struct Watched {
    key: (Host, Peer),
    /// The peer's queue pair in the first of the connections to it, whose number has its tag.
    remote: Qpn,
    /// When something came from it last.
    heard: Time,
    suspicion: Suspicion,
    /// Why the peer is suspected, or was last.
    why: Suspect,
    /// The place from which on to look for a queue pair to ask by: that which it was for.
    speaker: u32,
    /// How often it was asked since.
    asked: u8,
    /// How many queue pairs are connected to it.
    users: u32,
}

/// How often a peer is asked at least before it is taken for gone: time may pass in which nobody
/// looks at what has come.
pub(super) const LEAST_ASKED: u8 = 3;

/// What is to be done about a peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Due {
    /// Nothing until then.
    Wait(Time),
    /// To ask it, by the first queue pair from that place on that is connected to it, and to look
    /// again then.
    Ask(u32, Time),
    /// It is gone: nothing has come from it for as long as this allows.
    Gone(Silence),
    /// Nobody is connected to it any more, since its timer went off.
    Nobody,
}

/// The peers: as many as there are queue pairs at most.
pub(super) struct Hosts {
    hosts: Vec<Watched>,
    places: BTreeMap<(Host, Peer), u32>,
    free: Vec<u32>,
    pub limits: KeepAlive,
}

impl Hosts {
    pub fn new(limits: KeepAlive) -> Self {
        let KeepAlive { idle, busy } = limits;
        let [idle, busy] = [idle, busy].map(|time| time.max(KeepAlive::SHORTEST));
        let limits = KeepAlive { idle, busy };
        Self { hosts: Vec::new(), places: BTreeMap::new(), free: Vec::new(), limits }
    }

    /// Counts a queue pair as connected to a peer. Whether it is the first.
    pub fn join(
        &mut self,
        key: (Host, Peer),
        remote: Qpn,
        place: u32,
        now: Time,
    ) -> (HostId, bool) {
        if let Some(&found) = self.places.get(&key) {
            self.hosts[found as usize].users += 1;
            return (HostId(found), false);
        }
        let watched = Watched {
            key,
            remote,
            heard: now,
            suspicion: Suspicion::None,
            why: Suspect::Replaced,
            speaker: place,
            asked: 0,
            users: 1,
        };
        let index = self.free.pop().unwrap_or(self.hosts.len() as u32);
        match self.hosts.get_mut(index as usize) {
            Some(free) => *free = watched,
            None => self.hosts.push(watched),
        }
        self.places.insert(key, index);
        (HostId(index), true)
    }

    /// Counts it no more. Whether it was the last.
    pub fn leave(&mut self, host: HostId) -> bool {
        let Some(found) = self.hosts.get_mut(host.0 as usize) else { return false };
        found.users -= 1;
        let last = found.users == 0;
        if last {
            self.places.remove(&found.key);
            self.free.push(host.0);
        }
        last
    }

    /// Suspects of being gone those peers at a host whose queue pair number `concerns` picks, but
    /// those that are suspected already for a reason as good. Returns which those are, and when
    /// each is [due](Self::due): when the clock is read next, or if it was asked less than the
    /// limit's time ago, when that is over. So whoever makes others suspected has each asked no
    /// more often.
    pub fn suspect(
        &mut self,
        host: Host,
        why: Suspect,
        concerns: impl Fn(Qpn) -> bool,
        now: Time,
    ) -> Vec<(HostId, Time)> {
        let (first, last) = Peer::ALL;
        let limits = self.limits;
        let there = self.places.range((host, first)..=(host, last));
        let mut suspects = Vec::new();
        for (_, &index) in there {
            let watched = &mut self.hosts[index as usize];
            if !concerns(watched.remote) {
                continue;
            }
            let [new, old] = [why, watched.why].map(|why| limits.of(why.limit()));
            let again = |asked: Time| asked + new.min(old);
            let at = match watched.suspicion {
                Suspicion::Since(asked) if watched.heard > asked && now < again(asked) => {
                    watched.suspicion = Suspicion::Again(again(asked));
                    again(asked)
                }
                // Unless the new reason leaves less time to answer, in which the peer is asked anew.
                Suspicion::Since(asked) if watched.heard <= asked && new >= old => continue,
                Suspicion::New | Suspicion::Again(_) if new >= old => continue,
                _ => {
                    watched.suspicion = Suspicion::New;
                    now
                }
            };
            watched.why = why;
            suspects.push((HostId(index), at));
        }
        suspects
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Notes that something came from a peer.
    #[inline]
    pub fn heard(&mut self, host: HostId, place: u32, now: Time) {
        if let Some(host) = self.hosts.get_mut(host.0 as usize) {
            (host.heard, host.speaker, host.asked) = (now, place, 0);
        }
    }

    /// Notes by which queue pair a peer is asked: next time it is another's turn.
    pub fn asked_by(&mut self, host: HostId, place: u32) {
        if let Some(host) = self.hosts.get_mut(host.0 as usize) {
            host.speaker = place + 1;
        }
    }

    /// Since when nothing has come from a peer that has been waited for since `asked`.
    pub fn silent_since(&self, host: HostId, asked: Time) -> Time {
        self.hosts.get(host.0 as usize).map_or(asked, |host| host.heard.max(asked))
    }

    /// What ends the connections to a peer that has been silent for so long.
    pub fn silent(&self, limit: Silence) -> Cause {
        let time = self.limits.of(limit);
        Cause::PeerSilent { millis: u32::try_from(time.as_millis()).unwrap_or(u32::MAX), limit }
    }

    /// What is to be done about a peer.
    pub fn due(&mut self, host: HostId, now: Time, leaps: &Leaps) -> Due {
        let limits = self.limits;
        let idle = limits.idle;
        let Some(host) = self.hosts.get_mut(host.0 as usize).filter(|host| host.users > 0) else {
            return Due::Nobody;
        };
        match host.suspicion {
            Suspicion::Again(at) if now < at => return Due::Wait(at),
            Suspicion::New | Suspicion::Again(_) => {
                (host.suspicion, host.asked) = (Suspicion::Since(now), 0);
            }
            Suspicion::None | Suspicion::Since(_) => {}
        }
        if let Suspicion::Since(since) = host.suspicion
            && host.heard <= since
        {
            let limit = host.why.limit();
            let patience = limits.of(limit);
            if now >= leaps.end_of(patience, since)
                && host.asked >= LEAST_ASKED
                && !planted(Bug::AsksForEver)
            {
                return Due::Gone(limit);
            }
            host.asked = host.asked.saturating_add(1);
            return Due::Ask(host.speaker, now + patience / QUESTIONS);
        }
        if now < host.heard + idle / 2 {
            return Due::Wait(host.heard + idle / 2);
        }
        let silent = now >= leaps.end_of(idle, host.heard) && host.asked >= LEAST_ASKED;
        if silent && !planted(Bug::AsksForEver) {
            return Due::Gone(Silence::Idle);
        }
        host.asked = host.asked.saturating_add(1);
        Due::Ask(host.speaker, now + idle / 8)
    }
}
