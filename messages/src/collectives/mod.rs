//! Collectives: operations that all members of a group run together.
//!
//! A [`Group`] is one process's place among processes that all run the same collectives in the same
//! order: barriers, broadcasts, reductions and the like, those of the Intel MPI Benchmarks. A list
//! of names describes the group. All members have the same list, and a member's rank is the place
//! of its name in the list. The members may start in any order.
//!
//! ```
//! use bytes::Bytes;
//! use doorbell_messages::Endpoint;
//! use doorbell_messages::collectives::{Group, GroupError};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A process has one member as a rule; here are three.
//! let mut endpoints = Vec::new();
//! for _ in 0..3 {
//!     endpoints.push(Endpoint::open("shm").await?);
//! }
//! let names: Vec<_> = endpoints.iter().map(|endpoint| endpoint.name().clone()).collect();
//! let members = endpoints.into_iter().enumerate().map(|(rank, endpoint)| {
//!     let names = names.clone();
//!     tokio::spawn(async move {
//!         let group = Group::join(endpoint, rank, &names).await?;
//!         group.barrier().await?;
//!         let ranks = group.all_reduce(vec![rank as u64], |left, right| left + right).await?;
//!         let all = group.all_gather(Bytes::from(format!("member {rank}"))).await?;
//!         group.leave().await;
//!         Ok::<_, GroupError>((ranks[0], all))
//!     })
//! });
//! for member in members.collect::<Vec<_>>() {
//!     let (ranks, all) = member.await??;
//!     assert_eq!((ranks, &all[2][..]), (0 + 1 + 2, &b"member 2"[..]));
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # In order, and not in step
//!
//! A collective takes its place in the program's order when its method is called. The method
//! returns a future, which a program awaits at once, or gives to [`tokio::spawn`] to go on with
//! other work meanwhile. A future that is dropped before its end has the group fail.
//!
//! Members may be ahead of others: a member that has received what it needs is done. Beside the
//! collectives, members [send](Group::send) to each other by tags of their own.
//!
//! # How messages are matched
//!
//! The match bits of a message carry the number of the collective in the program's order, its kind,
//! the round of its [schedule](doorbell_am::schedule), and what all members must have in common:
//! the root, and the length of an element. A receive compares the number, and takes messages of one
//! member. If the rest is not what the receiver's own collective expects, the members have called
//! different [collectives](GroupError::Mismatch), or the same one with different
//! [roots](GroupError::Roots) or [elements](GroupError::Elements), which is an error.
//!
//! Messages of reductions carry a mark of the elements' [type](GroupError::Types) and of the
//! [operator](GroupError::Operators), too, if it is one of [`operators`]. Closures can't be
//! compared, and count as the same as any operator.
//!
//! A member that takes itself for the root of a broadcast or a scatter receives nothing, and so is
//! done before it can learn that others name another root. Collectives carry a digest of those
//! before them, and so a later one fails. Roots are not compared by members that exchange no
//! message: if each member takes itself for the root of a gather, all wait until one of them gives
//! up.
//!
//! # Long data
//!
//! Broadcasts that members hand on go in pieces, so that all links are busy at once. Of long
//! reductions each member combines one part. Long blocks of gathers, scatters and all-gathers go
//! from the member that has them straight to the member that gets them, while short ones share
//! messages.
//!
//! # When something goes wrong
//!
//! A collective that fails at one member fails at all that are not done with it, and so do all
//! later ones. The error names the collective, the member to blame, and the cause. When the process
//! of a member ends, the connections to it do, and the collectives of all others fail at once; when
//! it stops answering, after the [keep-alive
//! time](doorbell_am::EndpointBuilder::keep_alive) of their endpoints. A member that has
//! [left](Group::leave) in order has done its part of all that it has begun.
//!
//! # Other links
//!
//! The algorithms need little of the messages below, which is the trait [`Links`]. A program with
//! links of its own makes a group [over](Group::over) those.

mod blocks;
mod broadcast;
mod call;
mod elements;
mod error;
mod folds;
mod group;
mod joining;
mod links;
mod mark;
mod meeting;
mod members;
mod moves;
mod operation;
pub mod operators;
mod run;
mod tag;

pub use error::GroupError;
pub use group::Group;
pub use links::{Failure, Links};
pub use members::{LinkError, Members};
pub use operation::Operation;
