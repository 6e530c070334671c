//! Traces: which trace a call belongs to, as the W3C recommendation "Trace Context" has it, and the
//! spans that a `tracing` subscriber sees of each call.

mod context;
mod spans;
mod state;

pub use context::{InvalidTraceContext, TraceContext};
pub use spans::{CallSpan, call, handle};
