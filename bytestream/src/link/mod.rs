//! Links: the state of one stream, between the program's halves and the completions of its queue
//! pair.
//!
//! The poller of the endpoint tells a link what has arrived, what was sent, and that its connection
//! is over. The halves of the stream take messages from [`Inbound`], and write through
//! [`Outbound`]. A link calls neither: where something is to be done outside, such as ringing a
//! doorbell later, a function returns that as its outcome.
//!
//! | file | what it does |
//! |---|---|
//! | `inbound` | keeps messages that have arrived until the program reads them |
//! | `outbound` | sends bytes, returned credits and the end of the stream |
//! | `common` | what both directions need: the connection, the peer's name |
//! | `credits` | counts how many messages the peer may send |
//! | `question` | counts for how long this end has waited for an answer |
//! | `slices` | walks through the slices of a vectored write |

mod common;
mod credits;
mod inbound;
mod outbound;
mod question;
mod slices;
mod stream_link;

pub(crate) use inbound::Next;
pub(crate) use outbound::RESERVE;
pub(crate) use stream_link::Link;
