//! Keep-alive: the table of peers, and whether they are still there.
//!
//! A peer is what runs at a host with one GUID: a NIC from its opening to its end. Whatever comes
//! from a peer, on any connection, is a sign of life. When nothing has come for half of the time
//! that a peer may be silent, it is asked for one: by a write of no bytes with the sequence number
//! of a packet that was acknowledged long ago, which any peer acknowledges again. There is one
//! timer and one question for a peer, however many connections lead to it, and each question goes
//! by another of them, for the other end of one may have gone alone. What comes from another peer
//! at the same host, such as one that has taken the place of a peer that was killed, does not
//! count. A peer that is an operating system has one GUID for all processes of its host, and itself
//! reports when one of them ends.
//!
//! A connection whose peer's GUID is not known, since no connection manager made it, has a peer of
//! its own.
//!
//! A peer may be [suspected](crate::nic::Nic::suspect) of being gone, when a newcomer at its host
//! has a queue pair number with the same process tag. Then it is asked at once, as often as a
//! [probe](crate::nic::Nic::probe) asks, and has as long to answer as when requests are under way
//! to it. The tag of a peer is that of the queue pair by which it was first met.
//!
//! The peers at a host are suspected, too, when the host's system
//! [reports](crate::nic::Inbox::port_closed) that nobody is at the port. No system reports that of
//! a process that is merely stopped, so these peers have only [half a second](Silence::Closed) to
//! answer. A peer that answers stays, whatever the system has reported.

use std::collections::BTreeMap;

use crate::encap::Host;
use crate::nic::identifiers::PeerId;
use crate::nic::keep_alive::clock_jumps::ClockJumps;
use crate::nic::keep_alive::limits::{KeepAlive, LEAST_QUESTIONS, QUESTIONS_PER_PROBE, Silence};
use crate::planted::{Bug, planted};
use crate::time::Time;
use crate::wire::{CaGuid, Qpn};

/// The key of a peer among those of a host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum PeerKey {
    /// The peer with this GUID.
    Guid(CaGuid),
    /// The peer that the queue pair at this place is connected to, of which no more is known.
    Of(u32),
}

impl PeerKey {
    /// The first key and the last in their order.
    const ALL: (Self, Self) = (Self::Guid(CaGuid(0)), Self::Of(u32::MAX));
}

/// Why a peer is suspected of being gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SuspicionReason {
    /// A newcomer at the peer's host may have taken its place.
    Replaced,
    /// The system of the peer's host reports that its port is closed.
    Closed,
}

impl SuspicionReason {
    /// The limit that decides about a peer which is suspected for this reason.
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
    /// The peer is suspected, and is to be asked for a sign of life when the clock is read next,
    /// since the time that was told last may be long ago.
    New,
    /// The peer was first asked for a sign of life at this time. Whatever has come from it since
    /// clears the suspicion.
    Since(Time),
    /// The peer has answered lately, and is suspected once more: it is to be asked again at this
    /// time.
    Again(Time),
}

/// A peer in the table, and when it was last heard of.
struct WatchedPeer {
    key: (Host, PeerKey),
    /// The peer's queue pair in the first of the connections to it, whose number has its process
    /// tag.
    remote_qpn: Qpn,
    /// When something last came from the peer.
    heard_at: Time,
    suspicion: Suspicion,
    /// Why the peer is suspected, or was last.
    reason: SuspicionReason,
    /// The place from which on to look for a queue pair to ask by: that of the queue pair for which
    /// something last came.
    ask_from: u32,
    /// How often the peer was asked since something last came from it.
    questions: u8,
    /// How many queue pairs are connected to the peer.
    users: u32,
}

/// The step that is due for a peer when its timer has expired.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum KeepAliveStep {
    /// The peer is to be left alone until this time.
    Wait(Time),
    /// The peer is to be asked for a sign of life, by the first queue pair from this place on that
    /// is connected to it, and looked at again at this time.
    Ask(u32, Time),
    /// The peer is gone: nothing has come from it for as long as this limit allows.
    Gone(Silence),
    /// No queue pair is connected to the peer any more, since its timer was armed.
    Nobody,
}

/// The table of peers, which are at most as many as the queue pairs.
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

    /// Counts a queue pair as connected to a peer. Returns the peer, and whether the queue pair is
    /// the first that is connected to it.
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

    /// Counts a queue pair as connected to a peer no more. Returns whether it was the last.
    pub fn leave(&mut self, peer: PeerId) -> bool {
        let Some(found) = self.entries.get_mut(peer.0 as usize) else { return false };
        found.users -= 1;
        let last = found.users == 0;
        if last {
            self.by_key.remove(&found.key);
            self.free.push(peer.0);
        }
        last
    }

    /// Suspects of being gone those peers at a host whose queue pair number `concerns` picks,
    /// except those that are suspected already for a reason that leaves no more time. Returns these
    /// peers, and when the [next step](Self::next_step) of each is due: when the clock is read
    /// next, or if the peer was asked less than the limit's time ago, when that time is over. So a
    /// peer is asked no more often if somebody makes it suspected many times.
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
                // A reason that leaves less time to answer has the peer asked anew.
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

    /// How many peers there are.
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Notes that something came from a peer.
    #[inline]
    pub fn note_heard(&mut self, peer: PeerId, place: u32, now: Time) {
        if let Some(peer) = self.entries.get_mut(peer.0 as usize) {
            (peer.heard_at, peer.ask_from, peer.questions) = (now, place, 0);
        }
    }

    /// Notes by which queue pair a peer is asked, so that another one is used the next time.
    pub fn asked_by(&mut self, peer: PeerId, place: u32) {
        if let Some(peer) = self.entries.get_mut(peer.0 as usize) {
            peer.ask_from = place + 1;
        }
    }

    /// Since when nothing has come from a peer that has been waited for since `asked`.
    pub fn silent_since(&self, peer: PeerId, asked: Time) -> Time {
        self.entries.get(peer.0 as usize).map_or(asked, |peer| peer.heard_at.max(asked))
    }

    /// Returns what is to be done about a peer whose timer has expired.
    pub fn next_step(&mut self, peer: PeerId, now: Time, jumps: &ClockJumps) -> KeepAliveStep {
        let limits = self.limits;
        let idle = limits.idle;
        let Some(peer) = self.entries.get_mut(peer.0 as usize).filter(|peer| peer.users > 0) else {
            return KeepAliveStep::Nobody;
        };
        match peer.suspicion {
            Suspicion::Again(at) if now < at => return KeepAliveStep::Wait(at),
            Suspicion::New | Suspicion::Again(_) => {
                (peer.suspicion, peer.questions) = (Suspicion::Since(now), 0);
            }
            Suspicion::None | Suspicion::Since(_) => {}
        }
        if let Suspicion::Since(since) = peer.suspicion
            && peer.heard_at <= since
        {
            let limit = peer.reason.limit();
            let patience = limits.of(limit);
            if now >= jumps.patience_end(patience, since)
                && peer.questions >= LEAST_QUESTIONS
                && !planted(Bug::AsksForEver)
            {
                return KeepAliveStep::Gone(limit);
            }
            peer.questions = peer.questions.saturating_add(1);
            return KeepAliveStep::Ask(peer.ask_from, now + patience / QUESTIONS_PER_PROBE);
        }
        if now < peer.heard_at + idle / 2 {
            return KeepAliveStep::Wait(peer.heard_at + idle / 2);
        }
        let silent =
            now >= jumps.patience_end(idle, peer.heard_at) && peer.questions >= LEAST_QUESTIONS;
        if silent && !planted(Bug::AsksForEver) {
            return KeepAliveStep::Gone(Silence::Idle);
        }
        peer.questions = peer.questions.saturating_add(1);
        KeepAliveStep::Ask(peer.ask_from, now + idle / 8)
    }
}
