//! The algorithms of collectives, over whatever carries the messages of their [`Rounds`].
//!
//! [`Group`](crate::Group) runs them. A library with collectives of its own, such as the split of a
//! group into teams, builds those on the algorithms here.
//!
//! [`Rounds`]: crate::Rounds

mod agreement;
mod barrier;
mod broadcast;
mod folds;
mod moves;

pub use agreement::{Extremes, agree};
pub use barrier::{barrier, first_of_barrier, rest_of_barrier};
pub use broadcast::broadcast;
pub use folds::{all_reduce, reduce, scan};
pub use moves::{all_gather, all_to_all, gather, scatter};
