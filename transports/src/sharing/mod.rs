//! Sharing an interface among processes: which one is its owner, which tag each has, and which
//! services each listens to.
//!
//! Every process on an interface sees every datagram for queue pair 1; names of connections and
//! numbers of queue pairs carry a tag that says which process they belong to; and one process, the
//! owner, answers datagrams that belong to no process. A [`Membership`] is a process's part in
//! agreeing upon all this.
//!
//! Sharing rests on one thing: in a network namespace, the kernel gives the abstract name of a Unix
//! socket to one process at a time, and takes the name back when that process ends, even if it is
//! killed.
//!
//! * A **tag** is such a name. No two living processes can have the same tag, whichever process is
//!   the owner.
//! * The **owner** is the process that has the owner's name. All others are connected to the owner,
//!   and hear at once of its end: each tries to take the name, one gets it, and the rest connect to
//!   that one.
//! * A **service** is granted by the owner, to one process at a time. The owner tells the other
//!   processes before the one that asked, since any of them may be the next owner.
//!
//! A new owner neither refuses nor grants anything before it has heard every process whose tag is
//! taken; so it never gives away a service that a process has. Meanwhile nobody refuses
//! connections, and peers ask again. A process that has a tag and does not come for a second (it is
//! stopped, say) is waited for no longer.
//!
//! All processes on an interface run as one user. Processes of other users are not spoken to, and a
//! process that finds one in the way is told whose it is. There are at most 63 processes, with
//! [`SERVICES`] services each. That bounds memory, since nothing is queued.
//!
//! The driver tells its [`ConnectionManager`](doorbell_core::cm::ConnectionManager), which was made
//! with [`TAG_BITS`] and not as an owner:
//!
//! | event | what it tells |
//! |---|---|
//! | [`Welcome`](Event::Welcome) | no change; the device may be opened now, and connections made |
//! | [`BecameOwner`](Event::BecameOwner) | `set_owner(true)` |
//! | [`Joined`](Event::Joined), [`Left`](Event::Left) | `set_vacant`, with `false` or `true` |
//! | [`Listens`](Event::Listens), [`StopsListening`](Event::StopsListening) | `others_listen` |
//! | [`Granted`](Event::Granted) | `listen` |
//! | [`Taken`](Event::Taken) | `stop`, if the service was granted before |
//!
//! A membership has no thread and never waits: see [`Membership::turn`].
//!
//! ```
//! use doorbell_core::wire::ServiceId;
//! use doorbell_transports::sharing::{Event, Membership};
//!
//! // Two memberships in one process are as good as one in each of two.
//! # let key = &format!("example/{}", std::process::id());
//! let mut one = Membership::join(key)?;
//! let mut other = Membership::join(key)?;
//! assert_ne!(one.tag(), other.tag());
//! other.listen(ServiceId(7))?;
//! loop {
//!     while one.turn().is_some() {}
//!     match other.turn() {
//!         Some(Event::Granted(service)) => break assert_eq!(service, ServiceId(7)),
//!         _ => continue, // or sleep until the readiness tells
//!     }
//! }
//! assert!(one.is_owner() && !other.is_owner());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod event;
#[cfg(test)]
mod hostile;
mod member;
mod membership;
pub(crate) mod message;
mod owner;
mod roster;
mod tag;

pub use error::{ServiceError, SharingError};
pub use event::Event;
pub use membership::Membership;
pub use message::SERVICES;
pub use tag::TAG_BITS;
