//! Traces: the trace context that calls carry, as the W3C recommendation "Trace Context" defines
//! it, and the span of each call that `tracing` subscribers see.
//!
//! `context` reads a context from metadata and writes it there, with the vendor-specific data that
//! `state` parses. `spans` begins a span when a client calls or a server handles, and is told how
//! the call has ended. The folder is told requests and codes, and tells `tracing`.

mod context;
mod spans;
mod state;

pub use context::{InvalidTraceContext, TraceContext};
pub use spans::{CallSpan, call, handle, may_be_seen};
