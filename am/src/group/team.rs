//! Teams: which members of the whole group run collectives together.

use std::sync::Arc;

use crate::name::Name;

/// The members of a team, and this process's place among them.
pub(super) struct Team {
    /// The number by which messages name the team: 0 for the whole group.
    pub context: u64,
    /// This process's rank in the team.
    pub rank: usize,
    /// The names of all members of the whole group.
    pub names: Arc<[Name]>,
    /// Which members they are; `None` if the team is the whole group.
    pub members: Option<Members>,
}

/// Some members of the whole group, in an order of their own.
pub(super) struct Members {
    /// Their ranks in the whole group, in the order of their ranks in the team.
    wholes: Box<[u32]>,
    /// Their ranks in the whole group, in that order, each with the rank in the team.
    ranks: Box<[(u32, u32)]>,
}

impl FromIterator<u32> for Members {
    /// The members of these ranks in the whole group, in the order of their ranks in the team.
    fn from_iter<I: IntoIterator<Item = u32>>(wholes: I) -> Self {
        let wholes: Box<[u32]> = wholes.into_iter().collect();
        let mut ranks: Box<[_]> = wholes.iter().copied().zip(0..).collect();
        ranks.sort_unstable();
        Self { wholes, ranks }
    }
}

impl Team {
    pub fn size(&self) -> usize {
        self.members.as_ref().map_or(self.names.len(), |members| members.wholes.len())
    }

    /// The rank in the whole group of a member of the team.
    #[inline]
    pub fn whole(&self, rank: usize) -> u32 {
        self.members.as_ref().map_or(rank as u32, |members| members.wholes[rank])
    }

    /// The rank in the team of a member of the whole group, if that is a member of the team.
    pub fn rank_of(&self, whole: u32) -> Option<usize> {
        match &self.members {
            None => Some(whole as usize).filter(|rank| *rank < self.names.len()),
            Some(Members { ranks, .. }) => {
                let at = ranks.binary_search_by_key(&whole, |(whole, _)| *whole).ok()?;
                Some(ranks[at].1 as usize)
            }
        }
    }
}

/// The number of the team of a colour that members of a team made by the split of that sequence
/// number. All members compute it alike. That two teams of a process get the same is as likely as
/// that two random numbers of 64 bits are equal.
pub(super) fn context_of(parent: u64, sequence: u64, color: u32) -> u64 {
    [sequence, color.into()].into_iter().fold(mixed(parent), |context, part| mixed(context ^ part))
}

/// The finalizer of SplitMix64: numbers that differ in a bit become ones that differ in half of
/// theirs.
pub(super) fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let number = (number ^ number >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ number >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ number >> 31
}
