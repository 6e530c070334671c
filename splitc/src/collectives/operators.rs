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

/// The number of an operator that is none of this module, which may be any.
pub(super) const ANY: u8 = 0;

/// Returns the number of an operator by the name of its type.
pub(super) fn number(operator: &str) -> u8 {
    let name = operator.strip_prefix(concat!(module_path!(), "::")).unwrap_or_default();
    let names = ["sum<", "min<", "max<"];
    names.iter().position(|known| name.starts_with(known)).map_or(ANY, |place| place as u8 + 1)
}

#[cfg(test)]
mod tests {
    use std::any::type_name_of_val;

    use super::*;

    #[test]
    fn operators_of_this_module_have_numbers_of_their_own_and_others_have_none() {
        let numbers = [
            type_name_of_val(&|one: u64, other: u64| one + other),
            type_name_of_val(&sum::<u64>),
            type_name_of_val(&min::<u64>),
            type_name_of_val(&max::<f64>),
        ];
        assert_eq!(numbers.map(number), [ANY, 1, 2, 3]);
    }
}
