//! The limits of the keep-alive: how long a peer may be silent.

use std::fmt;
use std::time::Duration;

/// How long peers may be silent before the connections to them break with
/// [`Cause::PeerSilent`](crate::nic::Cause::PeerSilent). Each limit is
/// [`SHORTEST`](KeepAlive::SHORTEST) at least.
///
/// The limits of the side that *waits* decide. A process that is stopped (by `SIGSTOP`, a debugger,
/// or a machine that has no processor for it) for longer than its peers' limits loses the
/// connections that they wait on: after `busy` those with something under way to it, after `idle`
/// the others. To survive a stop of ten seconds, configure `busy` to be longer than that in its
/// *peers*. The stopped process itself, when it goes on, takes in what has come meanwhile before it
/// judges any peer, and gives a peer from which nothing came an eighth of the time anew.
///
/// A longer `busy` delays nothing but the news that a peer is gone, and only where no system
/// reports that: what is lost is sent again within a quarter of a second in any case. Over `udp`,
/// half a second after a peer was killed on a host that lives, its connections break, since the
/// host's system [reports](crate::nic::Inbox::port_closed) that the port is closed. With lossless
/// devices neither limit is used: `shm`, for example, reports at once that a peer has ended, and
/// waits without limit for one that is stopped.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct KeepAlive {
    /// How long a peer may be silent while nothing is under way to it: 30 seconds by default. From
    /// half of this time on the peer is asked for a sign of life, once for all connections to it. A
    /// peer is judged by its host and its CA GUID: what another process of the same host sends does
    /// not count for it.
    ///
    /// A peer that a newcomer at its host can have replaced has only [`busy`](Self::busy) to
    /// answer: see [`Nic::suspect`](crate::nic::Nic::suspect).
    pub idle: Duration,
    /// How long a peer may be silent while it is waited for: five seconds by default, since a
    /// machine without processors to spare, a quota, or the migration of a virtual machine stops a
    /// healthy process for some seconds. A peer is waited for while a request is under way, which
    /// is sent again meanwhile, and while the peer is [probed](crate::nic::Nic::probe).
    pub busy: Duration,
}

/// The limit of [`KeepAlive`] that has decided that a peer is gone.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Silence {
    /// The limit [`KeepAlive::idle`] was exceeded.
    Idle,
    /// The limit [`KeepAlive::busy`] was exceeded.
    Busy,
    /// The peer was silent for half a second, or for [`KeepAlive::busy`] where that is less, after
    /// the system of its host had [reported](crate::nic::Inbox::port_closed) that the port which
    /// the peer was at is closed.
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
    /// The shortest time that a limit may have: a shorter one counts as this.
    pub const SHORTEST: Duration = Duration::from_millis(10);

    /// How long a peer may be silent by a limit.
    pub(crate) fn of(&self, limit: Silence) -> Duration {
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

/// How long a peer may be silent after its host's system has reported that its port is closed,
/// unless [`KeepAlive::busy`] is less.
const CLOSED: Duration = Duration::from_millis(500);

/// How many times a peer is asked at least before it is taken for gone, since time may pass in
/// which nobody looks at what has come.
pub(crate) const LEAST_QUESTIONS: u8 = 3;

/// How many times a probe asks within [`KeepAlive::busy`], evenly spread. Where three of ten
/// packets are lost, each way, a living peer fails to answer all of them about twice in 100,000
/// probes.
pub(crate) const QUESTIONS_PER_PROBE: u32 = 16;
