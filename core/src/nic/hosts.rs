//! The hosts that peers are on, and whether they are still there.
//!
//! Whatever comes from a host says that it is there, on whichever connection. When nothing has come
//! for half of the time that it may be silent, it is asked: a write of nothing, with the number of
//! a packet that was acknowledged long ago, which any peer acknowledges again. There is one timer
//! and one question for a host, however many connections lead to it: each time by another of them,
//! for the peer of one may have gone alone. So a process that is gone from a host on which another
//! speaks is noticed when something is sent to it, and not before.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::encap::Host;
use crate::planted::{Bug, planted};
use crate::time::Time;

use super::completion::Cause;
use super::leaps::Leaps;

/// How long peers may be silent before the connections to them break with
/// [`Cause::PeerSilent`](super::Cause::PeerSilent). Each is
/// [`SHORTEST`](KeepAlive::SHORTEST) at least.
///
/// It is the patience of the side that *waits* that decides. A process that is stopped (by `SIGSTOP`, a
/// debugger, or a machine that has no processor for it) for longer than its peers are patient loses the
/// connections that they wait on: after `busy` those with something under way to it, after `idle` the
/// others. To survive a stop of ten seconds, configure `busy` to be longer than that in its *peers*. The
/// stopped process itself, when it goes on, takes in what has come meanwhile before it judges any peer, and
/// gives a peer from which nothing came an eighth of the time anew.
///
/// A longer `busy` delays nothing but the news that a peer is gone: what is lost is sent again within
/// milliseconds, whatever it is. With devices that lose nothing neither time is used: `shm`, say,
/// tells at once that a peer has ended, and waits for as long as it takes for one that is stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeepAlive {
    /// How long a peer's host may be silent while nothing is under way to it: 30 seconds by default. The host
    /// is asked whether it is there from half of this time on, once for all connections to it.
    pub idle: Duration,
    /// How long a peer may be silent while it is waited for: one second by default. It is waited for
    /// while a request is under way, which is sent again meanwhile, and while it is
    /// [probed](super::Nic::probe).
    pub busy: Duration,
}

/// Which of the times of [`KeepAlive`] has decided that a peer is gone.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Silence {
    /// [`KeepAlive::idle`].
    Idle,
    /// [`KeepAlive::busy`].
    Busy,
}

impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Idle => "while nothing was under way to it (keep_alive.idle)",
            Self::Busy => "while it was waited for (keep_alive.busy)",
        })
    }
}

impl KeepAlive {
    /// The least that a host may be silent: what is shorter counts as this.
    pub const SHORTEST: Duration = Duration::from_millis(10);
}

impl Default for KeepAlive {
    fn default() -> Self {
        Self { idle: Duration::from_secs(30), busy: Duration::from_secs(1) }
    }
}

/// Which host, in the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct HostId(u32);

impl HostId {
    /// As timers number it, behind so many queue pairs.
    pub fn timer(self, pairs: usize) -> u32 {
        pairs as u32 + self.0
    }

    /// The host of a timer, if it is not a queue pair's.
    pub fn of_timer(timer: u32, pairs: usize) -> Option<Self> {
        timer.checked_sub(pairs as u32).map(Self)
    }

    /// That of a queue pair without a peer, or of one whose device sees to it.
    pub const NONE: Self = Self(u32::MAX);
}

struct Watched {
    host: Host,
    /// When something came from it last.
    heard: Time,
    /// The place from which on to look for a queue pair to ask by: that which it was for.
    speaker: u32,
    /// How often it was asked since.
    asked: u8,
    /// How many queue pairs are connected to it.
    users: u32,
}

/// As often a host is asked at least before it is taken for gone: time may pass in which nobody
/// looks at what has come.
pub(super) const LEAST_ASKED: u8 = 3;

/// What is to be done about a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Due {
    /// Nothing until then.
    Wait(Time),
    /// To ask it, by the first queue pair from that place on that is connected to it, and to look
    /// again then.
    Ask(u32, Time),
    /// It is gone.
    Gone,
    /// Nobody is connected to it any more, since its timer went off.
    Nobody,
}

/// The hosts: as many as there are queue pairs at most.
pub(super) struct Hosts {
    hosts: Vec<Watched>,
    places: BTreeMap<Host, u32>,
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

    /// Counts a queue pair as connected to a host. Whether it is the first.
    pub fn join(&mut self, host: Host, place: u32, now: Time) -> (HostId, bool) {
        if let Some(&found) = self.places.get(&host) {
            self.hosts[found as usize].users += 1;
            return (HostId(found), false);
        }
        let watched = Watched { host, heard: now, speaker: place, asked: 0, users: 1 };
        let index = self.free.pop().unwrap_or(self.hosts.len() as u32);
        match self.hosts.get_mut(index as usize) {
            Some(free) => *free = watched,
            None => self.hosts.push(watched),
        }
        self.places.insert(host, index);
        (HostId(index), true)
    }

    /// Counts it no more. Whether it was the last.
    pub fn leave(&mut self, host: HostId) -> bool {
        let Some(found) = self.hosts.get_mut(host.0 as usize) else { return false };
        found.users -= 1;
        let last = found.users == 0;
        if last {
            self.places.remove(&found.host);
            self.free.push(host.0);
        }
        last
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Notes that something came from a host.
    #[inline]
    pub fn heard(&mut self, host: HostId, place: u32, now: Time) {
        if let Some(host) = self.hosts.get_mut(host.0 as usize) {
            (host.heard, host.speaker, host.asked) = (now, place, 0);
        }
    }

    /// Notes by which queue pair a host is asked: next time it is another's turn.
    pub fn asked_by(&mut self, host: HostId, place: u32) {
        if let Some(host) = self.hosts.get_mut(host.0 as usize) {
            host.speaker = place + 1;
        }
    }

    /// Since when nothing has come from a host that has been waited for since `asked`.
    pub fn silent_since(&self, host: HostId, asked: Time) -> Time {
        self.hosts.get(host.0 as usize).map_or(asked, |host| host.heard.max(asked))
    }

    /// What ends the connections to a peer that has been silent for so long.
    pub fn silent(&self, limit: Silence) -> Cause {
        let time = match limit {
            Silence::Idle => self.limits.idle,
            Silence::Busy => self.limits.busy,
        };
        Cause::PeerSilent { millis: u32::try_from(time.as_millis()).unwrap_or(u32::MAX), limit }
    }

    /// What is to be done about a host.
    pub fn due(&mut self, host: HostId, now: Time, leaps: &Leaps) -> Due {
        let idle = self.limits.idle;
        let Some(host) = self.hosts.get_mut(host.0 as usize).filter(|host| host.users > 0) else {
            return Due::Nobody;
        };
        if now < host.heard + idle / 2 {
            return Due::Wait(host.heard + idle / 2);
        }
        let silent = now >= leaps.end_of(idle, host.heard) && host.asked >= LEAST_ASKED;
        if silent && !planted(Bug::AsksForEver) {
            return Due::Gone;
        }
        host.asked = host.asked.saturating_add(1);
        Due::Ask(host.speaker, now + idle / 8)
    }
}
