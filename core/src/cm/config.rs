//! What a connection manager is told when it is made: who it is, how much it holds, how long it
//! waits.

use std::ops::RangeInclusive;
use std::time::Duration;

use thiserror::Error;

use crate::wire::CaGuid;
use crate::wire::cm::CmTimeout;

use super::extensions::Extensions;

/// Who a connection manager is, how much it holds, and how long it waits.
#[derive(Clone, Debug)]
pub struct Config {
    /// The adapter that queue pairs are said to belong to. Managers of one interface share it; no
    /// two interfaces do.
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
    /// The most services that this manager listens to, and the most that it is told others do.
    pub services: usize,
    /// The most datagrams that wait to be sent. One more is lost, and said again when its time
    /// comes, as if the network had lost it.
    pub outgoing: usize,
    /// How long a connection's numbers rest when it is over: longer than any packet of it may be on
    /// its way. A request that comes later is taken for a new one, and if its queue pair has another
    /// connection by then, ends that.
    pub time_wait: Duration,
    /// The patience that a peer is asked for when it asks again and the program hasn't decided.
    pub patience: CmTimeout,
    /// What every wait for a peer is held to, whatever messages say: neither may a peer have its
    /// reply repeated every few microseconds, nor make this side wait for hours.
    pub waits: RangeInclusive<Duration>,
    /// The extensions of the protocol that this side speaks, and so offers.
    pub extensions: Extensions,
}

impl Config {
    /// An owner that is process 1 of 64, with room for a thousand connections. Numbers rest for
    /// half a second, as with the Linux kernel's driver.
    pub fn new(guid: CaGuid) -> Self {
        Self {
            guid,
            tag: 1,
            tag_bits: 6,
            owner: true,
            connections: 1024,
            time_waits: 1024,
            services: 1024,
            outgoing: 4096,
            time_wait: Duration::from_millis(537),
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
