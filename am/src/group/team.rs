//! Teams: the members of the whole group that run collectives together.

use std::sync::Arc;

use doorbell_verbs::Name;

/// The members of a team, and the rank of this process among them.
pub(super) struct Team {
    /// The number by which messages name the team: 0 for the whole group.
    pub context: u64,
    /// The rank of this process in the team.
    pub rank: usize,
    /// The names of all members of the whole group.
    pub names: Arc<[Name]>,
    /// The members of the team; `None` if the team is the whole group.
    pub members: Option<Members>,
}

/// The members of a team that is not the whole group, in their order in the team.
pub(super) struct Members {
    /// The members' ranks in the whole group, in the order of their ranks in the team.
    wholes: Box<[u32]>,
    /// The members' ranks in the whole group, ascending, each with the member's rank in the team.
    ranks: Box<[(u32, u32)]>,
}

impl FromIterator<u32> for Members {
    /// Collects members by their ranks in the whole group, in the order of their ranks in the team.
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

    /// Converts the rank of a member of the team to the member's rank in the whole group.
    #[inline]
    pub fn whole(&self, rank: usize) -> u32 {
        self.members.as_ref().map_or(rank as u32, |members| members.wholes[rank])
    }

    /// Converts the rank of a member of the whole group to its rank in the team; `None` if the
    /// member is not in the team.
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

/// The number of the team of a colour that a split makes: a hash of the number of the team that is
/// split, of the split's sequence number, and of the colour. All members compute the same number.
/// Two teams of a process have equal numbers no more likely than two random numbers of 64 bits.
pub(super) fn context_of(parent: u64, sequence: u64, color: u32) -> u64 {
    [sequence, color.into()].into_iter().fold(mixed(parent), |context, part| mixed(context ^ part))
}

/// The finalizer of SplitMix64: if two numbers differ in one bit, the results differ in about half
/// of their bits.
pub(super) fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let number = (number ^ number >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ number >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ number >> 31
}
