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
//! | `inbound` | keeps bytes that have arrived until the program reads them |
//! | `outbound` | takes bytes that the program writes, and has them sent |
//! | `posting` | posts bytes, word of what was read, and the end of the stream |
//! | `message` | makes messages of the bytes that are written, and gathers short writes |
//! | `common` | what both directions need: the connection, the peer's name |
//! | `window` | counts how many bytes the peer may send |
//! | `question` | counts for how long this end has waited for an answer |
//! | `slices` | walks through the slices of a vectored write |

mod common;
mod inbound;
mod message;
mod outbound;
mod posting;
mod question;
mod slices;
mod stream_link;
mod window;

pub(crate) use inbound::Next;
pub(crate) use posting::RESERVE;
pub(crate) use stream_link::Link;
