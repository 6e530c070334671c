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
//! collectives, members [send](doorbell_collectives::Group::send) to each other by tags of their
//! own.
//!
//! The algorithms, how messages are matched, and what long data is divided into are those of the
//! crate [`doorbell_collectives`], over tagged messages.
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

mod control;
mod group;
mod joining;
mod meeting;
mod members;

pub use doorbell_collectives::{Failure, GroupError, Links, Operation, operators};
pub use group::Group;
pub use members::{LinkError, Members};
