//! The handle by which a process joins a group and runs collectives.

use std::fmt;
use std::ops::Deref;

use super::config::GroupConfig;
use super::error::GroupError;
use super::member::core::Core;
use super::member::leaving::{Membership, leave};
use crate::progress::Bundle;

/// A process's place in a group, or in a team of it, by which the process runs collectives with the
/// other members. See the [module](super).
///
/// Clones are handles to the same place. When the last is dropped, the member leaves in the
/// background, as [`leave`](Self::leave) does. A program that is about to end awaits
/// [`leave`](Self::leave): if its runtime ends first, the other members take this one to have died.
///
/// The collectives are the methods of the [group](doorbell_collectives::Group) to which this one
/// dereferences.
#[derive(Clone)]
pub struct Group(doorbell_collectives::Group<Membership>);

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Deref for Group {
    type Target = doorbell_collectives::Group<Membership>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Group {
    /// Joins a group and opens this process's endpoint, by its name in the list of members. No
    /// other member is connected to yet.
    ///
    /// # Errors
    /// When the configuration is invalid, or the endpoint can't be opened.
    pub async fn join(bundle: &Bundle, config: GroupConfig) -> Result<Self, GroupError> {
        let ways = vec![0; config.members.len()].into();
        Self::open(std::slice::from_ref(bundle), ways, config).await
    }

    /// Joins a group whose members are reached by different NICs of this process: the member of
    /// rank `r` by the bundle `bundles[ways[r]]`, at the name that `config.members[r]` is here.
    /// The bundles must be [united](Bundle::unite), and all members must have the same service
    /// numbers in their lists of members; addresses may differ.
    ///
    /// # Errors
    /// As [`join`](Self::join), and when the ways are not one for each member, or lead beyond the
    /// bundles.
    pub async fn join_by(
        bundles: &[Bundle],
        ways: &[usize],
        config: GroupConfig,
    ) -> Result<Self, GroupError> {
        let members = config.members.len();
        let wrong = |field, found: usize, expected: String| GroupError::Config {
            field,
            found: found.to_string(),
            expected,
        };
        if ways.len() != members {
            let expected = format!("{members}, one for each member");
            return Err(wrong("the number of ways to members", ways.len(), expected));
        }
        if let Some(&beyond) = ways.iter().find(|way| **way >= bundles.len()) {
            let expected = format!("below {}, the number of bundles", bundles.len());
            return Err(wrong("the way to a member", beyond, expected));
        }
        Self::open(bundles, ways.into(), config).await
    }

    pub(super) fn of(membership: Membership) -> Self {
        Self(doorbell_collectives::Group::of(membership))
    }

    fn membership(&self) -> &Membership {
        self.0.communicator()
    }

    async fn open(
        bundles: &[Bundle],
        ways: Box<[usize]>,
        config: GroupConfig,
    ) -> Result<Self, GroupError> {
        if bundles.is_empty() {
            let (field, found) = ("the number of bundles", "0".to_owned());
            let expected = "at least one".to_owned();
            return Err(GroupError::Config { field, found, expected });
        }
        let core = Core::open(bundles, ways, config).await?;
        let team = core.mailbox.whole();
        Ok(Self::of(Membership::new(core, team)))
    }

    /// Converts the rank of a member of this team to the member's rank in the whole group.
    ///
    /// # Panics
    /// When there is no member of that rank.
    pub fn whole(&self, rank: usize) -> usize {
        assert!(
            rank < self.size(),
            "the team has {} members, and none of rank {rank}",
            self.size()
        );
        self.membership().team.whole(rank) as usize
    }

    /// The bundle that serves the group's endpoint.
    pub fn bundle(&self) -> Bundle {
        self.membership().core.bundle.clone()
    }

    /// How many messages of members were dropped because they belonged to no collective, or came
    /// too late.
    pub fn malformed(&self) -> u64 {
        self.membership().core.mailbox.malformed()
    }

    /// Leaves the team, once everything is done that this member has begun there. When the future
    /// is done, the other members have taken what was sent to them, and have been told that this
    /// member takes part in no further collective; a member that takes nothing for ten seconds is
    /// not waited for. A later collective that needs this member fails for them with
    /// [`Left`](super::GroupError::Left). A member leaves the whole group when it is in no team of
    /// the group any more; then its connections end.
    ///
    /// Only members with a connection to this one are told. If there are none, nobody is told: to a
    /// member that tries to connect later, this one seems never to have come.
    ///
    /// Collectives that other handles to the same place begin fail from then on. The future may be
    /// dropped: the member then leaves in the background.
    pub async fn leave(self) {
        let Membership { core, team } = self.membership();
        if core.mailbox.begins_to_leave(team.context) {
            let left = core.bundle.runtime().spawn(leave(core.clone(), team.clone()));
            let _ = left.await;
        }
    }
}
