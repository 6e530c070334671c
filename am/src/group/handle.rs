//! The handle by which a process joins a group and runs collectives.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;

use super::collective::{Collective, Operation};
use super::collectives::run::Run;
use super::collectives::{barrier, begin, folds, moves};
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
#[derive(Clone)]
pub struct Group(pub(super) Arc<Membership>);

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group").field("rank", &self.rank()).field("size", &self.size()).finish()
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
        Ok(Self(Membership::new(core, team)))
    }

    /// The rank of this process among the members: from 0, and below [`size`](Self::size).
    pub fn rank(&self) -> usize {
        self.0.team.rank
    }

    /// The number of members of the group or the team.
    pub fn size(&self) -> usize {
        self.0.team.size()
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
        self.0.team.whole(rank) as usize
    }

    /// The bundle that serves the group's endpoint.
    pub fn bundle(&self) -> Bundle {
        self.0.core.bundle.clone()
    }

    /// How many messages of members were dropped because they belonged to no collective, or came
    /// too late.
    pub fn malformed(&self) -> u64 {
        self.0.core.mailbox.malformed()
    }

    /// Waits until all members have reached the barrier.
    pub fn barrier(&self) -> impl Future<Output = Result<(), GroupError>> + Send + use<> {
        let run = self.begin(Collective::BARRIER);
        async move { barrier::run(run?).await }
    }

    /// Waits until all members have reached the fence: a barrier of its own kind, for libraries
    /// that synchronise something by it. A member in a fence does not meet a member in a
    /// [`barrier`](Self::barrier): that is a mismatch.
    pub fn fence(&self) -> impl Future<Output = Result<(), GroupError>> + Send + use<> {
        let run = self.begin(Collective::of(Operation::Fence));
        async move { barrier::run(run?).await }
    }

    /// Waits until all members have reached the end of their program: a barrier of its own kind,
    /// for libraries that run programs. A member whose program has ended does not meet a member in
    /// a [`barrier`](Self::barrier): that is a mismatch.
    pub fn finish(&self) -> impl Future<Output = Result<(), GroupError>> + Send + use<> {
        let run = self.begin(Collective::of(Operation::Finish));
        async move { barrier::run(run?).await }
    }

    /// Announces that this member has reached a barrier, and returns a future that waits for the
    /// other members: a split-phase barrier, during which this member can do other work. The others
    /// learn of the arrival when `arrive` returns or, at the latest, when the calling task lets
    /// others run.
    ///
    /// ```
    /// # use doorbell_am::group::{Group, GroupError};
    /// async fn step(group: &Group) -> Result<(), GroupError> {
    ///     let arrived = group.arrive();
    ///     // Work that needs nothing of the other members.
    ///     arrived.await
    /// }
    /// ```
    pub fn arrive(&self) -> impl Future<Output = Result<(), GroupError>> + Send + use<> {
        let runtime = self.0.core.bundle.runtime().clone();
        let run = self.begin(Collective::BARRIER);
        let begun = run.map(|run| (barrier::try_begin(&run), run));
        let waits = begun.map(|(sent, run)| match sent {
            Ok(false) => Err(runtime.spawn(barrier::run(run))),
            Ok(true) => Ok((run, Ok(()))),
            Err(failure) => Ok((run, Err(failure))),
        });
        async move {
            match waits? {
                Ok((run, sent)) => barrier::run_begun(run, sent).await,
                Err(task) => task.await.unwrap_or(Err(GroupError::Shutdown)),
            }
        }
    }

    /// Gives all members the `bytes` of the root. The `bytes` of the others are ignored.
    pub fn broadcast(
        &self,
        root: usize,
        bytes: Bytes,
    ) -> impl Future<Output = Result<Bytes, GroupError>> + Send + use<> {
        let run = self.begin_at(Operation::Broadcast, root);
        async move {
            let run = run?;
            let result = moves::broadcast(&run, root, bytes).await;
            run.done(result)
        }
    }

    /// Gives the root the `bytes` of all members, in the order of their ranks; the others get
    /// `None`.
    pub fn gather(
        &self,
        root: usize,
        bytes: Bytes,
    ) -> impl Future<Output = Result<Option<Vec<Bytes>>, GroupError>> + Send + use<> {
        let run = self.begin_at(Operation::Gather, root);
        async move {
            let run = run?;
            let result = moves::gather(&run, root, bytes).await;
            run.done(result)
        }
    }

    /// Gives each member one of the parts that the root passes, which has one for each member in
    /// the order of ranks. The `parts` of the others are ignored.
    ///
    /// ```
    /// use bytes::Bytes;
    /// # use doorbell_am::group::{Group, GroupError};
    ///
    /// async fn share(group: &Group) -> Result<Bytes, GroupError> {
    ///     let part = |rank| Bytes::from(format!("for member {rank}"));
    ///     let parts = (group.rank() == 0).then(|| (0..group.size()).map(part).collect());
    ///     group.scatter(0, parts).await
    /// }
    /// ```
    pub fn scatter(
        &self,
        root: usize,
        parts: Option<Vec<Bytes>>,
    ) -> impl Future<Output = Result<Bytes, GroupError>> + Send + use<> {
        let found = parts.as_ref().map_or(0, Vec::len);
        let run = match root == self.rank() && found != self.size() {
            true => Err(GroupError::Parts { found, size: self.size() }),
            false => self.begin_at(Operation::Scatter, root),
        };
        async move {
            let run = run?;
            let result = moves::scatter(&run, root, parts).await;
            run.done(result)
        }
    }

    /// Gives every member the `bytes` of all members, in the order of ranks.
    pub fn all_gather(
        &self,
        bytes: Bytes,
    ) -> impl Future<Output = Result<Vec<Bytes>, GroupError>> + Send + use<> {
        let run = self.begin(Collective::of(Operation::AllGather));
        async move {
            let run = run?;
            let result = moves::all_gather(&run, bytes).await;
            run.done(result)
        }
    }

    /// Exchanges a part between each two members. A member passes one part for each member, in the
    /// order of ranks, and gets one part from each member, in the same order.
    pub fn all_to_all(
        &self,
        parts: Vec<Bytes>,
    ) -> impl Future<Output = Result<Vec<Bytes>, GroupError>> + Send + use<> {
        let (found, size) = (parts.len(), self.size());
        let run = match found == size {
            true => self.begin(Collective::of(Operation::AllToAll)),
            false => Err(GroupError::Parts { found, size }),
        };
        async move {
            let run = run?;
            let result = moves::all_to_all(&run, parts).await;
            run.done(result)
        }
    }

    /// Combines the `bytes` of all members by an operator, and gives the result to the root; the
    /// others get `None`.
    ///
    /// The operator gets what members of lower ranks gave on the left, and what members of higher
    /// ranks gave on the right, and leaves the result on the left. It must be associative, and need
    /// not be commutative: the order is always that of ranks.
    pub fn reduce<O>(
        &self,
        root: usize,
        bytes: Bytes,
        mut op: O,
    ) -> impl Future<Output = Result<Option<Bytes>, GroupError>> + Send + use<O>
    where
        O: FnMut(&mut Vec<u8>, &[u8]) + Send + 'static,
    {
        let run = self.begin_at(Operation::Reduce, root);
        async move {
            let run = run?;
            let result = folds::reduce(&run, root, bytes, &mut op).await;
            run.done(result)
        }
    }

    /// Combines the `bytes` of all members by an operator, as [`reduce`](Self::reduce) does, and
    /// gives the result to every member. The result is the same at all members to the last bit,
    /// even if the operator rounds.
    ///
    /// ```
    /// use bytes::Bytes;
    /// # use doorbell_am::group::{Group, GroupError};
    ///
    /// async fn greatest(group: &Group, own: u8) -> Result<u8, GroupError> {
    ///     let max = |left: &mut Vec<u8>, right: &[u8]| left[0] = left[0].max(right[0]);
    ///     Ok(group.all_reduce(Bytes::from(vec![own]), max).await?[0])
    /// }
    /// ```
    pub fn all_reduce<O>(
        &self,
        bytes: Bytes,
        mut op: O,
    ) -> impl Future<Output = Result<Bytes, GroupError>> + Send + use<O>
    where
        O: FnMut(&mut Vec<u8>, &[u8]) + Send + 'static,
    {
        let run = self.begin(Collective::of(Operation::AllReduce));
        async move {
            let run = run?;
            let result = folds::all_reduce(&run, bytes, &mut op).await;
            run.done(result)
        }
    }

    /// Gives each member the `bytes` of the members up to and including itself, combined by an
    /// operator as by [`reduce`](Self::reduce).
    pub fn scan<O>(
        &self,
        bytes: Bytes,
        mut op: O,
    ) -> impl Future<Output = Result<Bytes, GroupError>> + Send + use<O>
    where
        O: FnMut(&mut Vec<u8>, &[u8]) + Send + 'static,
    {
        let run = self.begin(Collective::of(Operation::Scan));
        async move {
            let run = run?;
            let result = folds::scan(&run, bytes, &mut op).await;
            run.done(result.map(|(with, _)| with))
        }
    }

    /// Gives each member the `bytes` of the members before itself, combined by an operator as by
    /// [`reduce`](Self::reduce). The member of rank 0 gets `None`.
    pub fn exclusive_scan<O>(
        &self,
        bytes: Bytes,
        mut op: O,
    ) -> impl Future<Output = Result<Option<Bytes>, GroupError>> + Send + use<O>
    where
        O: FnMut(&mut Vec<u8>, &[u8]) + Send + 'static,
    {
        let run = self.begin(Collective::of(Operation::ExclusiveScan));
        async move {
            let run = run?;
            let result = folds::scan(&run, bytes, &mut op).await;
            run.done(result.map(|(_, without)| without))
        }
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
        let Membership { core, team } = &*self.0;
        if core.mailbox.begins_to_leave(team.context) {
            let left = core.bundle.runtime().spawn(leave(core.clone(), team.clone()));
            let _ = left.await;
        }
    }

    pub(super) fn begin(&self, collective: Collective) -> Result<Run, GroupError> {
        begin(&self.0.core, &self.0.team, collective)
    }

    fn begin_at(&self, operation: Operation, root: usize) -> Result<Run, GroupError> {
        let size = self.size();
        if root >= size {
            return Err(GroupError::Root { root, size });
        }
        self.begin(Collective { operation, root: root as u32 })
    }
}
