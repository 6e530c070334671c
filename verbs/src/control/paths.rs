//! Numbers of paths, by which packets to one host share a frame.

use std::collections::HashMap;

use doorbell_core::encap::{Path, PathId};

use crate::link::Way;

/// The numbers of all paths in use. Packets of two queue pairs share a frame if their paths lead to
/// the same host, and so have the same number.
#[derive(Default)]
pub(super) struct Paths {
    /// For each route, its number, and the number of queue pairs that use it.
    pub known: HashMap<Way, (PathId, usize)>,
    last: u32,
    /// The last used of the two numbers for lone datagrams: 0 or 1.
    alone: u32,
}

impl Paths {
    /// The first of the two numbers that lone datagrams use in turn. The paths of queue pairs have
    /// smaller numbers.
    const FIRST_ALONE: u32 = u32::MAX - 1;

    pub fn take(&mut self, way: &Way) -> Path {
        let (id, users) = self.known.entry(way.clone()).or_insert_with(|| {
            self.last = (self.last + 1) % Self::FIRST_ALONE;
            (PathId(self.last), 0)
        });
        *users += 1;
        way.path(*id)
    }

    /// Returns the path of a datagram that shares no frame with the packet sent before it. Its
    /// number is no queue pair's, and not that of the last lone datagram, which may have gone to
    /// another host.
    pub fn alone(&mut self, way: &Way) -> Path {
        self.alone ^= 1;
        way.path(PathId(Self::FIRST_ALONE + self.alone))
    }

    pub fn give_back(&mut self, way: &Way) {
        let Some((_, users)) = self.known.get_mut(way) else { return };
        *users -= 1;
        if *users == 0 {
            self.known.remove(way);
        }
    }
}
