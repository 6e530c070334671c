//! Bookkeeping of what is under way on a link: credits, calls without an answer yet, retained
//! requests, users, and sends whose completion is to be signalled.
//!
//! The folder is told what was sent and what has come, and says what may be sent and who is to be
//! woken. It does no input or output, and knows neither links nor endpoints.

mod detached;
mod late;
mod owed;
mod pending;
mod posted;
mod retained;
mod signalling;
mod starving;
mod users;
mod waiters;

pub(crate) use late::LateAnswers;
pub(crate) use owed::{DeferredAnswer, Owes, Release, RetainedId};
pub(crate) use pending::{Moving, PendingTable};
pub(crate) use posted::Posted;
pub(crate) use retained::RetainedRequests;
pub(crate) use signalling::SelectiveSignalling;
pub(crate) use starving::Starving;
pub(crate) use users::Usage;
pub(crate) use waiters::Waiters;
