//! What a group is to be like.

use std::time::Duration;

use super::error::GroupError;
use super::wire::MOST_MEMBERS;
use crate::endpoint::EndpointConfig;
use crate::name::Name;
use crate::tag::{Admits, Tag};

/// What a group is to be like, and which place this process has there.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct GroupConfig {
    /// This process's place in the list of members.
    pub rank: usize,
    /// The names of the endpoints that the members open for the group, in the order of their ranks:
    /// the same list for all. Each member's NIC must be reached by the address in the member's
    /// name; the service number there is one that no other endpoint of that NIC has. At most 2²⁰.
    pub members: Vec<Name>,
    /// What members show each other, and admit each other by. Without a tag, everybody is admitted.
    pub tag: Option<Tag>,
    /// How long a member that can't be connected to is tried again.
    pub patience: Duration,
    /// The most bytes that a member sends to another at a time: the length of what is broadcast,
    /// or, of a gather, all that the members have together. The same for all members.
    pub longest: u64,
    /// The longest [payload](EndpointConfig::payload) of a message of the group's endpoint. As much
    /// of what a member sends goes at once; the rest when its receiver is ready.
    pub payload: usize,
    /// The most messages that each member may have [under way](EndpointConfig::credits) to this
    /// one.
    pub credits: usize,
    /// How many [credits](EndpointConfig::first_credits) a member has at first.
    pub first_credits: usize,
    /// The most [receives](EndpointConfig::receives) of the group's endpoint.
    pub receives: usize,
}

impl Default for GroupConfig {
    /// No members, which must be given; no tag, half a minute of patience, 1 GiB at a time, and an
    /// endpoint as endpoints are by default.
    fn default() -> Self {
        let endpoint = EndpointConfig::default();
        Self {
            rank: 0,
            members: Vec::new(),
            tag: None,
            patience: Duration::from_secs(30),
            longest: 1 << 30,
            payload: endpoint.payload,
            credits: endpoint.credits,
            first_credits: endpoint.first_credits,
            receives: endpoint.receives,
        }
    }
}

impl GroupConfig {
    pub(super) fn check(&self) -> Result<(), GroupError> {
        let size = self.members.len();
        let refused = |field, found: usize, expected: String| {
            Err(GroupError::Config { field, found: found.to_string(), expected })
        };
        if size == 0 || size > MOST_MEMBERS {
            let expected = format!("a list of 1 to {MOST_MEMBERS} names");
            return refused("the length of GroupConfig::members", size, expected);
        }
        if self.rank >= size {
            let expected = format!("below {size}, the number of members");
            return refused("GroupConfig::rank", self.rank, expected);
        }
        Ok(())
    }

    /// The configuration of the group's endpoint.
    pub(super) fn endpoint(&self) -> EndpointConfig {
        EndpointConfig {
            service: Some(self.members[self.rank].service().0),
            admits: self.tag.map_or(Admits::Everybody, Admits::from),
            shows: self.tag,
            credits: self.credits,
            first_credits: self.first_credits,
            payload: self.payload,
            tasks: 1,
            places: self.members.len(),
            receives: self.receives,
            ..EndpointConfig::default()
        }
    }
}
