//! Byte streams as programs use them: every device, both kinds of progress, both kinds of runtime;
//! and a simulated network with faults.

mod closing;
mod common;
mod connecting;
mod ended;
mod everywhere;
mod fabric;
mod flow;
mod hostile;
mod killed;
mod played;
mod runtimes;
mod streams;
