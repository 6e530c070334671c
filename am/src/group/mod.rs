//! Groups: processes that run collective operations together.
//!
//! A [`Group`] is one process's place among processes that all run the same collectives in the same
//! order: barriers, broadcasts, reductions and the like. A list of names describes the group. All
//! members have the same list, and a member's rank is the place of its name in the list.
//!
//! ```
//! use doorbell_am::group::{Group, GroupConfig};
//! use doorbell_am::{Bundle, BundleConfig, Name};
//! use doorbell_verbs::Nic;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A process has one member as a rule; here are three.
//! let own = std::process::id();
//! let devices: Vec<_> = (0..3).map(|rank| format!("shm:example-{own}/{rank}")).collect();
//! let members: Vec<_> = devices.iter().map(|device| Name::at(device.as_str(), 7)).collect();
//! let mut tasks = Vec::new();
//! for (rank, device) in devices.iter().enumerate() {
//!     let bundle = Bundle::new(&Nic::open(device).await?, &BundleConfig::default())?;
//!     let config = GroupConfig { rank, members: members.clone(), ..GroupConfig::default() };
//!     tasks.push(tokio::spawn(async move {
//!         let group = Group::join(&bundle, config).await?;
//!         group.barrier().await?;
//!         let own = vec![group.rank() as u64];
//!         let sum = group.all_reduce(own, |left, right| left + right).await?;
//!         group.leave().await;
//!         Ok::<_, doorbell_am::group::GroupError>(sum[0])
//!     }));
//! }
//! for task in tasks {
//!     assert_eq!(task.await??, 0 + 1 + 2);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # The collectives
//!
//! The collectives are methods of the [`Group`](doorbell_collectives::Group) of `doorbell-collectives`,
//! to which this module's [`Group`] dereferences.
//!
//! | | each member gives | each member gets |
//! |---|---|---|
//! | `barrier`; `arrive` and its future | | the knowledge that all others have come |
//! | `broadcast` | the root: bytes | the bytes of the root |
//! | `gather`, `all_gather` | bytes | the root, or every member: the bytes of all, in the order of ranks |
//! | `scatter` | the root: a part for each | its part |
//! | `all_to_all` | a part for each | a part of each |
//! | `reduce`, `all_reduce` | elements, an operator | the root, or every member: the elements of all, combined |
//! | `scan`, `exclusive_scan` | elements, an operator | the elements of the members up to itself, or before itself, combined |
//! | `split` | a colour and a key | its team, which is a group like any other |
//!
//! Operators are functions of two elements. They must be associative, and need not be commutative.
//!
//! # In order, and not in step
//!
//! A collective takes its place in the program's order when its method is called. The method
//! returns a future. A program that awaits the future at once has a blocking collective; a program
//! that gives the future to [`tokio::spawn`] has a split-phase collective, which goes on beside the
//! program. A future that is not spawned goes on only while it is awaited, and other members wait
//! for it meanwhile.
//!
//! The collectives are those of the crate [`doorbell_collectives`], whose algorithms run here over
//! messages with an order, credits and failures of their own: nothing is
//! [divided](doorbell_collectives::Rounds::DIVIDES).
//!
//! Members may be ahead of others. A member that has received what it needs is done, whatever the
//! others do. Only a barrier, an agreement, an all-gather, an all-to-all, an all-reduce and a split
//! synchronise: no member is done with one before all members have begun it.
//!
//! # Connections
//!
//! A group opens an endpoint of its own, with connections and credits of its own. A member connects
//! to another when it first sends to that one: in a barrier among `P` members, each connects to no
//! more than ⌈log₂ P⌉ others. If a member is not up yet, attempts to connect to it are repeated for
//! as long as [`patience`](GroupConfig::patience) says.
//!
//! # How much memory a group holds
//!
//! A member sends one payload of a message at once. It sends the rest when the receiver has begun
//! the same collective, and asks for it. For each member that sends to it, a member holds at most:
//!
//! | what | at most |
//! |---|---|
//! | collectives of a team that this member has not begun, or has and not awaited | two payloads of each of 34, and of each that is not awaited |
//! | messages for teams that others have made and this member has not yet | 64 payloads |
//! | a message that is being received | what of it has come, twice over while it comes; never more than [`longest`](GroupConfig::longest) |
//!
//! The number of 34 collectives comes from two rules. A team runs a barrier by itself after 16
//! collectives in a row of which none synchronises. And a collective sends nothing before the synchronising
//! collective that is at least 16 collectives back is done. So a program that neither awaits nor spawns a
//! synchronising collective holds up the collectives that it begins 16 later, where they send.
//!
//! # When something goes wrong
//!
//! A collective that can't be done fails for all members that are not done with it yet, and so do
//! all later collectives of the team. The error names the member to blame. A member that dies fails
//! all teams that it is in. The NICs notice within about two seconds that a process was killed. A
//! member that [leaves](Group::leave) in order has done its part of all collectives that it has
//! begun, and the other members finish those.
//!
//! No message of a peer causes a panic. A message that belongs to no collective fails the team with
//! an error that names its sender, and a late message is dropped. A peer that the group's
//! [tag](GroupConfig::tag) admits is believed to be the member that it says it is.

mod collective;
mod collectives;
mod config;
mod error;
mod failure;
mod handle;
mod mailbox;
mod member;
pub(crate) mod parsers;
mod split;
mod team;
mod wire;

pub use collective::Collective;
pub use config::GroupConfig;
pub use doorbell_collectives::{Operation, operators};
pub use error::GroupError;
pub use handle::Group;
