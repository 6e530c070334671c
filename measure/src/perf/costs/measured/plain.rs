//! The exchanges of a breakdown, by the crates that programs use, which measure no spans.

use doorbell_am as am;
use doorbell_messages as messages;
use doorbell_rpc as rpc;
use doorbell_splitc as splitc;

#[path = "calls.rs"]
mod calls;
#[path = "gets.rs"]
mod gets;
#[path = "requests.rs"]
mod requests;
#[path = "tagged.rs"]
mod tagged;

pub use calls::Calls;
pub use gets::Gets;
pub use requests::Requests;
pub use tagged::Tagged;
