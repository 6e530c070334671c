//! What clients and servers say to each other, as Active Messages.
//!
//! | message | by | what it carries |
//! |---|---|---|
//! | `HELLO` | the client | version, the client's number; answered by `WELCOME`: the session, limits |
//! | `CALL` | the client | a [`CallHead`], metadata and body; answered by `ANSWER`: [`Flags`], metadata and body |
//! | `CANCEL` | the client | the session and the number of a call that is given up |

mod content;
mod head;

use doorbell_am::{ReplyId, RequestId};

pub use content::{Content, split};
pub use head::{CallHead, CallWords, Flags, Hello, HelloWords, Welcome, WelcomeWords};

/// The version of what is said. Ends of different versions refuse each other.
pub const VERSION: u64 = 1;

pub const HELLO: RequestId<HelloWords> = RequestId::new(0, "rpc hello");
pub const CALL: RequestId<CallWords> = RequestId::new(1, "rpc call");
pub const CANCEL: RequestId<[u64; 2]> = RequestId::new(2, "rpc cancel");

pub const WELCOME: ReplyId<WelcomeWords> = ReplyId::new(0, "rpc welcome");
/// The number of the call, and flags.
pub const ANSWER: ReplyId<[u64; 2]> = ReplyId::new(1, "rpc answer");
