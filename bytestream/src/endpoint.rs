//! Endpoints: a NIC's place for byte streams.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use doorbell_verbs::{
    Connection, Incoming as Asked, Nic, Queues, ResourceError, ServiceId, Unconnected,
};
use tokio::time::{Instant, sleep};

use crate::closing::Open;
use crate::config::Config;
use crate::error::{no_stream, of_connect, of_nic, of_resource};
use crate::hub::{Hub, Owner};
use crate::link::Link;
use crate::listener::{Listener, listen};
use crate::name::parse;
use crate::stream::Stream;
use crate::wire::{Hello, Refusal};

/// How long a new stream waits for a queue pair while those of closed connections still rest.
const REST_PATIENCE: Duration = Duration::from_secs(5);

/// How often a new stream asks again for a queue pair.
const A_LOOK: Duration = Duration::from_millis(5);

/// A NIC's place for byte streams: what all streams that it connects or accepts share.
///
/// Clones are handles to the same endpoint, which is gone when the last of them is, and the last
/// listener and stream. It is served by tasks of the runtime in which it was opened: when that
/// runtime ends, streams fail, and their peers are told.
///
/// ```
/// use doorbell::bytestream::{Endpoint, ServiceId};
/// use tokio::io::{AsyncReadExt, AsyncWriteExt};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// let server = Endpoint::open("shm").await?; // or "udp:192.0.2.7", "packet:eth0", …
/// let client = Endpoint::open("shm").await?;
/// let mut listener = server.listen(ServiceId(7)).await?;
/// for number in 0..3 {
///     let mut asks = client.connect(listener.local_name()).await?;
///     let mut answers = listener.accept().await?;
///     asks.write_u8(number).await?;
///     assert_eq!(answers.read_u8().await?, number);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Endpoint(pub(crate) Arc<Owner>);

impl Endpoint {
    /// Opens an endpoint with a NIC of its own on a device, both as configured by default.
    ///
    /// The device is `shm` for processes of the same machine, `udp:192.0.2.7` or a host's name for
    /// any network, `packet:eth0` or `packet-v2:eth0` for raw Ethernet: see [`Nic::open`].
    ///
    /// # Errors
    /// When the device can't be opened, or this is called outside of a runtime.
    pub async fn open(device: &str) -> io::Result<Self> {
        let config = doorbell_verbs::Config::default();
        let nic = Nic::open_async(device, config).await.map_err(of_nic)?;
        Self::on(&nic, &Config::default())
    }

    /// An endpoint on a NIC, which the program may also use in other ways.
    ///
    /// # Errors
    /// When the configuration can't be, the NIC has no room, or this is called outside of a
    /// runtime.
    pub fn on(nic: &Nic, config: &Config) -> io::Result<Self> {
        Ok(Self(Arc::new(Owner::new(nic, config)?)))
    }

    /// Returns the NIC.
    pub fn nic(&self) -> &Nic {
        &self.0.hub.nic
    }

    /// Listens for streams that peers open to a service of this NIC.
    ///
    /// # Errors
    /// When somebody listens there already.
    pub async fn listen(&self, service: ServiceId) -> io::Result<Listener> {
        listen(self.clone(), service).await
    }

    /// Opens a stream to the listener with a [name](crate::Listener::local_name).
    ///
    /// # Errors
    /// Those of TCP: [`ConnectionRefused`](io::ErrorKind::ConnectionRefused) when nobody listens
    /// there, or the listener is of another version; [`TimedOut`](io::ErrorKind::TimedOut) when
    /// nothing comes back; [`InvalidInput`](io::ErrorKind::InvalidInput) when `name` is none, and
    /// [`InvalidData`](io::ErrorKind::InvalidData) when who listens there does not speak byte
    /// streams.
    pub async fn connect(&self, name: &str) -> io::Result<Stream> {
        let (address, service) = parse(name)?;
        let hub = &self.0.hub;
        let unconnected = queues(hub).await.map_err(of_resource)?;
        let fresh = Fresh::new(hub, unconnected.connection());
        hub.check_runtime(name)?;
        let hello = hub.config.hello().to_bytes();
        let connected = unconnected.connect(address, service, &hello).await;
        let (queues, private) = connected.map_err(|why| of_connect(name, why))?;
        let hello = Hello::parse(&private).map_err(|why| no_stream(name, why))?;
        fresh.link().open(queues, hello, name.to_owned());
        // The link may have missed the end of the runtime while it had no queue.
        hub.check_runtime(name)?;
        Ok(self.stream(fresh))
    }

    /// Accepts a stream that a peer asks for, or refuses the peer and says why.
    pub(crate) async fn accept(&self, asked: Asked) -> io::Result<Stream> {
        let hub = &self.0.hub;
        let refuse = |asked: Asked, why: Refusal| {
            let _ = asked.reject(&why.to_bytes());
            Err(io::Error::new(io::ErrorKind::InvalidData, why))
        };
        let hello = match Hello::parse(asked.private()) {
            Ok(hello) => hello,
            Err(why) => return refuse(asked, Refusal::of(why)),
        };
        let Ok(unconnected) = queues(hub).await else { return refuse(asked, Refusal::Full) };
        let fresh = Fresh::new(hub, unconnected.connection());
        let accepted = unconnected.accept(asked, &hub.config.hello().to_bytes()).await;
        let (queues, _) = accepted.map_err(|why| of_connect("", why))?;
        let device = hub.nic.capabilities().name;
        let peer = match queues.connection.peer_address() {
            Some(address) => format!("{device}:{address}"),
            None => format!("a {device} peer of {}", hub.nic.address()),
        };
        fresh.link().open(queues, hello, peer);
        Ok(self.stream(fresh))
    }

    fn stream(&self, fresh: Fresh<'_>) -> Stream {
        Stream::new(Open { link: fresh.stays(), owner: self.0.clone() })
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("nic", self.nic()).finish_non_exhaustive()
    }
}

/// A link whose connection is being made. The link is forgotten if the connection is not made.
struct Fresh<'h> {
    hub: &'h Hub,
    link: Option<Arc<Link>>,
}

impl<'h> Fresh<'h> {
    fn new(hub: &'h Arc<Hub>, connection: &Connection) -> Self {
        Self { hub, link: Some(hub.enter(connection.clone())) }
    }

    fn link(&self) -> &Arc<Link> {
        self.link.as_ref().expect("it is there until it stays")
    }

    fn stays(mut self) -> Arc<Link> {
        self.link.take().expect("it is there until it stays")
    }
}

impl Drop for Fresh<'_> {
    fn drop(&mut self) {
        self.link.iter().for_each(|link| self.hub.forget(link));
    }
}

/// Makes a queue pair. If all of the NIC are taken, and some of them rest after their connections
/// ended, this waits for one of those.
async fn queues(hub: &Hub) -> Result<Unconnected<Queues>, ResourceError> {
    let deadline = Instant::now() + REST_PATIENCE;
    loop {
        match hub.domain.queues(&hub.queues) {
            Err(ResourceError::QueuePairsFull(_))
                if hub.nic.resting_queue_pairs() > 0 && Instant::now() < deadline =>
            {
                sleep(A_LOOK).await;
            }
            made => return made,
        }
    }
}
