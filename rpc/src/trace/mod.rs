//! Traces: the trace context that calls carry, as the W3C recommendation "Trace Context" defines
//! it, and the span of each call that `tracing` subscribers see.

mod context;
mod spans;
mod state;

pub use context::{InvalidTraceContext, TraceContext};
pub use spans::{CallSpan, call, handle};
