//! Operators for [`reduce`](crate::World::reduce), [`all_reduce`](crate::World::all_reduce) and
//! [`scan`](crate::World::scan).
//!
//! Any associative function of two values is an operator. The functions of this module are for
//! numbers:
//!
//! ```
//! use doorbell_splitc::{Job, operators};
//!
//! let largest = Job::threads(3).run(async |world| {
//!     Ok(world.all_reduce(world.rank() as f64, operators::max).await?)
//! })?;
//! assert_eq!(largest, 2.0);
//! # Ok::<(), doorbell_splitc::RunError>(())
//! ```

pub use doorbell_collectives::operators::{Integer, Number, and, max, min, or, sum, xor};
