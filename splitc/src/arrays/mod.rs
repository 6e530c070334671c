//! Arrays that are spread over the processes.

mod allocation;
mod layout;

mod private;
mod spread;

pub use private::Private;
pub use spread::Spread;
