//! Flows: the origin of a packet, as far as the device knows.

use crate::encap::{Outer, PathId};

/// The origin of a packet, as far as the device knows.
#[derive(Clone, Copy, Debug)]
pub enum Flow<'a> {
    /// A link that leads to one peer only: the packets of lossless devices come by links.
    Link(PathId),
    /// A network, with the outer headers, and a number that is the same only if they are. The
    /// number is that of [`Arrival::flow`](crate::encap::Arrival::flow), so a NIC is given the
    /// packets of one [`Opener`](crate::encap::Opener) only.
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

    /// The link, if the flow is one.
    #[inline]
    pub(crate) fn link(self) -> Option<PathId> {
        match self {
            Self::Link(link) => Some(link),
            Self::Network(..) => None,
        }
    }
}
