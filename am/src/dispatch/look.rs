//! One look at what has come, and what came of it.

use std::sync::Arc;

use doorbell_verbs::floor::HeldNic;

use crate::link::{Answer, Awaiting, Link};

/// The outcome of a look.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Looked {
    /// The number of messages that were handled.
    pub handled: usize,
    /// Whether a task was woken.
    pub woke: bool,
}

/// A look that goes on.
pub(crate) struct Looking<'r> {
    pub looked: Looked,
    /// The NIC through which answers are posted, if the looking task holds it.
    pub nic: HeldNic<'r>,
    /// The call whose answer the looking task waits for.
    pub awaits: Option<Awaiting<'r>>,
}

impl<'r> Looking<'r> {
    pub fn new(nic: HeldNic<'r>, awaits: Option<Awaiting<'r>>) -> Self {
        Self { looked: Looked::default(), nic, awaits }
    }

    /// Gives a call its answer. The answer that the looking task waits for comes once; after that
    /// its number may belong to another call.
    #[inline]
    pub fn answered(&mut self, link: &Arc<Link>, call: u16, answer: impl FnOnce() -> Answer) {
        let is = |awaits: &mut Awaiting<'_>| awaits.call == call && Arc::ptr_eq(awaits.link, link);
        let here = self.awaits.take_if(is).map(|awaits| awaits.answer);
        self.looked.woke |= link.answered(call, answer, here);
    }
}
