//! The exchanges by the crates that programs use.

use doorbell_am as am;
use doorbell_splitc as splitc;

#[path = "gets.rs"]
mod gets;
#[path = "requests.rs"]
mod requests;

pub use gets::Gets;
pub use requests::Requests;
