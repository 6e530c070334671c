//! Groups: processes that run collectives together.
//!
//! A [`Group`] is one process's place among processes that all run the same collectives in the same
//! order: barriers, broadcasts, reductions and the like. The whole is described by a list of names,
//! which all members have alike, and each member has its rank, the place of its name in the list.
//!
//! ```
//! use bytes::Bytes;
//! use doorbell::am::group::{Group, GroupConfig};
//! use doorbell::am::{Bundle, BundleConfig, Name};
//! use doorbell::verbs::{Config, Nic};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A process has one member as a rule; here are three.
//! let own = std::process::id();
//! let devices: Vec<_> = (0..3).map(|rank| format!("shm:example-{own}/{rank}")).collect();
//! let members: Vec<_> = devices.iter().map(|device| Name::at(device.as_str(), 7)).collect();
//! let mut tasks = Vec::new();
//! for (rank, device) in devices.iter().enumerate() {
//!     let bundle = Bundle::new(&Nic::open(device, Config::default())?, &BundleConfig::default())?;
//!     let config = GroupConfig { rank, members: members.clone(), ..GroupConfig::default() };
//!     tasks.push(tokio::spawn(async move {
//!         let group = Group::join(&bundle, config).await?;
//!         group.barrier().await?;
//!         let own = Bytes::from(vec![group.rank() as u8]);
//!         let sum = group.all_reduce(own, |left, right| left[0] += right[0]).await?;
//!         group.leave().await;
//!         Ok::<_, doorbell::am::group::GroupError>(sum[0])
//!     }));
//! }
//! for task in tasks {
//!     assert_eq!(task.await??, 0 + 1 + 2);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # In order, and not in step
//!
//! A collective takes its place in the program's order when its method is called. The method
//! returns a future. A program that awaits the future at once has a blocking collective; a program
//! that gives the future to [`tokio::spawn`] has a split-phase collective, which goes on beside the
//! program. A future that is not spawned goes on only while it is awaited, and other members wait
//! for it meanwhile.
//!
//! Members may be ahead of others. A member that has received what it needs is done, whatever the
//! others do. Only a barrier, an all-gather, an all-to-all, an all-reduce and a split synchronise:
//! no member is done with one before all members have begun it.
//!
//! # Connections
//!
//! A group opens an endpoint of its own, with connections and credits of its own. A member connects
//! to another when it first sends to that one: for a barrier among `P` members each connects to no
//! more than ⌈log₂ P⌉ others. A member that is not up yet is tried again for as long as
//! [`patience`](GroupConfig::patience) says.
//!
//! # How much it holds
//!
//! Of what a member sends to another, one payload goes unasked; the rest goes when the other has
//! begun the same collective, and asks for it. For each member that sends, a member holds at most:
//!
//! | what | at most |
//! |---|---|
//! | collectives of a team that this member has not begun, or has and not awaited | two payloads of each of 34, and of each that is not awaited |
//! | messages for teams that others have made and this member has not yet | 64 payloads |
//! | a message that is being received | what of it has come, twice over while it comes; never more than [`longest`](GroupConfig::longest) |
//!
//! The number of 34 collectives comes from two rules. A team runs a barrier by itself after 16
//! collectives in a row of which none synchronises. And a collective waits for the synchronising
//! one that is at least 16 collectives back. So a program that neither awaits nor spawns a
//! synchronising collective holds up the collectives that it begins 16 later.
//!
//! # When something goes wrong
//!
//! A collective that can't be done fails with an error that names the member to blame: for all
//! members that are not done with it yet, and so do all later collectives of the team. A member
//! that dies fails all teams that it is in. The NICs notice a process that was killed within about
//! two seconds. A member that [leaves](Group::leave) in order has done its part of all collectives
//! that it has begun, and the other members finish those.
//!
//! No message of a peer causes a panic. A message that belongs to no collective fails the team with
//! an error that names its sender, and a late message is dropped. A peer that the group's
//! [tag](GroupConfig::tag) admits is believed to be the member that it says it is.

mod barrier;
mod blocks;
mod collective;
mod config;
mod context;
mod core;
mod error;
mod failure;
mod folds;
mod leaving;
mod mailbox;
mod moves;
mod run;
mod schedule;
mod split;
mod team;
mod together;
mod waiting;
mod wire;

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;

pub use collective::{Collective, Operation};
pub use config::GroupConfig;
pub use error::GroupError;

use crate::bundle::Bundle;
use leaving::Membership;
use run::Run;

/// A process's place in a group, or in a team of it, by which the process runs collectives with the
/// other members. See the [module](self).
///
/// Clones are handles to the same place. When the last is dropped, the member leaves, as
/// [`leave`](Self::leave) does.
#[derive(Clone)]
pub struct Group(Arc<Membership>);

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group").field("rank", &self.rank()).field("size", &self.size()).finish()
    }
}

impl Group {
    /// Joins a group: opens the endpoint that is this process's in the list of members. Nobody is
    /// connected to yet.
    ///
    /// # Errors
    /// When the rank is none of the list, or the endpoint can't be opened.
    pub async fn join(bundle: &Bundle, config: GroupConfig) -> Result<Self, GroupError> {
        let core = core::Core::open(bundle, config).await?;
        let team = core.mailbox.whole();
        Ok(Self(Membership::new(core, team)))
    }

    /// This process's rank among the members: from 0, and below [`size`](Self::size).
    pub fn rank(&self) -> usize {
        self.0.team.rank
    }

    /// The number of members.
    pub fn size(&self) -> usize {
        self.0.team.size()
    }

    /// The rank in the whole group of a member of this team.
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

    /// Waits until all members have come here.
    pub fn barrier(&self) -> impl Future<Output = Result<(), GroupError>> + Send + use<> {
        let run = self.begin(barrier::BARRIER);
        async move { barrier::run(run?).await }
    }

    /// Says that this member has come to a barrier, and returns a future that waits for the others:
    /// what is done between the two is done while others come. Others learn that this member has
    /// come when this returns, or at the latest when the task lets others run.
    pub fn arrive(&self) -> impl Future<Output = Result<(), GroupError>> + Send + use<> {
        let runtime = self.0.core.bundle.runtime().clone();
        let run = self.begin(barrier::BARRIER);
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

    /// Gives all members what the root has. Others' `bytes` are not looked at.
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

    /// Gives the root what all members have, in the order of their ranks; others get `None`.
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

    /// Gives each member its part of what the root has: one part for each, in the order of ranks.
    /// Others' `parts` are not looked at.
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

    /// Gives all members what each of them has, in the order of ranks.
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

    /// Gives each member its part of what every member has. There is one part for each member, in
    /// the order of ranks, and so there is one of each in what this gives.
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

    /// Gives the root what all members have, put together; others get `None`.
    ///
    /// The operator has what members of lower ranks gave to the left, puts to that what members of
    /// higher ranks gave, and leaves the result on the left. It must be associative, and need not
    /// be commutative: the order is always that of ranks.
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

    /// Gives all members what all have, put together by an operator as of [`reduce`](Self::reduce).
    /// The result is the same for all to the last bit, also if the operator rounds.
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

    /// Gives each member what the members up to itself have, put together by an operator as of
    /// [`reduce`](Self::reduce).
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

    /// Gives each member what the members before itself have, put together by an operator as of
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

    fn begin(&self, collective: Collective) -> Result<Run, GroupError> {
        Run::begin(&self.0.core, &self.0.team, collective)
    }

    fn begin_at(&self, operation: Operation, root: usize) -> Result<Run, GroupError> {
        let size = self.size();
        if root >= size {
            return Err(GroupError::Root { root, size });
        }
        self.begin(Collective { operation, root: root as u32 })
    }
}
