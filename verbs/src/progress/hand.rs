//! The NIC in hand: what is posted to it leaves at once.

use std::fmt;
use std::marker::PhantomData;

use doorbell_core::nic::{Copied, Refused, WorkRequest};

use crate::progress::{Held, Machine, Shared};
use crate::queues::SendQueue;

/// The NIC, if it is in hand where somebody [looks](crate::floor::Look) for what he waits for: then
/// what is posted by this leaves at once, and what is posted otherwise when the look is over.
///
/// It stays on the thread that has the NIC: whoever waited for the NIC elsewhere would wait for
/// ever.
///
/// ```
/// # use doorbell::verbs::floor::AtHand;
/// fn is_there(nic: AtHand<'static>) -> bool {
///     (move || nic.is_there())()
/// }
/// ```
///
/// ```compile_fail,E0277
/// # use doorbell::verbs::floor::AtHand;
/// fn is_there(nic: AtHand<'static>) -> bool {
///     std::thread::spawn(move || nic.is_there()).join().unwrap()
/// }
/// ```
pub struct AtHand<'r> {
    nic: Option<(&'r Shared, &'r mut Box<dyn Machine>)>,
    stays_here: PhantomData<*const ()>,
}

impl fmt::Debug for AtHand<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nic = self.nic.as_ref().map(|(shared, _)| &shared.address);
        f.debug_tuple("AtHand").field(&nic).finish()
    }
}

impl<'r> AtHand<'r> {
    #[inline]
    pub(crate) fn of(shared: &'r Shared, machine: &'r mut Held<'_>) -> Self {
        Self { nic: Some((shared, &mut **machine)), stays_here: PhantomData }
    }

    /// It is not.
    pub const fn nothing() -> Self {
        Self { nic: None, stays_here: PhantomData }
    }

    /// Whether it is.
    #[inline]
    pub fn is_there(&self) -> bool {
        self.nic.is_some()
    }

    /// The same for a while.
    #[inline]
    pub fn again(&mut self) -> AtHand<'_> {
        let nic = self.nic.as_mut().map(|(shared, machine)| (*shared, &mut **machine));
        AtHand { nic, stays_here: PhantomData }
    }

    /// Posts a request.
    ///
    /// # Errors
    /// As [`SendQueue::post`].
    #[inline]
    pub fn post(
        &mut self,
        queue: &mut SendQueue,
        request: impl Into<WorkRequest>,
    ) -> Result<(), Refused<WorkRequest>> {
        match &mut self.nic {
            Some((shared, machine)) if queue.is_of(shared) => {
                shared.post(Some(machine), queue.raw(), request.into())
            }
            _ => queue.post(request),
        }
    }

    /// Sends a message of which nothing is kept: on a device that [loses
    /// nothing](crate::Capabilities::lossless), it is copied to where it leaves, and no memory is
    /// lent to the NIC. Whether it was sent: not if the NIC is neither at hand nor to be had at
    /// once, if anything else waits to be sent on the connection, or if it goes into more than one
    /// packet. Then it is to be [posted](Self::post) as others are.
    ///
    /// The peer is to have a receive for it, as a program knows that counts them: it can't be sent
    /// once more, and so the connection is over if there is none. Where a thread of its own runs
    /// the NIC, nothing is copied.
    ///
    /// ```
    /// # use doorbell::verbs::work::Send;
    /// # use doorbell::verbs::floor::{AtHand, Copied};
    /// # use doorbell::verbs::{Refused, SendQueue, WorkRequest, Buf};
    /// /// Sends a header, and bytes behind it.
    /// fn send(
    ///     nic: &mut AtHand<'_>,
    ///     queue: &mut SendQueue,
    ///     parts: [&[u8]; 2],
    /// ) -> Result<(), Refused<WorkRequest>> {
    ///     if nic.send_copied(queue, &Copied { imm: None, bytes: parts, signalled: false }) {
    ///         return Ok(());
    ///     }
    ///     nic.post(queue, Send::new(Buf::from(parts.concat())).unsignalled())
    /// }
    /// ```
    #[inline]
    pub fn send_copied(&mut self, queue: &mut SendQueue, message: &Copied<'_>) -> bool {
        match &mut self.nic {
            Some((shared, machine)) if queue.is_of(shared) => {
                machine.send_copied(queue.raw(), message)
            }
            _ => queue.send_copied(message),
        }
    }

    /// The peer's program has said, by a message that was received, that it has the first `count`
    /// of all requests that were posted to a queue since the connection began: they are complete by
    /// that, and no acknowledgement has to say so. What is no more than an advantage is passed over
    /// if the NIC is not at hand.
    ///
    /// It must be so: what the peer did not receive would not be sent again.
    #[inline]
    pub fn proved(&mut self, queue: &mut SendQueue, count: u32) {
        if let Some((shared, machine)) = &mut self.nic
            && queue.is_of(shared)
        {
            machine.proved(queue.raw(), count);
        }
    }
}

/// The NIC, still held by whoever found what it waited for, unless somebody else has it.
///
/// To answer a message is then one taking of the lock and not two, and the processor need not
/// finish with what was received before it begins with the answer. It is not to be kept over an
/// await: a task that could be moved to another thread does not compile with it, and whoever awaits
/// something of the same NIC panics.
///
/// ```
/// # use doorbell::verbs::{CompletionQueue, Nic};
/// fn spawn(nic: Nic, mut completions: CompletionQueue) {
///     tokio::spawn(async move {
///         let hand = nic.until_completion(&mut completions).await;
///         drop(hand);
///         tokio::task::yield_now().await;
///     });
/// }
/// ```
///
/// ```compile_fail
/// # use doorbell::verbs::{CompletionQueue, Nic};
/// fn spawn(nic: Nic, mut completions: CompletionQueue) {
///     tokio::spawn(async move {
///         let hand = nic.until_completion(&mut completions).await;
///         tokio::task::yield_now().await;
///         drop(hand);
///     });
/// }
/// ```
pub struct Hand<'n> {
    shared: &'n Shared,
    machine: Option<Held<'n>>,
}

impl fmt::Debug for Hand<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hand")
            .field("nic", &self.shared.address)
            .field("held", &self.machine.is_some())
            .finish()
    }
}

impl<'n> Hand<'n> {
    #[inline]
    pub(crate) fn new(shared: &'n Shared, machine: Option<Held<'n>>) -> Self {
        Self { shared, machine }
    }

    /// Lets it go, and leaves what was not asked for until later.
    #[inline]
    pub(crate) fn let_go_soon(mut self) {
        if let Some(machine) = self.machine.take() {
            self.shared.release_soon(machine);
        }
    }

    /// Posts a request, which leaves before everything else that the NIC has to do.
    ///
    /// # Errors
    /// As [`SendQueue::post`].
    #[inline]
    pub fn post(
        &mut self,
        queue: &mut SendQueue,
        request: impl Into<WorkRequest>,
    ) -> Result<(), Refused<WorkRequest>> {
        match &mut self.machine {
            Some(machine) => AtHand::of(self.shared, machine).post(queue, request),
            None => queue.post(request),
        }
    }
}

impl Drop for Hand<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(machine) = self.machine.take() {
            self.shared.release(machine);
        }
    }
}
