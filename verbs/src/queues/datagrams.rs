//! Queue pairs without a connection.

use std::fmt;
use std::sync::Arc;

use doorbell_core::connect::Route;
use doorbell_core::nic::{
    self, AddressId, Change, QueuePairConfig, ResourceError, Sending, Transport,
};
use doorbell_core::wire::{Qkey, Qpn};
use tokio::net::TcpStream;

use crate::completions::CompletionQueue;
use crate::connect::{Side, Told, find, meet, reach};
use crate::domain::Domain;
use crate::error::ConnectError;
use crate::nic::Nic;
use crate::pair::{Link, Stand, Terms};
use crate::progress::{Errand, Way};
use crate::queues::{Queues, ReceiveQueue, SendQueue};

/// What a queue pair is to be like that has no connection.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct DatagramsConfig {
    /// Where requests complete.
    pub send_completions: nic::CompletionQueueId,
    /// Where receives complete.
    pub receive_completions: nic::CompletionQueueId,
    /// How many datagrams may be on their way out.
    pub send_depth: usize,
    /// How many receives may be posted.
    pub receive_depth: usize,
    /// What datagrams must name that are for it. Others are counted, and dropped.
    pub qkey: Qkey,
}

impl DatagramsConfig {
    /// Queues of 64, all of whose completions go to one queue.
    pub fn new(completions: &CompletionQueue, qkey: Qkey) -> Self {
        Self {
            send_completions: completions.id(),
            receive_completions: completions.id(),
            send_depth: 64,
            receive_depth: 64,
            qkey,
        }
    }

    /// The same with the completions of receives in a queue of their own.
    #[must_use]
    pub fn receives_to(self, completions: &CompletionQueue) -> Self {
        Self { receive_completions: completions.id(), ..self }
    }
}

/// The two queues of a queue pair that has no connection: each message is one packet, to whom it
/// names, and arrives once, or not at all. It is complete when it is sent.
///
/// In its receive a datagram stands behind [40 bytes](crate::DATAGRAM_HEADER) of network header.
/// One for which no receive is posted, or none that is long enough, is dropped.
///
/// ```
/// use doorbell::verbs::work::Datagram;
/// use doorbell::verbs::{Buf, Config, DATAGRAM_HEADER, DatagramsConfig, Memory, Nic, Qkey};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let nic = Nic::open("udp:127.0.0.1:0", Config::default())?;
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
    /// Where requests are posted.
    pub send: SendQueue,
    /// Where receives are posted.
    pub receive: ReceiveQueue,
    qkey: Qkey,
}

/// To whom datagrams are sent: a queue pair, the key that it wants named, and the way to its NIC.
///
/// Clones are handles to the same. The last of them is to be kept until what was sent there is
/// complete: what is not breaks its queue pair.
#[derive(Clone, Debug)]
pub struct Destination(Arc<Known>);

struct Known {
    nic: Nic,
    address: AddressId,
    way: Way,
    qpn: Qpn,
    qkey: Qkey,
}

impl Destination {
    pub(crate) fn named(&self) -> (AddressId, Qpn, Qkey) {
        (self.0.address, self.0.qpn, self.0.qkey)
    }

    /// The queue pair's number.
    pub fn qpn(&self) -> Qpn {
        self.0.qpn
    }
}

impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} by {:?}", self.qpn, self.nic)
    }
}

impl Drop for Known {
    fn drop(&mut self) {
        self.nic.shared().run(Errand::Forget(self.address, self.way.clone()));
    }
}

impl Nic {
    /// A queue pair to which datagrams may be sent, at an address, in which a host may be named as
    /// for a [connection](crate::Unconnected::connect).
    ///
    /// # Errors
    /// When the address can't be reached, or the host's name is not known, or there are as many as
    /// a NIC keeps.
    pub async fn destination(
        &self,
        to: &str,
        qpn: Qpn,
        qkey: Qkey,
    ) -> Result<Destination, ConnectError> {
        let address = find(self, to).await?;
        let way = Arc::new(Route::new(reach(self, &address).await?));
        self.destination_by(way, qpn, qkey)
    }

    fn destination_by(&self, way: Way, qpn: Qpn, qkey: Qkey) -> Result<Destination, ConnectError> {
        let address = self.shared().with(|machine| machine.control().address(&way))?;
        Ok(Destination(Arc::new(Known { nic: self.clone(), address, way, qpn, qkey })))
    }
}

impl Domain {
    /// Makes a queue pair without a connection, which sends and receives at once.
    ///
    /// # Errors
    /// When there are as many as configured, or a completion queue is too small for one more, or
    /// another NIC's.
    pub fn datagrams(&self, config: &DatagramsConfig) -> Result<Datagrams, ResourceError> {
        let core = QueuePairConfig {
            transport: Transport::Datagram,
            receive_completions: config.receive_completions,
            send_depth: config.send_depth,
            receive_depth: config.receive_depth,
            ..QueuePairConfig::new(self.id(), config.send_completions)
        };
        let qkey = config.qkey;
        let Queues { send, receive, .. } = self.nic().shared().with(|machine| {
            let control = machine.control();
            let ends = control.nic.queue_pair(&core)?;
            let connection = self.connection(control, &ends, Link::new(ends.qpn, Terms::NONE))?;
            let sending = Sending::new(control.nic.first_psn());
            let receives = Change::ReadyForDatagrams { qkey, mtu: control.mtu };
            for change in [receives, Change::ReadyToSend(sending)] {
                let changed = control.nic.change(ends.qpn, change);
                debug_assert_eq!(changed, Ok(()), "a new queue pair gets ready");
            }
            connection.link().now_stands(Stand::Connected);
            Ok::<_, ResourceError>(Queues::new(ends, connection))
        })?;
        Ok(Datagrams { send, receive, qkey })
    }
}

/// Without the key that lets peers in.
impl fmt::Debug for Datagrams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Datagrams")
            .field("send", &self.send)
            .field("receive", &self.receive)
            .finish_non_exhaustive()
    }
}

impl Datagrams {
    /// The queue pair's number.
    pub fn qpn(&self) -> Qpn {
        self.send.qpn()
    }

    /// Hears of a peer by the exchange that `ibv_ud_pingpong` uses, over a TCP connection of which
    /// this is one end. The peer's key is taken to be this side's.
    ///
    /// # Errors
    /// When the peer says something else, or can't be reached.
    pub fn exchange<'s>(
        &self,
        stream: &'s mut TcpStream,
        side: Side,
    ) -> impl Future<Output = Result<Destination, ConnectError>> + Send + use<'s> {
        // Queues are not shared between threads while it waits.
        let (nic, qpn, qkey) = (self.send.nic().clone(), self.qpn(), self.qkey);
        async move {
            let own = Told::own(&nic, qpn)?;
            meet(stream, side, &own, async |peer: Told| {
                let way = reach(&nic, &peer.address(&nic)?).await?;
                nic.destination_by(Arc::new(Route::new(way)), peer.qpn, qkey)
            })
            .await
        }
    }
}
