//! Flows: whom a packet comes from, as far as the device knows.

use crate::encap::{Outer, PathId};

/// Whom a packet comes from, as far as the device knows.
#[derive(Clone, Copy, Debug)]
pub enum Flow<'a> {
    /// By a link of its own, which leads nowhere else: whatever a lossless device receives.
    Link(PathId),
    /// By a network: the outer headers, and a number that is the same only if they are. It is the
    /// one of [`Arrival::flow`](crate::encap::Arrival::flow), so a NIC is given the packets of one
    /// [`Opener`] only.
    Network(u64, &'a Outer),
}

impl Flow<'_> {
    /// A number that no other flow has: links are numbered downwards, networks' flows upwards from
    /// one.
    #[inline(always)]
    pub(crate) fn number(self) -> u64 {
        match self {
            Self::Link(PathId(link)) => !u64::from(link),
            Self::Network(flow, _) => flow,
        }
    }

    /// The link, if it is one.
    #[inline]
    pub(crate) fn link(self) -> Option<PathId> {
        match self {
            Self::Link(link) => Some(link),
            Self::Network(..) => None,
        }
    }
}
