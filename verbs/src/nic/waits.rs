//! The methods of a NIC that wait.

use super::handle::Nic;
use crate::progress::Look;
use crate::waiting::{Until, UntilHeld, WaitFor};

impl Nic {
    /// Waits until `look` finds something that peers change: a word in registered memory, say.
    ///
    /// The look runs after each turn, while this thread holds the NIC, and must not use the NIC.
    ///
    /// ```
    /// # use doorbell_verbs::{Nic, Registered};
    /// async fn until_written(nic: &Nic, memory: &Registered) -> u64 {
    ///     nic.until(|| memory.load(0).ok().filter(|&word| word != 0)).await
    /// }
    /// ```
    #[inline]
    pub fn until<T, L: FnMut() -> Option<T>>(&self, look: L) -> Until<'_, L> {
        Until(self.until_held(look))
    }

    /// Waits as [`until`](Self::until) does, and returns a guard that holds the NIC: what is
    /// [posted](crate::floor::NicGuard::post) through the guard leaves at once. Nothing of this NIC may
    /// be awaited or called while the guard is held.
    #[doc(hidden)]
    #[inline]
    pub fn until_held<T, L: FnMut() -> Option<T>>(&self, look: L) -> UntilHeld<'_, L> {
        UntilHeld::new(self.engine(), look)
    }

    /// Waits for what `look` finds. The caller arranges that the right task is woken: layers above
    /// have many waiting tasks, each of which waits for its own result.
    #[doc(hidden)]
    #[inline]
    pub fn wait_for<L: Look>(&self, look: L) -> WaitFor<'_, L> {
        WaitFor::new(self.engine(), look)
    }
}
