//! The exchanges by the crates whose spans read the clock.

use doorbell_am_costs as am;
use doorbell_splitc_costs as splitc;

// The very sources that are measured without spans, too.
#[path = "gets.rs"]
#[allow(clippy::duplicate_mod)]
mod gets;
#[path = "requests.rs"]
#[allow(clippy::duplicate_mod)]
mod requests;

pub use gets::Gets;
pub use requests::Requests;
