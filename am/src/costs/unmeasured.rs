//! Spans that are not measured.

use super::Cost;

/// A span of a thread's time, which leaves no trace in compiled code.
#[derive(Debug)]
pub struct Span;

/// Begins a span that is not measured.
#[inline(always)]
pub fn span(_: Cost) -> Span {
    Span
}
