//! How long a peer may be silent.

use std::fmt;
use std::time::Duration;

/// How long peers may be silent before the connections to them break with
/// [`Cause::PeerSilent`](crate::nic::Cause::PeerSilent). Each is
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
/// system [says](crate::nic::Inbox::port_closed) that the port is closed. With devices that lose nothing
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
    /// answer: see [`Nic::suspect`](crate::nic::Nic::suspect).
    pub idle: Duration,
    /// How long a peer may be silent while it is waited for: five seconds by default, since a
    /// machine without processors to spare, a quota, or the migration of a virtual machine stops a
    /// healthy process for some seconds. A peer is waited for while a request is under way, which
    /// is sent again meanwhile, and while it is [probed](crate::nic::Nic::probe).
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
    /// [said](crate::nic::Inbox::port_closed) that the port which the peer was at is closed.
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

/// How long a peer may be silent after its host's system has said that its port is closed, unless
/// [`KeepAlive::busy`] is less.
const CLOSED: Duration = Duration::from_millis(500);

/// How often a peer is asked at least before it is taken for gone: time may pass in which nobody
/// looks at what has come.
pub(crate) const LEAST_QUESTIONS: u8 = 3;

/// How many questions a probe asks within [`KeepAlive::busy`](crate::nic::KeepAlive::busy), evenly
/// spread. Where three of ten packets are lost, each way, a peer that lives fails to answer all of
/// them about twice in 100,000 probes.
pub(crate) const QUESTIONS_PER_PROBE: u32 = 16;
