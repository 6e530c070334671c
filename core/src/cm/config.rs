//! What a connection manager is told when it is made: who it is, how much it holds, how long it
//! waits.

use std::ops::RangeInclusive;
use std::time::Duration;

use thiserror::Error;

use crate::wire::CaGuid;
use crate::wire::cm::CmTimeout;

use super::extensions::Extensions;

/// Who a connection manager is, how much it holds, and how long it waits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// The GUID that peers know this manager and its NIC by, which tells one run of a program from
    /// the next at the same address. No two managers share one: draw it with
    /// [`Seed::guid`](crate::common::Seed::guid), so that strangers cannot guess it.
    pub guid: CaGuid,
    /// The process among those of the interface, by the tag that its queue pair numbers carry
    /// ([`Numbering::tag`](crate::nic::Numbering)). No two living processes of an interface share
    /// it.
    pub tag: u32,
    /// How many bits the tag takes: the same for all processes of an interface.
    pub tag_bits: u32,
    /// Whether this manager answers for the whole interface: see
    /// [`set_owner`](super::ConnectionManager::set_owner).
    pub owner: bool,
    /// The most connections that are being made, stand, or are being ended. At least one.
    pub connections: usize,
    /// Room for as many more connections that are over and wait until their numbers may be used
    /// again. Where it is exceeded, those take the room of new ones.
    pub time_waits: usize,
    /// The most connections that peers have asked for and that do not stand: those that the program
    /// has not decided about, and those that it accepted and whose peer has not confirmed. When
    /// there are as many, a new request takes the place of the oldest from the way that has the
    /// most, or waits until it is repeated.
    pub half_open: usize,
    /// How long a half-open connection keeps its place while no way has more of them: as long as an
    /// honest peer takes to confirm. It is a fifth of that when the new request comes by a way that
    /// has none.
    pub grace: Duration,
    /// The most services that this manager listens to, and the most that it is told others do.
    pub services: usize,
    /// The most datagrams that wait to be sent. One more is lost, and said again when its time
    /// comes, as if the network had lost it.
    pub outgoing: usize,
    /// How long a connection's numbers rest when it is over: longer than any packet of it may be on
    /// its way. A request that comes later is taken for a new one.
    pub time_wait: Duration,
    /// The longest that a peer is waited for after its connection was accepted here, and after one
    /// was ended here, whatever time-outs the peer's request names.
    pub unconfirmed: Duration,
    /// The longest that a program may take to decide about a connection: this side's, before its
    /// peer's request is given up, and the peer's, whose manager asks for patience meanwhile.
    pub undecided: Duration,
    /// How long the peer of a connection has to show that it is there when another peer claims to
    /// have taken its place: no less than the driver gives it (see
    /// [`Event::Claimed`](super::Event::Claimed)).
    pub verification: Duration,
    /// The patience that a peer is asked for when it asks again and the program hasn't decided.
    pub patience: CmTimeout,
    /// What every wait for a peer is held to, whatever messages say: neither may a peer have its
    /// reply repeated every few microseconds, nor make this side wait for hours.
    pub waits: RangeInclusive<Duration>,
    /// The extensions of the protocol that this side speaks, and so offers.
    pub extensions: Extensions,
}

impl Config {
    /// An owner that is process 1 of 64, with room for 1024 connections, 256 of them half-open,
    /// each of which keeps its place for 50 ms at least. Numbers rest for half a second, as with
    /// the Linux kernel's driver. Peers have 4 seconds to confirm, programs 20 seconds to decide.
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
            patience: CmTimeout::new(18),
            waits: Duration::from_millis(1)..=Duration::from_secs(60),
            extensions: Extensions::NONE,
        }
    }

    /// How long to wait for what a message promises within `promised`.
    pub(super) fn wait(&self, promised: CmTimeout) -> Duration {
        promised.duration().max(*self.waits.start()).min(*self.waits.end())
    }
}

/// A configuration that can't be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum ConfigError {
    /// Without connections there is nothing to manage.
    #[error("a manager of no connections: configure at least one")]
    NoConnections,
    /// A tag needs more bits than it was given.
    #[error("tag {tag} needs more than its {tag_bits} bits: give it more, or another tag")]
    Tag {
        /// The tag.
        tag: u32,
        /// Its bits.
        tag_bits: u32,
    },
    /// Connections can't all be named.
    #[error(
        "{connections} connections with their time-waits take {needed} bits of 32 beside the tag's \
         {tag_bits}, where 8 must remain to tell an old name from a new one: configure fewer"
    )]
    Names {
        /// How many, those in time-wait among them.
        connections: usize,
        /// The bits that they take.
        needed: u32,
        /// The bits of the tag.
        tag_bits: u32,
    },
}
