//! What goes wrong with collectives, and why.

use std::sync::Arc;

use thiserror::Error;

use super::collective::Collective;
use crate::error::OpenError;
use crate::name::Name;

/// Why a group was not joined, or a collective has failed.
///
/// An error that is about a member says which one: `rank` in the team that the collective was of,
/// and `whole`, the member's rank in the whole group. All members of the team get an error for the
/// collective, unless it was done for them already; and for each that they begin later.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum GroupError {
    /// The configuration can't be.
    #[error("{field} is {found}, and must be {expected}")]
    Config {
        /// Which field.
        field: &'static str,
        /// What it is.
        found: String,
        /// What it may be.
        expected: String,
    },
    /// The group's endpoint was not opened.
    #[error("opening the endpoint of the group: {0}")]
    Open(#[source] Arc<OpenError>),
    /// A member was not connected to, though it was tried for as long as
    /// [`patience`](super::GroupConfig::patience) says.
    #[error("member {}, {name}, was not connected to: {why}", text(*.rank, *.whole))]
    Connect {
        /// The member's rank.
        rank: usize,
        /// The member's rank in the whole group.
        whole: usize,
        /// The member's name.
        name: Name,
        /// Why the last attempt failed.
        why: Arc<str>,
    },
    /// A member's endpoint is one of a group of another size or of other members.
    #[error(
        "member {}, {name}, is in another group: all members must be given the same list of \
         members, and each its own place there (`GroupConfig::members`, `GroupConfig::rank`)",
        text(*.rank, *.whole)
    )]
    OtherGroup {
        /// The member's rank.
        rank: usize,
        /// The member's rank in the whole group.
        whole: usize,
        /// The member's name.
        name: Name,
    },
    /// A member's process has ended, or the way there.
    #[error("member {}, {name}, has gone: {why}", text(*.rank, *.whole))]
    Gone {
        /// The member's rank.
        rank: usize,
        /// The member's rank in the whole group.
        whole: usize,
        /// The member's name.
        name: Name,
        /// How the connection ended.
        why: Arc<str>,
    },
    /// A member has left the team in order, before this collective.
    #[error(
        "member {} has left: its last collective was number {last}, and there is none behind that \
         for the team",
        text(*.rank, *.whole)
    )]
    Left {
        /// The member's rank.
        rank: usize,
        /// The member's rank in the whole group.
        whole: usize,
        /// The number of the last collective of the team that the member took part in, counted from
        /// 1.
        last: u64,
    },
    /// A member has dropped a collective before it was done.
    #[error(
        "member {} has given up a collective: what is begun must be awaited to its end by all \
         members, in a task of its own if there is other work (`tokio::spawn`)",
        text(*.rank, *.whole)
    )]
    GaveUp {
        /// The member's rank.
        rank: usize,
        /// The member's rank in the whole group.
        whole: usize,
    },
    /// Members have called different collectives at the same place of their programs.
    #[error(
        "member {} is in {there}, and another member in {here}: all members must call the same \
         collectives in the same order, with the same root",
        text(*.rank, *.whole)
    )]
    Mismatch {
        /// The rank of a member of which another has noticed that.
        rank: usize,
        /// That member's rank in the whole group.
        whole: usize,
        /// What the member that has noticed is in.
        here: Collective,
        /// What the member of that rank is in.
        there: Collective,
    },
    /// A member wanted to send more at a time than members take.
    #[error(
        "member {} had {len} bytes to send at a time, with what it collected from others, and \
         members take {longest}: configure more (`GroupConfig::longest`), or send less",
        text(*.rank, *.whole)
    )]
    TooLong {
        /// The member's rank.
        rank: usize,
        /// The member's rank in the whole group.
        whole: usize,
        /// How many bytes.
        len: u64,
        /// The most.
        longest: u64,
    },
    /// A member has sent what belongs to no collective.
    #[error(
        "member {} has sent what belongs to no collective of the team: all members must be the \
         same version of the program",
        text(*.rank, *.whole)
    )]
    Malformed {
        /// The member's rank.
        rank: usize,
        /// The member's rank in the whole group.
        whole: usize,
    },
    /// The runtime that served the group was shut down before the collective was done.
    #[error("the runtime of the group's bundle was shut down before the collective was done")]
    Shutdown,
    /// There is no member of the rank that was given as the root. Nothing was sent.
    #[error("the root is member {root}, and the team has the members below {size}")]
    Root {
        /// The root's rank.
        root: usize,
        /// How many members there are.
        size: usize,
    },
    /// There is not one part for each member. Nothing was sent.
    #[error(
        "there are {found} parts to send, and {size} members: one is for each, in the order of \
         ranks"
    )]
    Parts {
        /// How many parts there are.
        found: usize,
        /// How many members there are.
        size: usize,
    },
}

impl GroupError {
    /// The rank in the whole group of the member that has gone, has left, or was never reached, if
    /// that is what the error is about.
    pub fn gone(&self) -> Option<usize> {
        match *self {
            Self::Connect { whole, .. } | Self::Gone { whole, .. } | Self::Left { whole, .. } => {
                Some(whole)
            }
            _ => None,
        }
    }

    /// The rank in the team of the member that the error is about, if there is one.
    pub fn rank(&self) -> Option<usize> {
        match *self {
            Self::Connect { rank, .. }
            | Self::OtherGroup { rank, .. }
            | Self::Gone { rank, .. }
            | Self::Left { rank, .. }
            | Self::GaveUp { rank, .. }
            | Self::Mismatch { rank, .. }
            | Self::TooLong { rank, .. }
            | Self::Malformed { rank, .. } => Some(rank),
            Self::Config { .. }
            | Self::Open(_)
            | Self::Shutdown
            | Self::Root { .. }
            | Self::Parts { .. } => None,
        }
    }
}

fn text(rank: usize, whole: usize) -> String {
    match rank == whole {
        true => rank.to_string(),
        false => format!("{rank} of the team (rank {whole} of the whole)"),
    }
}
