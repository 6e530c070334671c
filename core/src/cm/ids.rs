//! Communication IDs: the 32-bit names of connections, for the processes that share an interface.
//!
//! The topmost bits are the tag that says which process a connection belongs to, as in its queue
//! pair numbers. All bits below are random, so a peer that knows some communication IDs of a process
//! can't guess the others.

use std::fmt;

use crate::wire::CommId;

use super::config::{Config, ConfigError};

/// A connection of a manager: its local communication ID, and the number of connections that the
/// manager had before. The bits below the process's tag are random, and tell nothing about another
/// connection's ID.
///
/// A communication ID that is free again may be drawn for another connection. The number tells the
/// two apart, so a program that answers a request that is over answers no other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId {
    pub(super) comm_id: CommId,
    /// How many connections the manager had before this one, modulo 2³².
    pub(super) number: u32,
}

impl ConnectionId {
    /// Returns the communication ID as messages carry it.
    pub const fn comm_id(self) -> CommId {
        self.comm_id
    }
}

impl fmt::Display for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "connection {}", self.comm_id)
    }
}

impl fmt::Debug for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ConnectionId({}, {})", self.comm_id, self.number)
    }
}

/// The binary logarithm of how many communication IDs there must be for each connection, so that an
/// ID which is drawn at random is hardly ever in use.
const LEAST_RANDOM: u32 = 8;

/// Makes the communication IDs of this process, and tells them from those of other processes.
///
/// The arithmetic is in 64 bits, since a shift by 32 has no meaning in 32 bits.
#[derive(Clone, Copy)]
pub(super) struct Ids {
    tag: u64,
    /// The number of bits below the tag.
    below: u32,
}

impl Ids {
    /// Checks that tags and the numbers of `slots` connections fit into communication IDs.
    pub fn new(config: &Config, slots: usize) -> Result<Self, ConfigError> {
        let (tag, tag_bits) = (config.tag, config.tag_bits);
        let place_bits = slots.next_power_of_two().trailing_zeros();
        if tag_bits.saturating_add(place_bits).saturating_add(LEAST_RANDOM) > u32::BITS {
            return Err(ConfigError::Names { connections: slots, needed: place_bits, tag_bits });
        }
        if u64::from(tag) >> tag_bits != 0 {
            return Err(ConfigError::Tag { tag, tag_bits });
        }
        Ok(Self { tag: tag.into(), below: u32::BITS - tag_bits })
    }

    /// Returns a communication ID whose bits below the tag are taken from `random`.
    pub fn name(self, random: u32) -> CommId {
        let low = u64::from(random) & ((1 << self.below) - 1);
        CommId((self.tag << self.below | low) as u32)
    }

    /// Returns the process tag in a communication ID.
    pub fn tag(self, name: CommId) -> u32 {
        (u64::from(name.0) >> self.below) as u32
    }

    /// Whether a communication ID belongs to this process.
    pub fn is_ours(self, name: CommId) -> bool {
        u64::from(self.tag(name)) == self.tag
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::CaGuid;

    #[test]
    fn a_name_leads_to_its_process_however_many_bits_that_has() {
        for (tag, tag_bits, slots) in [(1, 6, 2048), (0, 0, 1), (0, 0, 3), (9, 4, 1 << 20)] {
            let config = Config { tag, tag_bits, ..Config::new(CaGuid(1)) };
            let ids = Ids::new(&config, slots).unwrap();
            let names = [0, 1, u32::MAX].map(|random| ids.name(random));
            assert!(names.iter().all(|&name| ids.tag(name) == tag && ids.is_ours(name)));
            assert!(names[0] != names[1] && names[1] != names[2] && names[0] != names[2]);
        }
    }

    #[test]
    fn a_configuration_that_cannot_name_its_connections_is_refused() {
        let refused = |tag, tag_bits, slots| {
            let config = Config { tag, tag_bits, ..Config::new(CaGuid(1)) };
            Ids::new(&config, slots).err()
        };
        assert_eq!(refused(64, 6, 1), Some(ConfigError::Tag { tag: 64, tag_bits: 6 }));
        let names = |connections, needed, tag_bits| {
            Some(ConfigError::Names { connections, needed, tag_bits })
        };
        assert_eq!(refused(1, 20, 32), names(32, 5, 20));
        assert_eq!(refused(1, u32::MAX, 1), names(1, 0, u32::MAX));
        assert_eq!(refused(1, 20, 16), None);
    }
}
