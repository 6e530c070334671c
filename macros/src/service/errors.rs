//! The errors of a trait that is no service, collected so that the compiler reports all at once.

use syn::{Error, Result};

/// The errors that were found so far; `None` if there are none.
#[derive(Default)]
pub struct Errors(pub Option<Error>);

impl Errors {
    /// The value of a result. An error is added to the others.
    pub fn take<T>(&mut self, result: Result<T>) -> Option<T> {
        match (result, &mut self.0) {
            (Ok(value), _) => return Some(value),
            (Err(error), Some(all)) => all.combine(error),
            (Err(error), none) => *none = Some(error),
        }
        None
    }
}
