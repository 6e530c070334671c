//! What the handlers of a set share.

use std::sync::Arc;

/// The state of [`Handlers`](super::Handlers) that have none.
#[derive(Clone, Copy, Debug)]
pub struct Stateless;

/// The state that [`Handlers`](super::Handlers) share.
#[derive(Debug)]
pub struct WithState<S>(pub(super) Arc<S>);
