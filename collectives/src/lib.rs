//! Collective operations over any links, for groups of processes.
//!
//! A [`Group`] is one process's place among processes that all run the same collectives in the same
//! order: barriers, broadcasts, reductions, gathers and the like. The members have ranks from zero
//! on. The crate has the algorithms, and knows no network. There are two ways to carry the messages:
//!
//! * [`Links`] send and receive messages by tags, as MPI does. A program that implements the trait,
//!   over sockets or channels, say, has a group [over](Group::over) them. Tagged messages of the
//!   crate `doorbell-messages` are such links.
//! * A [`Communicator`] begins collectives, and its [`Rounds`] send and receive the messages of one
//!   collective. [`Linked`] is the communicator over links. The groups of Active Messages, in
//!   `doorbell-am`, are another one: they know by themselves which message belongs to which
//!   collective, and hold no more of a member that is ahead than their memory is bounded by.
//!
//! ```
//! use bytes::Bytes;
//! use doorbell_collectives::{Communicator, Group};
//!
//! // A function over a group of any kind.
//! async fn collectives<C: Communicator>(group: &Group<C>) -> Result<(), C::Error> {
//!     group.barrier().await?;
//!     let ranks = group.all_reduce(vec![group.rank() as u64], |left, right| left + right).await?;
//!     assert_eq!(ranks[0] as usize, (0..group.size()).sum());
//!     let all = group.all_gather(Bytes::from(format!("member {}", group.rank()))).await?;
//!     assert_eq!(&all[0][..], b"member 0");
//!     Ok(())
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
//! others do. Only a barrier, a fence, an agreement, an all-gather, an all-to-all, an all-reduce and
//! a split into teams [synchronise](Operation::synchronises): no member is done with one before all
//! members have begun it.
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
//! Long blocks of gathers, scatters and all-gathers go from the member that has them straight to the
//! member that gets them, while short ones share messages. Groups over [`Links`] do so.
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
//! round of its [schedule], and what all members must have in common: the root, and the length of an
//! element. A receive compares the number, and takes messages of one member. If the rest is not
//! what the receiver's own collective expects, the members have called different
//! [collectives](GroupError::Mismatch), or the same one with different [roots](GroupError::Roots) or
//! [elements](GroupError::Elements), which is an error.
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
//! that the member itself has begun: what it gives, what it has combined or gathered so far, and the
//! messages of the current round.
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
