//! The exchanges of a breakdown, by the crates that measure spans.

use doorbell_am_costs as am;
use doorbell_messages_costs as messages;
use doorbell_rpc_costs as rpc;
use doorbell_splitc_costs as splitc;

#[path = "calls.rs"]
#[expect(clippy::duplicate_mod, reason = "what is compared is the same source")]
mod calls;
#[path = "gets.rs"]
#[expect(clippy::duplicate_mod, reason = "what is compared is the same source")]
mod gets;
#[path = "requests.rs"]
#[expect(clippy::duplicate_mod, reason = "what is compared is the same source")]
mod requests;
#[path = "tagged.rs"]
#[expect(clippy::duplicate_mod, reason = "what is compared is the same source")]
mod tagged;

pub use calls::Calls;
pub use gets::Gets;
pub use requests::Requests;
pub use tagged::Tagged;
