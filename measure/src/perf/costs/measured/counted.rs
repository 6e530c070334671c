//! The exchanges of a breakdown, by the crates that measure spans.

use doorbell_am_costs as am;
use doorbell_splitc_costs as splitc;

#[path = "gets.rs"]
#[expect(clippy::duplicate_mod, reason = "what is compared is the same source")]
mod gets;
#[path = "requests.rs"]
#[expect(clippy::duplicate_mod, reason = "what is compared is the same source")]
mod requests;

pub use gets::Gets;
pub use requests::Requests;
