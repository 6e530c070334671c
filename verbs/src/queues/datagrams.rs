//! Queue pairs for datagrams, without a connection.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use doorbell_core::connect::Route;
use doorbell_core::nic::{self, Change, QueuePairConfig, ResourceError, Sending, Transport};
use doorbell_core::wire::{Qkey, Qpn};
use tokio::net::TcpStream;

use super::completions::CompletionQueue;
use super::destination::Destination;
use super::queue_pair::Queues;
use super::receive::ReceiveQueue;
use super::send::SendQueue;
use crate::connect::{Connection, QueuePairAddress, Side, exchange_addresses, reach};
use crate::error::ConnectError;
use crate::link::{ConnectionState, Link, Terms};
use crate::nic::Domain;

/// The configuration of a queue pair for datagrams.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct DatagramsConfig {
    /// The completion queue of requests.
    pub send_completions: nic::CompletionQueueId,
    /// The completion queue of receives.
    pub receive_completions: nic::CompletionQueueId,
    /// The most datagrams that may be waiting to be sent.
    pub send_depth: usize,
    /// The most receives that may be posted.
    pub receive_depth: usize,
    /// The key that datagrams for this queue pair must name. Others are counted and dropped.
    pub qkey: Qkey,
}

impl DatagramsConfig {
    /// Returns a configuration with queues of 64 entries and one completion queue for both.
    pub fn new(completions: &CompletionQueue, qkey: Qkey) -> Self {
        Self {
            send_completions: completions.id(),
            receive_completions: completions.id(),
            send_depth: 64,
            receive_depth: 64,
            qkey,
        }
    }

    /// Sends the completions of receives to a completion queue of their own.
    #[must_use]
    pub fn receives_to(self, completions: &CompletionQueue) -> Self {
        Self { receive_completions: completions.id(), ..self }
    }
}

/// The two queues of a queue pair for datagrams. Each message is one packet to the destination that
/// it names. It arrives once or not at all, and completes when it is sent.
///
/// A received datagram stands behind [40 bytes](crate::DATAGRAM_HEADER) of network header. A
/// datagram is dropped if no receive is posted for it, or too short a one.
///
/// ```
/// use doorbell_verbs::work::Datagram;
/// use doorbell_verbs::{Buf, Config, DATAGRAM_HEADER, DatagramsConfig, Memory, Nic, Qkey};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let nic = Nic::open("udp:127.0.0.1:0").await?;
/// let mut completions = nic.completion_queue(256)?;
/// let config = DatagramsConfig::new(&completions, Qkey(7));
/// let mut one = nic.domain().datagrams(&config)?;
/// let mut other = nic.domain().datagrams(&config)?;
/// other.receive.post(1, Buf::with_capacity(DATAGRAM_HEADER + 64))?;
///
/// let to = nic.destination(&nic.address().to_string(), other.qpn(), Qkey(7)).await?;
/// one.send.post(Datagram::new(b"hello", &to).unsignalled())?;
/// let received = completions.completion().await;
/// let Memory::Buf(bytes) = received.memory else { return Err("no buffer".into()) };
/// assert_eq!(&bytes[DATAGRAM_HEADER..], b"hello");
/// # Ok(())
/// # }
/// ```
pub struct Datagrams {
    /// The queue of requests.
    pub send: SendQueue,
    /// The queue of receives.
    pub receive: ReceiveQueue,
    qkey: Qkey,
}

impl Domain {
    /// Makes a queue pair for datagrams, which is ready to send and receive.
    ///
    /// # Errors
    /// Returns an error when there are as many queue pairs as configured, or when a completion
    /// queue is too small for one more, or belongs to another NIC.
    pub fn datagrams(&self, config: &DatagramsConfig) -> Result<Datagrams, ResourceError> {
        let core = QueuePairConfig {
            transport: Transport::Datagram,
            receive_completions: config.receive_completions,
            send_depth: config.send_depth,
            receive_depth: config.receive_depth,
            ..QueuePairConfig::new(self.id(), config.send_completions)
        };
        let qkey = config.qkey;
        let Queues { send, receive, .. } = self.nic().engine().with(|adapter| {
            let control = adapter.control();
            let ends = control.nic.queue_pair(&core)?;
            let connection = Connection::of(
                self.nic().clone(),
                control,
                &ends,
                Link::new(ends.qpn, Terms::NONE),
            )?;
            let sending = Sending::new(control.nic.first_psn());
            let receives = Change::ReadyForDatagrams { qkey, mtu: control.mtu };
            for change in [receives, Change::ReadyToSend(sending)] {
                let changed = control.nic.change(ends.qpn, change);
                debug_assert_eq!(changed, Ok(()), "a new queue pair gets ready");
            }
            connection.link().set_state(ConnectionState::Connected);
            Ok::<_, ResourceError>(Queues::new(ends, connection))
        })?;
        Ok(Datagrams { send, receive, qkey })
    }
}

/// Shows the queues without the key, which lets peers in.
impl fmt::Debug for Datagrams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Datagrams")
            .field("send", &self.send)
            .field("receive", &self.receive)
            .finish_non_exhaustive()
    }
}

impl Datagrams {
    /// Returns the queue pair's number.
    pub fn qpn(&self) -> Qpn {
        self.send.qpn()
    }

    /// Exchanges addresses with a peer as `ibv_ud_pingpong` does, over a TCP connection of which
    /// this is one end, and returns the peer as a destination. The peer's key is assumed to equal
    /// this side's.
    ///
    /// # Errors
    /// Returns an error when the peer breaks the protocol, or can't be reached.
    pub fn exchange<'s>(
        &self,
        stream: &'s mut TcpStream,
        side: Side,
    ) -> impl Future<Output = Result<Destination, ConnectError>> + Send + use<'s> {
        // The future captures no queue, since queues must not be shared between threads while it
        // waits.
        let (nic, qpn, qkey) = (self.send.nic().clone(), self.qpn(), self.qkey);
        async move {
            let own = QueuePairAddress::own(&nic, qpn)?;
            exchange_addresses(stream, side, &own, async |peer: QueuePairAddress| {
                let way = reach(&nic, &peer.address(&nic)?).await?;
                nic.destination_by(Arc::new(Route::new(way)), peer.qpn, qkey)
            })
            .await
        }
    }
}
