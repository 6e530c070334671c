//! Active Messages, as programs use them: real devices, both kinds of runtime.

mod common;
mod flow;
mod messages;
mod polling;
