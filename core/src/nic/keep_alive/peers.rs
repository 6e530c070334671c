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

use crate::encap::Host;
use crate::nic::identifiers::PeerId;
use crate::nic::keep_alive::clock_jumps::ClockJumps;
use crate::nic::keep_alive::limits::{KeepAlive, LEAST_QUESTIONS, QUESTIONS_PER_PROBE, Silence};
use crate::planted::{Bug, planted};
use crate::time::Time;
use crate::wire::{CaGuid, Qpn};

/// A peer among those of a host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum PeerKey {
    /// What has said that this is its GUID.
    Guid(CaGuid),
    /// What the queue pair at this place is connected to, of which no more is known.
    Of(u32),
}

impl PeerKey {
    /// The first and the last in their order.
    const ALL: (Self, Self) = (Self::Guid(CaGuid(0)), Self::Of(u32::MAX));
}

/// Why a peer is suspected of being gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SuspicionReason {
    /// A newcomer at its host may have taken its place.
    Replaced,
    /// The system of its host says that its port is closed.
    Closed,
}

impl SuspicionReason {
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

struct WatchedPeer {
    key: (Host, PeerKey),
    /// The peer's queue pair in the first of the connections to it, whose number has its tag.
    remote_qpn: Qpn,
    /// When something came from it last.
    heard_at: Time,
    suspicion: Suspicion,
    /// Why the peer is suspected, or was last.
    reason: SuspicionReason,
    /// The place from which on to look for a queue pair to ask by: that which it was for.
    ask_from: u32,
    /// How often it was asked since.
    questions: u8,
    /// How many queue pairs are connected to it.
    users: u32,
}

/// What is to be done about a peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum KeepAliveStep {
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
pub(crate) struct Peers {
    entries: Vec<WatchedPeer>,
    by_key: BTreeMap<(Host, PeerKey), u32>,
    free: Vec<u32>,
    pub limits: KeepAlive,
}

impl Peers {
    pub fn new(limits: KeepAlive) -> Self {
        let KeepAlive { idle, busy } = limits;
        let [idle, busy] = [idle, busy].map(|time| time.max(KeepAlive::SHORTEST));
        let limits = KeepAlive { idle, busy };
        Self { entries: Vec::new(), by_key: BTreeMap::new(), free: Vec::new(), limits }
    }

    /// Counts a queue pair as connected to a peer. Whether it is the first.
    pub fn join(
        &mut self,
        key: (Host, PeerKey),
        remote: Qpn,
        place: u32,
        now: Time,
    ) -> (PeerId, bool) {
        if let Some(&found) = self.by_key.get(&key) {
            self.entries[found as usize].users += 1;
            return (PeerId(found), false);
        }
        let watched = WatchedPeer {
            key,
            remote_qpn: remote,
            heard_at: now,
            suspicion: Suspicion::None,
            reason: SuspicionReason::Replaced,
            ask_from: place,
            questions: 0,
            users: 1,
        };
        let index = self.free.pop().unwrap_or(self.entries.len() as u32);
        match self.entries.get_mut(index as usize) {
            Some(free) => *free = watched,
            None => self.entries.push(watched),
        }
        self.by_key.insert(key, index);
        (PeerId(index), true)
    }

    /// Counts it no more. Whether it was the last.
    pub fn leave(&mut self, host: PeerId) -> bool {
        let Some(found) = self.entries.get_mut(host.0 as usize) else { return false };
        found.users -= 1;
        let last = found.users == 0;
        if last {
            self.by_key.remove(&found.key);
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
        why: SuspicionReason,
        concerns: impl Fn(Qpn) -> bool,
        now: Time,
    ) -> Vec<(PeerId, Time)> {
        let (first, last) = PeerKey::ALL;
        let limits = self.limits;
        let there = self.by_key.range((host, first)..=(host, last));
        let mut suspects = Vec::new();
        for (_, &index) in there {
            let watched = &mut self.entries[index as usize];
            if !concerns(watched.remote_qpn) {
                continue;
            }
            let [new, old] = [why, watched.reason].map(|why| limits.of(why.limit()));
            let again = |asked: Time| asked + new.min(old);
            let at = match watched.suspicion {
                Suspicion::Since(asked) if watched.heard_at > asked && now < again(asked) => {
                    watched.suspicion = Suspicion::Again(again(asked));
                    again(asked)
                }
                // Unless the new reason leaves less time to answer, in which the peer is asked anew.
                Suspicion::Since(asked) if watched.heard_at <= asked && new >= old => continue,
                Suspicion::New | Suspicion::Again(_) if new >= old => continue,
                _ => {
                    watched.suspicion = Suspicion::New;
                    now
                }
            };
            watched.reason = why;
            suspects.push((PeerId(index), at));
        }
        suspects
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Notes that something came from a peer.
    #[inline]
    pub fn note_heard(&mut self, host: PeerId, place: u32, now: Time) {
        if let Some(host) = self.entries.get_mut(host.0 as usize) {
            (host.heard_at, host.ask_from, host.questions) = (now, place, 0);
        }
    }

    /// Notes by which queue pair a peer is asked: next time it is another's turn.
    pub fn asked_by(&mut self, host: PeerId, place: u32) {
        if let Some(host) = self.entries.get_mut(host.0 as usize) {
            host.ask_from = place + 1;
        }
    }

    /// Since when nothing has come from a peer that has been waited for since `asked`.
    pub fn silent_since(&self, host: PeerId, asked: Time) -> Time {
        self.entries.get(host.0 as usize).map_or(asked, |host| host.heard_at.max(asked))
    }

    /// What is to be done about a peer.
    pub fn next_step(&mut self, host: PeerId, now: Time, leaps: &ClockJumps) -> KeepAliveStep {
        let limits = self.limits;
        let idle = limits.idle;
        let Some(host) = self.entries.get_mut(host.0 as usize).filter(|host| host.users > 0) else {
            return KeepAliveStep::Nobody;
        };
        match host.suspicion {
            Suspicion::Again(at) if now < at => return KeepAliveStep::Wait(at),
            Suspicion::New | Suspicion::Again(_) => {
                (host.suspicion, host.questions) = (Suspicion::Since(now), 0);
            }
            Suspicion::None | Suspicion::Since(_) => {}
        }
        if let Suspicion::Since(since) = host.suspicion
            && host.heard_at <= since
        {
            let limit = host.reason.limit();
            let patience = limits.of(limit);
            if now >= leaps.patience_end(patience, since)
                && host.questions >= LEAST_QUESTIONS
                && !planted(Bug::AsksForEver)
            {
                return KeepAliveStep::Gone(limit);
            }
            host.questions = host.questions.saturating_add(1);
            return KeepAliveStep::Ask(host.ask_from, now + patience / QUESTIONS_PER_PROBE);
        }
        if now < host.heard_at + idle / 2 {
            return KeepAliveStep::Wait(host.heard_at + idle / 2);
        }
        let silent =
            now >= leaps.patience_end(idle, host.heard_at) && host.questions >= LEAST_QUESTIONS;
        if silent && !planted(Bug::AsksForEver) {
            return KeepAliveStep::Gone(Silence::Idle);
        }
        host.questions = host.questions.saturating_add(1);
        KeepAliveStep::Ask(host.ask_from, now + idle / 8)
    }
}
