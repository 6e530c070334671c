//! The configuration of a connection manager: its identity, its limits, its time-outs.

use std::ops::RangeInclusive;
use std::time::Duration;

use thiserror::Error;

use crate::wire::CaGuid;
use crate::wire::cm::CmTimeout;

use super::extensions::Extensions;

/// The configuration of a connection manager: its identity, its limits, its time-outs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// The GUID by which peers know this manager and its NIC, and which tells one run of a program
    /// from the next at the same address. No two managers may share a GUID. Draw it with
    /// [`Seed::guid`](crate::common::Seed::guid), so that strangers cannot guess it.
    pub guid: CaGuid,
    /// The tag of this process, which its queue pair numbers carry, too
    /// ([`Numbering::tag`](crate::nic::Numbering)). No two living processes of an interface share
    /// a tag.
    pub tag: u32,
    /// The number of bits that a tag has, which is the same for all processes of an interface.
    pub tag_bits: u32,
    /// Whether the manager answers for the whole interface. See
    /// [`set_owner`](super::ConnectionManager::set_owner).
    pub owner: bool,
    /// The most connections that may be under way, established or being ended. At least one.
    pub connections: usize,
    /// The most connections in time-wait for which there is room beside the `connections`. When
    /// more are in time-wait, they take room that new connections would have had.
    pub time_waits: usize,
    /// The most half-open connections: those that peers have requested, and that the program has
    /// not decided about or the peer has not confirmed. When there are as many, a new request takes
    /// the place of one from the way that has the most, the oldest that was not accepted if there
    /// is one, or is dropped until the peer repeats it.
    pub half_open: usize,
    /// How long a half-open connection keeps its place while no way has more of them: as long as an
    /// honest peer takes to confirm. A fifth of this time applies when the new request comes by a
    /// way that has no half-open connection.
    pub grace: Duration,
    /// The most services that this manager listens to, and the most that it remembers as listened
    /// to by other processes.
    pub services: usize,
    /// The most datagrams that wait to be sent. A datagram beyond that is dropped, and sent again
    /// at its time-out, as if the network had lost it.
    pub outgoing: usize,
    /// How long the identifiers of a connection that is over stay unused (TimeWait): longer than
    /// any packet of it may be on its way. A request that comes later counts as a new one.
    pub time_wait: Duration,
    /// The longest wait for the peer's confirmation after a connection was accepted here, or ended
    /// here, whatever time-outs the peer's request names.
    pub unconfirmed: Duration,
    /// The longest time that a program may take to decide about a connection. It bounds the program
    /// here, whose peer's request is then given up, and the peer's program, for which its manager
    /// asks for more time by MRAs.
    pub undecided: Duration,
    /// How long the peer of a connection has to show that it is alive when another peer claims to
    /// have taken its place. At least as long as the driver waits for the peer's answer (see
    /// [`Event::Claimed`](super::Event::Claimed)).
    pub verification: Duration,
    /// The service time-out of the MRA that answers a repeated message while the program has not
    /// decided.
    pub mra_timeout: CmTimeout,
    /// The shortest and the longest wait for a peer, whatever time-outs messages name. So a peer
    /// can neither have its reply repeated every few microseconds, nor make this side wait for
    /// hours.
    pub waits: RangeInclusive<Duration>,
    /// The extensions of the protocol that this side can use, and so offers to peers.
    pub extensions: Extensions,
}

impl Config {
    /// Returns the configuration of an interface's owner, process 1 of 64, with room for 1024
    /// connections, 256 of them half-open, each of which keeps its place for at least 50 ms.
    /// Identifiers stay in time-wait for half a second, as with the Linux kernel's driver. Peers
    /// have 4 seconds to confirm, programs 20 seconds to decide.
    pub fn new(guid: CaGuid) -> Self {
        Self {
            guid,
            tag: 1,
            tag_bits: 6,
            owner: true,
            connections: 1024,
            time_waits: 1024,
            half_open: 256,
            grace: Duration::from_millis(50),
            services: 1024,
            outgoing: 4096,
            time_wait: Duration::from_millis(537),
            unconfirmed: Duration::from_secs(4),
            undecided: Duration::from_secs(20),
            verification: Duration::from_millis(1250),
            mra_timeout: CmTimeout::new(18),
            waits: Duration::from_millis(1)..=Duration::from_secs(60),
            extensions: Extensions::NONE,
        }
    }

    /// Returns how long to wait for an answer that a message promises within `promised`.
    pub(super) fn wait(&self, promised: CmTimeout) -> Duration {
        promised.duration().max(*self.waits.start()).min(*self.waits.end())
    }
}

/// A configuration with which no manager can be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum ConfigError {
    /// The configuration has room for no connection at all.
    #[error("a manager of no connections: configure at least one")]
    NoConnections,
    /// The tag is too large for the number of bits that tags have.
    #[error("tag {tag} needs more than its {tag_bits} bits: give it more, or another tag")]
    Tag {
        /// The tag of this process.
        tag: u32,
        /// The number of bits that tags have.
        tag_bits: u32,
    },
    /// Too few communication IDs exist for so many connections.
    #[error(
        "{connections} connections with their time-waits take {needed} bits of 32 beside the tag's \
         {tag_bits}, where 8 must remain to tell an old name from a new one: configure fewer"
    )]
    Names {
        /// The number of connections, those in time-wait included.
        connections: usize,
        /// The number of bits that so many connections take.
        needed: u32,
        /// The number of bits that tags have.
        tag_bits: u32,
    },
}
