//! The interface between a wait and what it waits for.

use std::task::Waker;

use super::held::HeldNic;
use super::leader::Precedence;

/// A condition that a task waits for, together with its result. See
/// [`Nic::wait_for`](crate::Nic::wait_for).
pub trait Look {
    /// The result of the wait. It is moved several times on the way: a type of more than a few
    /// words is better kept by the implementation, with `()` as the result.
    type Output;

    /// Returns the result if it is there.
    ///
    /// The engine calls this after each turn, with the NIC if the thread holds it. Requests that
    /// are posted through `nic` leave at once. Nothing of the NIC may be awaited, made or dropped
    /// meanwhile.
    fn look(&mut self, nic: HeldNic<'_>) -> Option<Self::Output>;

    /// Returns the result if it is there, while another task makes progress for all. What this one
    /// has posted may leave later then, with what others post.
    #[inline]
    fn peek(&mut self) -> Option<Self::Output> {
        self.look(HeldNic::none())
    }

    /// Registers `waker`, to be woken when the result may be there. The engine looks once more
    /// afterwards.
    fn register(&mut self, waker: &Waker);

    /// Returns the precedence of this wait, which decides which of several waiting tasks spins.
    #[inline]
    fn precedence(&self) -> Precedence {
        Precedence::Awaits
    }

    /// Returns whether looks have woken another task since the last call. The engine lets that task
    /// run.
    #[inline]
    fn woke(&mut self) -> bool {
        false
    }
}
