//! The configuration of a group.

use std::time::Duration;

use doorbell_verbs::Name;

use crate::config::EndpointConfig;
use crate::group::error::GroupError;
use crate::group::wire::MOST_MEMBERS;
use crate::wire::{Admits, Tag};

/// The configuration of a group, and the rank of this process there.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct GroupConfig {
    /// The rank of this process, which is the place of its name in the list of members.
    pub rank: usize,
    /// The names of the endpoints that the members open for the group, in the order of their ranks.
    /// All members must have the same list, of 2²⁰ names at most. Each member's NIC must be
    /// reachable by the address in the member's name, and no other endpoint of that NIC may have
    /// the service number there.
    pub members: Vec<Name>,
    /// The tag that members prove to each other that they know, before anything is sent either way.
    /// Without a tag, every peer is admitted. A tag that is to keep strangers out is
    /// [drawn](Tag).
    pub tag: Option<Tag>,
    /// How long attempts to connect to a member are repeated before a collective fails.
    pub patience: Duration,
    /// How long a member waits for another in a collective before it reports that, as a warning of
    /// `tracing`, or on standard error in a program that has no subscriber; never if this is
    /// [`Duration::MAX`]. The report says which collective it is, and who is waited for.
    pub stall: Duration,
    /// The most bytes that a member sends to another at a time: the length of what is broadcast or,
    /// in a gather, of what all members have together. All members must have the same value.
    pub longest: u64,
    /// The longest [payload](EndpointConfig::payload) of a message of the group's endpoint. A
    /// member sends one payload of its data at once, and the rest when the receiver is ready.
    pub payload: usize,
    /// The most messages that each member may have [under way](EndpointConfig::credits) to this
    /// one.
    pub credits: usize,
    /// How many [credits](EndpointConfig::first_credits) for this member each other member has at
    /// first.
    pub first_credits: usize,
    /// The most [receives](EndpointConfig::receives) of the group's endpoint.
    pub receives: usize,
}

impl Default for GroupConfig {
    /// Returns a configuration without members, which must be given; without a tag, with half a
    /// minute of patience, reports of waits after a minute, 1 GiB at a time, and the defaults of
    /// endpoints.
    fn default() -> Self {
        let endpoint = EndpointConfig::default();
        Self {
            rank: 0,
            members: Vec::new(),
            tag: None,
            patience: Duration::from_secs(30),
            stall: crate::stall::USUAL,
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
