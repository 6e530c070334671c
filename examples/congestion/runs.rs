//! What can be measured, and in which cases.

use clap::ValueEnum;

use doorbell::protocol::wire::PathMtu;

use doorbell_simulation::LeafSpineSize;

use crate::cable::Cable;
use crate::incast::Incast;
use crate::leaf_spine::AllToAll;
use crate::line::Line;
use crate::parking_lot::ParkingLot;
use crate::spines::Spines;

/// A run: cases of one kind.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub enum Run {
    /// One connection over a cable that loses frames at random
    Loss,
    /// One connection over a cable that reorders frames
    Reorder,
    /// Many nodes write to one, or one reads from many
    Incast,
    /// One flow passes several links, each of which another flow shares with it
    ParkingLot,
    /// All nodes of a network of two tiers send to each other
    LeafSpine,
    /// Flows between two switches take several routes, one of which may die
    Paths,
}

/// How a connection makes losses good.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transport {
    GoBackN,
    Selective,
}

impl Transport {
    pub fn name(self) -> &'static str {
        match self {
            Self::GoBackN => "go-back-n",
            Self::Selective => "selective",
        }
    }
}

/// One case of a run.
pub enum Case {
    Cable(Cable),
    Incast(Incast),
    ParkingLot(ParkingLot),
    AllToAll(AllToAll),
    Spines(Spines),
}

impl Run {
    pub const ALL: [Self; 6] =
        [Self::Loss, Self::Reorder, Self::Incast, Self::ParkingLot, Self::LeafSpine, Self::Paths];

    pub fn title(self) -> &'static str {
        match self {
            Self::Loss => "One connection, frames lost at random in both directions",
            Self::Reorder => "One connection, frames held back for up to ten others",
            Self::Incast => "Many to one, through a port with a buffer of 256 KiB",
            Self::ParkingLot => "One flow over three links, each shared with another flow",
            Self::Paths => "Eight flows between two switches, with eight routes",
            Self::LeafSpine => "All send 256 KiB to each other, at 10 Gbit/s in two tiers",
        }
    }

    pub fn cases(self, quick: bool) -> Vec<Case> {
        let messages = if quick { 16 } else { 256 };
        let mut cases = Vec::new();
        for mtu in [PathMtu::Mtu4096, PathMtu::Mtu1024] {
            for transport in [Transport::Selective, Transport::GoBackN] {
                let paths: &[u8] = if transport == Transport::Selective { &[1, 16] } else { &[1] };
                let cable = Cable { transport, mtu, messages, loss: 0.0, reordering: 0.0 };
                match self {
                    Self::Loss => cases.extend(
                        [0.0, 0.001, 0.01, 0.05].map(|loss| Case::Cable(Cable { loss, ..cable })),
                    ),
                    Self::Reorder => cases.push(Case::Cable(Cable { reordering: 0.01, ..cable })),
                    Self::Incast => cases.extend(Incast::cases(transport, mtu, quick)),
                    Self::ParkingLot => cases.extend([true, false].map(|ecn| {
                        let (links, buffer) = (3, 256 << 10);
                        Case::ParkingLot(ParkingLot { transport, mtu, links, ecn, buffer })
                    })),
                    Self::LeafSpine => {
                        let (leaves, nodes, spines) = if quick { (4, 4, 4) } else { (16, 16, 16) };
                        cases.extend(paths.iter().map(|&paths| {
                            Case::AllToAll(AllToAll {
                                transport,
                                mtu,
                                size: LeafSpineSize { leaves, nodes, spines },
                                paths,
                                bytes: 256 << 10,
                                buffer: 256 << 10,
                            })
                        }));
                    }
                    Self::Paths => cases.extend(paths.iter().flat_map(|&paths| {
                        [false, true].map(|dies| {
                            let buffer = 256 << 10;
                            Case::Spines(Spines { transport, mtu, paths, dies, buffer })
                        })
                    })),
                }
            }
        }
        cases
    }
}

impl Case {
    /// Measures the case.
    ///
    /// # Errors
    /// When it does not come to its end in time.
    pub fn measure(&self, seed: u64) -> anyhow::Result<Line> {
        match self {
            Self::Cable(cable) => cable.measure(seed),
            Self::Incast(incast) => incast.measure(seed),
            Self::ParkingLot(lot) => lot.measure(seed),
            Self::AllToAll(all) => all.measure(seed),
            Self::Spines(spines) => spines.measure(seed),
        }
    }
}
