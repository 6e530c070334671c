//! The parallel program: two ways in which processes rank keys together.

use std::fmt;

use clap::ValueEnum;
use doorbell::splitc::{Error, World};

use crate::by_counts::ByCounts;
use crate::by_keys::ByKeys;
use crate::problem::{Problem, TESTS};
use crate::ranks::Ranks;
use crate::spmd::Stopwatch;

/// The way in which processes rank keys together. Either way, each process ends with the ranks of
/// the keys in its own range of values.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub enum Way {
    /// Each key is sent to the process that has its range of values, as in NAS's own program
    Keys,
    /// Each process counts its own keys by value, and sends the counts
    Counts,
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.to_possible_value().expect("all ways can be chosen").get_name())
    }
}

/// What ranks keys again and again, with the memory that it needs for that.
pub enum Ranker {
    Keys(ByKeys),
    Counts(ByCounts),
}

impl Ranker {
    /// Allocates what ranking needs. A collective call: all processes await it.
    pub async fn new(way: Way, world: &World, problem: &Problem) -> Result<Self, Error> {
        Ok(match way {
            Way::Keys => Self::Keys(ByKeys::new(world, problem).await?),
            Way::Counts => Self::Counts(ByCounts::new(world, problem).await?),
        })
    }

    /// Ranks the keys of all processes. Returns the ranks in this process's range of values, and
    /// the tested keys of all processes. `tested` has those of this process, and 0 for others. A
    /// collective call: all processes await it.
    pub async fn rank(
        &mut self,
        keys: &[u32],
        tested: [u32; TESTS],
        watch: &mut Stopwatch,
    ) -> Result<(Ranks, [u32; TESTS]), Error> {
        match self {
            Self::Keys(ranker) => ranker.rank(keys, tested, watch).await,
            Self::Counts(ranker) => ranker.rank(keys, tested, watch).await,
        }
    }

    /// Frees the shared memory. A collective call: all processes await it.
    pub async fn free(self) -> Result<(), Error> {
        match self {
            Self::Keys(ranker) => ranker.free().await,
            Self::Counts(ranker) => ranker.free().await,
        }
    }
}
