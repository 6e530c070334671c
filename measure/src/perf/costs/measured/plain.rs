//! The exchanges of a breakdown, by the crates that programs use, which measure no spans.

use doorbell_am as am;
use doorbell_splitc as splitc;

#[path = "gets.rs"]
mod gets;
#[path = "requests.rs"]
mod requests;

pub use gets::Gets;
pub use requests::Requests;
