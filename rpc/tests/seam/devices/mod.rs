//! What RPC promises, over every device, whoever runs the NIC and on both kinds of runtime.

mod calls;
mod common;
mod endings;
mod everywhere;
mod services;
mod streams;
