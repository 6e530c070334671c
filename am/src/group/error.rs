//! Errors of groups and of collectives.

use std::sync::Arc;

use doorbell_verbs::Name;
use thiserror::Error;

use crate::error::OpenError;
use crate::group::collective::Collective;

/// The reason why a group was not joined, or why a collective has failed.
///
/// An error about a member names it: `rank` is the member's rank in the team that ran the
/// collective, and `whole` is the member's rank in the whole group. Every member of the team gets
/// an error for the failed collective, unless the collective was done for it already, and for each
/// collective that it begins later.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum GroupError {
    /// The configuration is invalid.
    #[error("{field} is {found}, and must be {expected}")]
    Config {
        /// The field of the configuration that is wrong.
        field: &'static str,
        /// The value that the field has.
        found: String,
        /// The values that the field may have.
        expected: String,
    },
    /// The group's endpoint was not opened.
    #[error("opening the endpoint of the group")]
    Open(#[source] Arc<OpenError>),
    /// A member could not be connected to, by attempts for as long as
    /// [`patience`](super::GroupConfig::patience) says.
    #[error("member {}, {name}, was not connected to: {why}", text(*.rank, *.whole))]
    Connect {
        /// The rank of the member in the team.
        rank: usize,
        /// The rank of the member in the whole group.
        whole: usize,
        /// The name of the member's endpoint.
        name: Name,
        /// Why the last attempt failed.
        why: Arc<str>,
    },
    /// A member's endpoint belongs to a group of another size or of other members.
    #[error(
        "member {}, {name}, is in another group: all members must be given the same list of \
         members, and each its own place there (`GroupConfig::members`, `GroupConfig::rank`)",
        text(*.rank, *.whole)
    )]
    OtherGroup {
        /// The rank of the member in the team.
        rank: usize,
        /// The rank of the member in the whole group.
        whole: usize,
        /// The name of the member's endpoint.
        name: Name,
    },
    /// A member's process has ended, or the connection to it.
    #[error("member {}, {name}, has gone: {why}", text(*.rank, *.whole))]
    Gone {
        /// The rank of the member in the team.
        rank: usize,
        /// The rank of the member in the whole group.
        whole: usize,
        /// The name of the member's endpoint.
        name: Name,
        /// How the connection ended.
        why: Arc<str>,
    },
    /// A member left the team in order, before this collective.
    #[error(
        "member {} has left: its last collective was number {last}, and there is none behind that \
         for the team",
        text(*.rank, *.whole)
    )]
    Left {
        /// The rank of the member in the team.
        rank: usize,
        /// The rank of the member in the whole group.
        whole: usize,
        /// The number of the last collective of the team that the member took part in, counted from
        /// 1.
        last: u64,
    },
    /// A member dropped the future of a collective before the collective was done.
    #[error(
        "member {} has given up a collective: what is begun must be awaited to its end by all \
         members, in a task of its own if there is other work (`tokio::spawn`)",
        text(*.rank, *.whole)
    )]
    GaveUp {
        /// The rank of the member in the team.
        rank: usize,
        /// The rank of the member in the whole group.
        whole: usize,
    },
    /// Members called different collectives at the same place of their programs.
    #[error(
        "member {} is in {there}, and another member in {here}: all members must call the same \
         collectives in the same order, with the same root",
        text(*.rank, *.whole)
    )]
    Mismatch {
        /// The rank in the team of a member that is in another collective than the member that
        /// noticed.
        rank: usize,
        /// The rank of that other member in the whole group.
        whole: usize,
        /// The collective of the member that noticed.
        here: Collective,
        /// The collective of the other member, the one of that rank.
        there: Collective,
    },
    /// A member had more bytes to send at a time than members take.
    #[error(
        "member {} had {len} bytes to send at a time, with what it collected from others, and \
         members take {longest}: configure more (`GroupConfig::longest`), or send less",
        text(*.rank, *.whole)
    )]
    TooLong {
        /// The rank of the member in the team.
        rank: usize,
        /// The rank of the member in the whole group.
        whole: usize,
        /// How many bytes the member had to send.
        len: u64,
        /// How many bytes members take at the most.
        longest: u64,
    },
    /// A member sent a message that belongs to no collective.
    #[error(
        "member {} has sent what belongs to no collective of the team: all members must be the \
         same version of the program",
        text(*.rank, *.whole)
    )]
    Malformed {
        /// The rank of the member in the team.
        rank: usize,
        /// The rank of the member in the whole group.
        whole: usize,
    },
    /// A member gave other elements than another member to a collective that combines them, or
    /// named another operator.
    #[error("member {} {why}", text(*.rank, *.whole))]
    Unlike {
        /// The rank of the member in the team.
        rank: usize,
        /// The rank of the member in the whole group.
        whole: usize,
        /// The difference between what the two members gave.
        why: Arc<str>,
    },
    /// The runtime that served the group was shut down before the collective was done.
    #[error("the runtime of the group's bundle was shut down before the collective was done")]
    Shutdown,
    /// No member has the rank that was given as the root. Nothing was sent.
    #[error("the root is member {root}, and the team has the members below {size}")]
    Root {
        /// The rank that was given as the root.
        root: usize,
        /// How many members the team has.
        size: usize,
    },
    /// The number of parts to send is not the number of members. Nothing was sent.
    #[error(
        "there are {found} parts to send, and {size} members: one is for each, in the order of \
         ranks"
    )]
    Parts {
        /// How many parts were given.
        found: usize,
        /// How many members the team has.
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
            | Self::Malformed { rank, .. }
            | Self::Unlike { rank, .. } => Some(rank),
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
