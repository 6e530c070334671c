//! The configuration of a NIC.

use std::time::Duration;

use doorbell_core::cm;
use doorbell_core::nic::KeepAlive;
use doorbell_core::wire::CaGuid;

use crate::control::Encryption;

/// The thread or task that runs the NIC.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase", deny_unknown_fields))]
pub enum Progress {
    /// Waiting tasks run the NIC. When no task waits, a task of the runtime in which the NIC was
    /// opened does, or a thread if that was in none.
    #[default]
    Inline,
    /// A dedicated thread runs the NIC. It spins for as long as [`spin`](Config::spin) says, and
    /// then sleeps until something comes.
    Dedicated {
        /// The processor to which the thread is pinned, by number.
        #[cfg_attr(feature = "serde", serde(default))]
        core: Option<usize>,
    },
}

/// The configuration of a NIC: who runs it, and how much it holds.
///
/// With the feature `serde` it can be read from a file. Fields that are missing there have their
/// defaults; unknown fields are an error.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct Config {
    /// The thread or tasks that run the NIC.
    pub progress: Progress,
    /// How long a waiting task spins on a silent device before it sleeps in the kernel. A task does
    /// not spin while lone messages come: 0.4 ms, or eight times this time, after those before. A
    /// sleeping task wakes 20 to 30 µs late, and costs nothing while it sleeps; spinning costs a
    /// core. [`Duration::MAX`] means to spin for ever.
    pub spin: Duration,
    /// Whether packets may be sent in runs that the interface or the kernel segments, where it can.
    /// Without this, each packet is sent in a frame of its own, which is far slower, and shows what
    /// a network without segmentation offload would carry.
    pub offload: bool,
    /// Whether packets are taken from strangers, on `udp`; true by default. Without this, the
    /// device takes packets only from the addresses that this NIC has reached itself, to connect or
    /// to send datagrams there. Those of others are dropped and counted before anything of them is
    /// read. This serves clients, which nobody needs to ask. A NIC that listens hears only those
    /// whom it has reached before.
    ///
    /// Other devices have rules of their own: shared memory lets in the processes of the same user,
    /// and raw Ethernet takes what the interface brings.
    pub strangers: bool,
    /// The most queue pairs, including those that have ended and whose numbers
    /// [rest](Self::time_wait): from 1 to 262,144. Tables have room for 2048 at first, and grow as
    /// there are more.
    pub queue_pairs: usize,
    /// The most registrations of memory, rounded up to a power of two; at most 2²⁰.
    pub registrations: usize,
    /// The most completions that wait for futures to take them. There is room for more once there
    /// are as many queue pairs.
    pub completions: usize,
    /// How long peers may be silent before the connections to them break. With requests under way,
    /// the default is five seconds: so soon the death of a peer is noticed that nothing announces.
    /// It also limits how long a peer may be stopped: see [`KeepAlive`].
    pub keep_alive: KeepAlive,
    /// How long a peer's connection manager may take to answer; 4 seconds by default. After that
    /// time, a [request](crate::Domain::connect) for a connection is given up if nothing at all
    /// comes back, an [accepted](crate::Incoming::accept) connection if the peer does not confirm
    /// it, and the [end](crate::Connection::disconnect) of a connection goes without the peer's
    /// answer. The request tells the time to the peer, as closely as its format can. From 10 ms to
    /// 10 minutes.
    pub connect_timeout: Duration,
    /// How long a program may take to accept a peer; 20 seconds by default. A peer's request is
    /// given up after that time at the latest, be it accepted or not. This side waits for the same
    /// time if a peer's connection manager says that its program has not decided. From 10 ms to 10
    /// minutes.
    pub accept_timeout: Duration,
    /// Whether to offer [peers](crate::Connection) of this implementation to send again only what
    /// was lost, and not everything behind it, too; true by default. Both sides must offer it. It
    /// has no effect on devices that lose nothing, like shared memory.
    pub selective_repeat: bool,
    /// Whether connections slow down where their packets wait in the queues of switches, or
    /// switches mark them; true by default. Peers with which [selective
    /// repeat](Self::selective_repeat) is shared report both, and packets to them tell switches that
    /// they may be marked (ECN). Standard peers may send congestion notifications (CNPs), which are
    /// heeded.
    pub congestion_control: bool,
    /// Whether packets to standard peers tell switches that they may be marked, too; false by
    /// default. Adapters answer marks by notifications, if their operators have them do so. The
    /// kernel's driver does not, and packets that are marked rather than dropped would slow nobody
    /// down. Without [congestion control](Self::congestion_control) it has no effect.
    pub ecn_to_standard_peers: bool,
    /// How many routes a connection tries to peers with which [selective
    /// repeat](Self::selective_repeat) is shared, from 1 to 16; 1 by default. Its packets name as
    /// many UDP source ports, by which routers choose among routes of equal cost, and routes that
    /// are congested or dead are avoided. It has an effect on devices that send from any port,
    /// `packet-v2`; on others, and without selective repeat, there is one route, which the NIC's
    /// log tells (`RUST_LOG=doorbell_verbs=warn`).
    pub paths: u8,
    /// The encryption of connections over a network: none by default. It is made by the crate
    /// `doorbell-secure`. Over shared memory, where the kernel says which user and process the peer
    /// is, nothing is encrypted.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub encryption: Encryption,
    /// How long the numbers of a connection that has ended are not used again: longer than any of
    /// its packets may be under way. Zero is allowed, on networks that keep no packet.
    pub time_wait: Duration,
    /// The seed of the numbers that nobody must guess, and of the GUID that distinguishes this NIC
    /// from others that are opened at the same address before or after. Without a seed, they come
    /// from the system. Tests give one to get the same run again. Two NICs that meet the same peers
    /// must not have the same seed.
    pub seed: Option<u64>,
}

impl Default for Config {
    /// Runs the NIC inline, with 50 µs of spinning, and up to 65,536 queue pairs.
    fn default() -> Self {
        let cm::Config { time_wait, unconfirmed, undecided, .. } = cm::Config::new(CaGuid(0));
        Self {
            progress: Progress::Inline,
            spin: Duration::from_micros(50),
            offload: true,
            strangers: true,
            queue_pairs: 65_536,
            registrations: 4096,
            completions: 4096,
            keep_alive: KeepAlive::default(),
            selective_repeat: true,
            congestion_control: true,
            ecn_to_standard_peers: false,
            paths: 1,
            encryption: Encryption::OFF,
            connect_timeout: unconfirmed,
            accept_timeout: undecided,
            time_wait,
            seed: None,
        }
    }
}
