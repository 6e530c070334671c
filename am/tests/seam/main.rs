//! Active Messages, as programs use them: real devices, both kinds of runtime.

mod cancelling;
mod clients;
mod common;
mod deadlines;
mod flow;
mod killed;
mod links;
mod mapping;
mod messages;
mod panics;
mod passing;
mod polling;
mod tags;
mod typed;
mod waiting;
mod wakers;
