//! Arrays that are distributed over the processes.

mod allocation;
mod layout;
mod matrix;

mod private;
mod spread;

pub(crate) use allocation::{differs, hash};
pub use matrix::Matrix;
pub use private::Private;
pub use spread::Spread;
