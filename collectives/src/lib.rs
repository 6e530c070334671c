//! Collective operations for groups of processes: barriers, broadcasts, reductions, gathers, scans
//! and the like. The crate has the algorithms and knows no network. A program runs them over links
//! of its own, or uses the groups of `doorbell-am` and `doorbell-messages`, which have links
//! already.
//!
//! ```
//! use std::convert::Infallible;
//! use std::sync::{Arc, Mutex};
//!
//! use bytes::Bytes;
//! use doorbell_collectives::{Group, Links};
//! use tokio::sync::Notify;
//!
//! /// Messages that were sent and not received, each with its sender, its receiver and its tag.
//! #[derive(Default)]
//! struct Post {
//!     messages: Mutex<Vec<(usize, usize, u64, Bytes)>>,
//!     arrived: Notify,
//! }
//!
//! /// The links of one member, here within one process.
//! struct Member {
//!     rank: usize,
//!     size: usize,
//!     post: Arc<Post>,
//! }
//!
//! impl Links for Member {
//!     type Error = Infallible;
//!
//!     fn rank(&self) -> usize {
//!         self.rank
//!     }
//!
//!     fn size(&self) -> usize {
//!         self.size
//!     }
//!
//!     async fn send(&self, to: usize, tag: u64, body: Bytes) -> Result<(), Infallible> {
//!         self.post.messages.lock().unwrap().push((self.rank, to, tag, body));
//!         self.post.arrived.notify_waiters();
//!         Ok(())
//!     }
//!
//!     async fn receive(
//!         &self,
//!         from: usize,
//!         tag: u64,
//!         mask: u64,
//!     ) -> Result<(u64, Bytes), Infallible> {
//!         loop {
//!             let arrived = self.post.arrived.notified();
//!             {
//!                 let mut messages = self.post.messages.lock().unwrap();
//!                 let at = messages.iter().position(|(sender, receiver, other, _)| {
//!                     (*sender, *receiver) == (from, self.rank) && (other ^ tag) & mask == 0
//!                 });
//!                 if let Some(at) = at {
//!                     let (_, _, tag, body) = messages.remove(at);
//!                     return Ok((tag, body));
//!                 }
//!             }
//!             arrived.await;
//!         }
//!     }
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let post = Arc::new(Post::default());
//!     let members = (0..4).map(|rank| {
//!         let group = Group::over(Member { rank, size: 4, post: post.clone() });
//!         tokio::spawn(async move {
//!             group.barrier().await?;
//!             group.all_reduce(vec![rank as u64], |left, right| left + right).await
//!         })
//!     });
//!     for member in members.collect::<Vec<_>>() {
//!         assert_eq!(member.await??, [0 + 1 + 2 + 3]);
//!     }
//!     Ok(())
//! }
//! ```
//!
//! A [`Group`] is the place of one process among processes that all run the same collectives in the
//! same order. The members have ranks from zero on.
//!
//! # Where to find what
//!
//! | for | see |
//! |---|---|
//! | running collectives | [`Group`] |
//! | carrying them over messages with tags | [`Links`], [`Group::over`], [`Linked`] |
//! | carrying them in another way | [`Communicator`], [`Rounds`] |
//! | operators that members compare | [`operators`] |
//! | errors of groups over links | [`GroupError`] |
//! | the algorithms, and who sends to whom in which round | [`algorithms`], [`schedule`] |
//!
//! There are two ways to carry messages. [`Links`] send and receive messages by tags, as MPI does.
//! Tagged messages of the crate `doorbell-messages` are such links. A [`Communicator`] begins
//! collectives, and its [`Rounds`] send and receive the messages of one collective. [`Linked`] is
//! the communicator over links. The groups of Active Messages, in `doorbell-am`, are another
//! communicator: they know by themselves which message belongs to which collective, and bound the
//! memory that members ahead of the others can take. A function over both kinds is generic:
//!
//! ```
//! use doorbell_collectives::{Communicator, Group};
//!
//! async fn sum_of_ranks<C: Communicator>(group: &Group<C>) -> Result<u64, C::Error> {
//!     let sum = group.all_reduce(vec![group.rank() as u64], |left, right| left + right).await?;
//!     Ok(sum[0])
//! }
//! ```
//!
//! # In order, and not in step
//!
//! A collective takes its place in the program's order when its method is called. The method
//! returns a future, which a program awaits at once, or gives to a task to go on with other work
//! meanwhile. A future that is dropped before its end has the group fail.
//!
//! Members may be ahead of others: a member that has received what it needs is done, whatever the
//! others do. Only a barrier, a fence, an agreement, an all-gather, an all-to-all, an all-reduce
//! and a split into teams [synchronise](Operation::synchronises): no member is done with one before
//! all members have begun it.
//!
//! # Elements, and bytes as a whole
//!
//! Reductions and scans combine vectors of elements, each element with those at the same place, by
//! an operator on two of them. All members give as many elements. Messages carry a mark of the
//! elements' type and of the operator, if it is one of [`operators`], so that members which give
//! different ones are told so. Closures can't be compared, and count as the same as any operator.
//!
//! The variants whose names end in `_bytes` combine what members give as a whole. Lengths may
//! differ, and nothing is compared: that is for libraries, which know what their bytes mean.
//!
//! Values are combined in the order of ranks, and by the same brackets at all members. So an
//! operator need not be commutative, and the result is the same everywhere to the last bit.
//!
//! # Long data
//!
//! Where [links may divide](Rounds::DIVIDES) long data, broadcasts that members hand on go in
//! pieces, so that all links are busy at once. Of long reductions each member combines one part.
//! Long blocks of gathers, scatters and all-gathers go from the member that has them straight to
//! the member that gets them, while short ones share messages. Groups over [`Links`] do so.
//!
//! Where they may not, a member sends at most two messages to another in each collective, and all
//! of them to partners of the [schedules](schedule), whose number grows with the logarithm of the
//! members but for all-to-alls. So a receiver that keeps messages which came early can bound its
//! memory by a number of collectives, and members that connect when they first send need few
//! connections.
//!
//! # How messages over links are matched
//!
//! The tag of a message has the number of the collective in the program's order, its kind, the
//! round of its [schedule], and what all members must have in common: the root, and the length of
//! an element. A receive compares the number, and takes messages of one member. If the rest is not
//! what the receiver's own collective expects, the members have called different
//! [collectives](GroupError::Mismatch), or the same one with different [roots](GroupError::Roots)
//! or [elements](GroupError::Elements), which is an error.
//!
//! A member that takes itself for the root of a broadcast or a scatter receives nothing, and so is
//! done before it can learn that others name another root. Collectives carry a digest of those
//! before them, and so a later one fails. Roots are not compared by members that exchange no
//! message: if each member takes itself for the root of a gather, all wait until one of them gives
//! up.
//!
//! # How much memory it holds
//!
//! Groups hold nothing of a message beside the links below, but for the data of the collectives
//! that the member itself has begun: what it gives, what it has combined or gathered so far, and
//! the messages of the current round.
//!
//! # When something goes wrong
//!
//! A collective that fails at one member fails at all that are not done with it, and so do all
//! later ones, as far as the links below [tell](Links::fail) the others. The error names the
//! collective, the member to blame, and the cause. Groups over links have the error [`GroupError`].
//! Other communicators have [errors](Communicator::Error) of their own, since they know more of how
//! members come and go.

#![forbid(unsafe_code)]

pub mod algorithms;
mod blocks;
mod call;
mod communicator;
mod direct;
mod elements;
mod error;
mod group;
mod linked;
mod links;
mod mark;
mod operation;
pub mod operators;
pub mod schedule;
mod tag;

pub use call::Call;
pub use communicator::{Communicator, Fault, Rounds, Wrong};
pub use elements::{Combine, Each, Element, Whole};
pub use error::GroupError;
pub use group::Group;
pub use linked::{Linked, LinkedRounds};
pub use links::{Failure, Links};
pub use mark::{Differ, Mark};
pub use operation::Operation;
pub use tag::MOST_MEMBERS;
