//! Operators for [`reduce`](crate::World::reduce), [`all_reduce`](crate::World::all_reduce) and
//! [`scan`](crate::World::scan).
//!
//! Any associative function of two values is an operator. The functions of this module are for
//! numbers:
//!
//! ```
//! use doorbell::splitc::{Job, operators};
//!
//! let largest = Job::threads(3).run(async |world| {
//!     Ok(world.all_reduce(world.rank() as f64, operators::max).await?)
//! })?;
//! assert_eq!(largest, 2.0);
//! # Ok::<(), doorbell::splitc::RunError>(())
//! ```

use crate::atomics::Atomic;

/// The sum of two numbers, wrapping around if they are integers.
pub fn sum<T: Atomic>(one: T, other: T) -> T {
    one.plus(other)
}

/// The lesser of two numbers.
pub fn min<T: Atomic>(one: T, other: T) -> T {
    one.lesser(other)
}

/// The greater of two numbers.
pub fn max<T: Atomic>(one: T, other: T) -> T {
    one.greater(other)
}
