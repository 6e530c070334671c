//! The handle to a connection.

use std::any::Any;
use std::net::SocketAddr;
use std::sync::Arc;

use doorbell_core::nic::{Change, QueuePairEnds, ResourceError};
use doorbell_core::wire::{Pkey, Qpn};
use doorbell_transports::PeerProcess;
use tracing::Instrument;
use tracing::field::{DisplayValue, display};

use crate::control::{Control, ControlOp, DroppedQueuePair};
use crate::error::ConnectError;
use crate::link::{ConnectionState, Ending, Link};
use crate::nic::Nic;
use crate::waiting::with_progress;

/// The connection of a queue pair. Clones are handles to the same connection.
#[derive(Clone, Debug)]
pub struct Connection {
    nic: Nic,
    link: Arc<Link>,
}

/// Two handles are equal if they are to the same connection.
impl PartialEq for Connection {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.link, &other.link)
    }
}

impl Eq for Connection {}

impl Connection {
    /// Makes the connection of a new queue pair, and moves the queue pair to the init state, in
    /// which it takes receives.
    pub(crate) fn of(
        nic: Nic,
        control: &mut Control,
        ends: &QueuePairEnds,
        link: Link,
    ) -> Result<Self, ResourceError> {
        let init = Change::Init { rights: link.terms.rights, pkey: Pkey::DEFAULT };
        let changed = control.nic.change(ends.qpn, init);
        debug_assert_eq!(changed, Ok(()), "a new queue pair goes to the init state");
        let link = Arc::new(link);
        control.links.insert(ends.qpn, link.clone());
        Ok(Self { nic, link })
    }

    /// Returns the queue pair's number.
    pub fn qpn(&self) -> Qpn {
        self.link.qpn
    }

    /// Returns the NIC.
    pub fn nic(&self) -> &Nic {
        &self.nic
    }

    /// Returns the address and port of the peer's NIC, from the time when the connection is being
    /// made. There is none on a device whose peers have no such addresses, as `shm`.
    pub fn peer_address(&self) -> Option<SocketAddr> {
        self.link.peer_address()
    }

    /// Returns the process at the other end, as the kernel tells: on a device whose peers are
    /// processes of this machine, as `shm`. There is none on other devices, nor where the kernel
    /// does not tell, nor when the connection is over. For layers of this workspace.
    #[doc(hidden)]
    pub fn peer_process(&self) -> Option<PeerProcess> {
        let path = self.link.nic_side(|side| side.path.as_ref().map(|&(_, path)| path))?;
        self.nic.engine().with(|adapter| adapter.peer_process(path))
    }

    /// Returns the state of the connection.
    pub fn state(&self) -> ConnectionState {
        self.link.state()
    }

    /// Returns whether the queue pair takes no more receives from its shared receive queue, and all
    /// receives that it took have completed. The event
    /// [`AsyncEvent::LastReceive`](crate::AsyncEvent::LastReceive) tells the same, with a number
    /// that may belong to another queue pair by then. Without a shared receive queue the answer is
    /// always false.
    pub fn had_last_receive(&self) -> bool {
        self.link.had_last_receive()
    }

    pub(crate) fn link(&self) -> &Arc<Link> {
        &self.link
    }

    /// Waits until the connection has ended, and returns why.
    pub async fn ended(&self) -> Ending {
        with_progress(self.nic.engine(), self.link.ended()).await
    }

    /// Demands a sign of life from the peer. If nothing comes by this connection within
    /// [`KeepAlive::busy`](crate::KeepAlive::busy), the connection ends with
    /// [`Cause::PeerSilent`](crate::Cause::PeerSilent), as it does when the peer dies under a
    /// request.
    ///
    /// This is for a program that waits for the peer's *program*: for an answer to a message that
    /// was sent and acknowledged long ago. Nothing is under way then, and the death of the peer
    /// would be noticed only after [`KeepAlive::idle`](crate::KeepAlive::idle). A program that
    /// waits for long probes repeatedly, each half of `busy`, say. The peer's NIC answers, so a
    /// program that is slow but alive is not taken for dead.
    ///
    /// The call returns at once, and is allowed in any context. It has no effect on a connection
    /// that has ended, is not yet made, or is unreliable; nor while another probe is under way; nor
    /// on a device that reports by itself when a peer has ended, as `shm` does.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use doorbell_verbs::{Buf, QueuePair};
    /// # async fn asks(pair: QueuePair) -> Result<(), Box<dyn std::error::Error>> {
    /// pair.send(Buf::from(b"how much is it?".to_vec())).await?;
    /// let mut answer = std::pin::pin!(pair.recv(Buf::with_capacity(64)));
    /// let price = loop {
    ///     match tokio::time::timeout(Duration::from_millis(500), &mut answer).await {
    ///         // If the peer has died, this is the error that says so.
    ///         Ok(answered) => break answered?,
    ///         Err(_) => pair.connection().probe(),
    ///     }
    /// };
    /// # Ok(())
    /// # }
    /// ```
    #[cold]
    pub fn probe(&self) {
        if self.link.ask_probe() {
            self.nic.engine().submit(ControlOp::Probe(self.link.clone()));
        }
    }

    /// Ends the connection, with up to 220 bytes of private data for the peer, and waits until the
    /// peer has answered, or does not answer in time. Requests that have not completed are flushed
    /// on both sides, so await them before. On a connection that has ended, returns the reason
    /// again. If the connection was [exchanged](crate::Unconnected::exchange), the program must
    /// tell the peer by itself: by closing the TCP connection, say.
    ///
    /// # Errors
    /// Returns an error when the private data is too long, or the queue pair is not connected yet;
    /// the connection goes on then. Also returns an error while another task is ending the
    /// connection.
    pub async fn disconnect(&self, private: &[u8]) -> Result<Ending, ConnectError> {
        let span = tracing::debug_span!("disconnect", qpn = %self.qpn(), peer = self.peer());
        self.parts(private).instrument(span).await
    }

    async fn parts(&self, private: &[u8]) -> Result<Ending, ConnectError> {
        self.nic.engine().with(|adapter| {
            adapter.refresh_clock();
            adapter.control().disconnect(&self.link, private)
        })?;
        Ok(self.ended().await)
    }

    /// Returns the number of the peer's queue pair, from the time when the two sides have agreed.
    /// For layers of this workspace whose peers prove who they are.
    #[doc(hidden)]
    pub fn peer_qpn(&self) -> Option<Qpn> {
        self.link.nic_side(|side| side.peer)
    }

    /// Returns the number of the peer's queue pair for tracing spans, where it is known.
    pub(super) fn peer(&self) -> Option<DisplayValue<Qpn>> {
        self.link.nic_side(|side| side.peer).map(display)
    }

    /// Starts the teardown of the queue pair. `ends` are the program's ends of its queues.
    pub(crate) fn leave(&self, ends: Box<dyn Any + Send>) {
        let leaving = DroppedQueuePair { link: self.link.clone(), ends };
        self.nic.engine().submit(ControlOp::DropQueuePair(leaving));
    }
}

/// The owner of a queue pair, shared by its two queues: the queue pair is taken down when both
/// queues have been dropped.
pub(crate) struct QueuePairOwner {
    pub connection: Connection,
}

impl Drop for QueuePairOwner {
    fn drop(&mut self) {
        self.connection.leave(Box::new(()));
    }
}
