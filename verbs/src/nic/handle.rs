//! The handle to an open NIC.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use doorbell_transports::{Address, Capabilities, Trouble};
use tokio::sync::broadcast;

use super::statistics::Statistics;
use crate::dispatch::AsyncEvent;
use crate::progress::{HeldNic, ProgressEngine};
use crate::waiting::block_on;

/// A software NIC over a device. Clones are handles to the same NIC, which is closed when the last
/// of them, and the last object that was made with it, is dropped.
///
/// ```
/// use doorbell_verbs::{Nic, ServiceId};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = Nic::open("shm").await?; // or "udp:192.0.2.7", "packet:eth0", …
/// let mut listener = server.listen(ServiceId(7)).await?;
/// let name = listener.name();
/// let client = Nic::open("shm").await?;
///
/// let (one, other) = (client.domain(), server.domain());
/// let accepted = async { listener.accept().await?.accept(&other).await };
/// let (asked, accepted) = tokio::join!(one.connect(&name), accepted);
/// let (asked, accepted) = (asked?, accepted?);
///
/// let receives = accepted.recv(Vec::with_capacity(64));
/// let (sent, message) = tokio::join!(asked.send(b"hello"), receives);
/// sent?;
/// assert_eq!(message?.data, b"hello");
/// # Ok(())
/// # }
/// ```
pub struct Nic(
    /// The progress engine, which is taken out when the handle is dropped.
    Option<Arc<ProgressEngine>>,
);

impl Clone for Nic {
    fn clone(&self) -> Self {
        self.engine().add_handle();
        Self(self.0.clone())
    }
}

impl Drop for Nic {
    fn drop(&mut self) {
        if let Some(engine) = self.0.take() {
            engine.drop_handle();
        }
    }
}

impl Nic {
    /// Makes the first handle to a NIC.
    pub(super) fn new(engine: Arc<ProgressEngine>) -> Self {
        Self(Some(engine))
    }

    #[inline]
    pub(crate) fn engine(&self) -> &Arc<ProgressEngine> {
        self.0.as_ref().expect("the engine is taken out only on drop")
    }

    /// Returns the address at which peers reach this NIC. As text, it is what peers pass to
    /// [`Domain::connect`](crate::Domain::connect).
    pub fn address(&self) -> &Address {
        &self.engine().address
    }

    /// Returns how many dropped queue pairs still take a place: their connections are being ended,
    /// or their numbers rest for the [time-wait](crate::Config::time_wait). Each of them frees its
    /// place by itself.
    pub fn resting_queue_pairs(&self) -> usize {
        self.engine().with(|adapter| adapter.control().dropped_queue_pairs())
    }

    /// Returns the most queue pairs that there may be. For layers of this workspace.
    #[doc(hidden)]
    pub fn most_queue_pairs(&self) -> usize {
        self.engine().with(|adapter| adapter.control().nic.most_queue_pairs())
    }

    /// Returns what the device can do.
    pub fn capabilities(&self) -> &Capabilities {
        &self.engine().capabilities
    }

    /// Subscribes to the asynchronous events that happen from here on. A program that does not take
    /// them misses the oldest.
    pub fn events(&self) -> broadcast::Receiver<AsyncEvent> {
        self.engine().with(|adapter| adapter.control().events.subscribe())
    }

    /// Takes a turn, unless another thread holds the NIC. Returns whether anything arrived or was
    /// sent.
    ///
    /// Programs need not call this, since waiting tasks take turns. It serves programs without a
    /// runtime that poll by themselves.
    pub fn turn(&self) -> bool {
        self.engine().turn()
    }

    /// Takes a turn, unless another thread holds the NIC, and then looks at what has come. The look
    /// gets the NIC if this call has taken the turn: what is [posted](HeldNic::post) through it
    /// leaves at once.
    ///
    /// A program whose look finds something is expected to go on at once. The acknowledgements that
    /// the turn called for are then sent with what is posted or turned next, or within about a
    /// millisecond, if the runtime in which the NIC was opened gets to run meanwhile. The peer
    /// waits longer for them, so this suits programs that answer messages by messages.
    ///
    /// ```
    /// # use doorbell_verbs::work::Send;
    /// # use doorbell_verbs::{CompletionQueue, Nic, Refused, SendQueue, WorkRequest};
    /// /// Answers what has come, and returns whether anything had.
    /// fn answer(nic: &Nic, queue: &mut SendQueue, completions: &mut CompletionQueue) -> bool {
    ///     let answered = nic.turn_and_find(|mut nic| {
    ///         let _message = completions.look()?;
    ///         nic.post(queue, Send::inline(b"here").ok()?).ok()
    ///     });
    ///     answered.is_some()
    /// }
    /// ```
    #[doc(hidden)]
    #[inline]
    pub fn turn_and_find<R>(&self, look: impl FnOnce(HeldNic<'_>) -> Option<R>) -> Option<R> {
        self.engine().turn_and_find(look)
    }

    /// Runs a future on this thread, without a runtime, and runs this NIC meanwhile.
    ///
    /// In a task of a runtime, this blocks all other tasks of the thread.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        block_on(self.engine(), future)
    }

    /// Ends all connections, tells the peers, and closes the device, whose address can be opened
    /// again when this returns. Handles that are left reach nobody any more, and what waits ends:
    /// listeners return [`ListenerEnded`](crate::ListenerEnded), and endpoints of the floors above
    /// are closed. A NIC that nobody has closed is closed with its last handle.
    ///
    /// This blocks the thread while send queues that linger are served, a second at most.
    ///
    /// In a handler that holds the NIC, the device is closed with the last handle instead.
    pub async fn close(&self) {
        self.close_blocking();
    }

    /// Returns whether the NIC was [closed](Self::close).
    pub fn is_closed(&self) -> bool {
        self.engine().is_closed.load(Ordering::Acquire)
    }

    /// Closes the NIC as [`close`](Self::close) does, for programs without `async`.
    pub fn close_blocking(&self) {
        self.engine().close();
    }

    /// Sends what programs have posted and what turns have called for, before this returns. For
    /// layers of this workspace whose program may end the process next.
    #[doc(hidden)]
    pub fn settle(&self) {
        self.engine().with(|_| ());
    }

    /// Returns what the NIC has counted since it was opened.
    pub fn statistics(&self) -> Statistics {
        self.engine().with(|adapter| {
            let device = adapter.statistics();
            let control = adapter.control();
            Statistics {
                nic: *control.nic.counters(),
                device,
                connections: *control.manager.counters(),
                objects: control.nic.objects(),
            }
        })
    }

    /// Returns what keeps the NIC from working at this moment, if anything does.
    pub fn trouble(&self) -> Option<Trouble> {
        self.engine().with(|adapter| adapter.trouble())
    }
}

/// Two handles are equal if they are to the same NIC.
impl PartialEq for Nic {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(self.engine(), other.engine())
    }
}

impl Eq for Nic {}

impl std::fmt::Debug for Nic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Nic({})", self.address())
    }
}
