//! Active Messages, as programs use them: real devices, both kinds of runtime.

mod common;
mod flow;
mod links;
mod messages;
mod passing;
mod polling;
