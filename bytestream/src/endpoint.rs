//! Endpoints: what all byte streams of a NIC share, and how streams are opened and accepted.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use doorbell_verbs::{
    Config as NicConfig, Connection, Incoming as Asked, Name, NameError, Nic, Queues,
    ResourceError, Unconnected,
};
use tokio::time::{Instant, sleep};

use crate::error::{closed, no_stream, of_connect, of_resource};
use crate::hub::{Hub, Owner};
use crate::link::Link;
use crate::stream::{Open, Stream};
use crate::wire::{Hello, Refusal};

/// How long a new stream waits for a queue pair while the NIC has none but those of closed
/// connections, whose numbers may not be used again yet.
const REST_PATIENCE: Duration = Duration::from_secs(5);

/// The time between two attempts of a new stream to get a queue pair.
const PAUSE: Duration = Duration::from_millis(5);

/// A NIC, with the completion queue and the buffers that all byte streams opened or accepted there
/// share.
///
/// Clones are handles to the same endpoint. The endpoint is closed by [`close`](Self::close), or
/// when the last handle, the last listener and the last stream are dropped. Tasks of the runtime in
/// which the endpoint was opened serve its streams: when that runtime ends, the streams fail, and
/// their peers are told.
///
/// ```
/// use doorbell_bytestream::{Endpoint, ServiceId};
/// use tokio::io::{AsyncReadExt, AsyncWriteExt};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// let server = Endpoint::open("shm").await?; // or "udp:192.0.2.7", "packet:eth0", …
/// let client = Endpoint::open("shm").await?;
/// let mut listener = server.listen(ServiceId(7)).await?;
/// for number in 0..3 {
///     let mut asks = client.connect(listener.name()).await?;
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
    /// Returns the NIC that carries the streams.
    pub fn nic(&self) -> &Nic {
        &self.0.hub.shared.nic
    }

    /// Opens a stream to the listener with a [name](crate::Listener::name).
    ///
    /// # Errors
    /// The kinds that TCP gives: [`ConnectionRefused`](io::ErrorKind::ConnectionRefused) when
    /// nobody listens there, the system of its host says that the port is closed, or the listener
    /// is of another version; [`TimedOut`](io::ErrorKind::TimedOut) when nothing comes back;
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) when `name` is malformed, and
    /// [`InvalidData`](io::ErrorKind::InvalidData) when what listens there does not speak byte
    /// streams.
    pub async fn connect<N>(&self, name: N) -> io::Result<Stream>
    where
        N: TryInto<Name, Error: Into<NameError>>,
    {
        let name = parsed(name)?;
        let text = &*name.to_string();
        let hub = &self.0.hub;
        if hub.is_closing() {
            return Err(closed(text));
        }
        let unconnected = queues(hub).await.map_err(of_resource)?;
        let fresh = Fresh::new(hub, unconnected.connection());
        hub.check_runtime(text)?;
        let hello = hub.shared.config.hello().to_bytes();
        let connected = unconnected.connect(name, &hello).await;
        let (queues, private) = connected.map_err(|why| of_connect(text, why))?;
        let hello = Hello::parse(&private).map_err(|why| no_stream(text, why))?;
        fresh.link().open(queues, hello, text.to_owned());
        // The link may have missed the end of the runtime while it had no queue.
        hub.check_runtime(text)?;
        self.stream(fresh)
    }

    /// Accepts a stream that a peer asks for, or refuses the peer with the reason.
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
        let accepted = unconnected.accept(asked, &hub.shared.config.hello().to_bytes()).await;
        let (queues, _) = accepted.map_err(|why| of_connect("", why))?;
        let device = hub.shared.nic.capabilities().name;
        let peer = match queues.connection.peer_address() {
            Some(address) => format!("{device}:{address}"),
            None => format!("a {device} peer of {}", hub.shared.nic.address()),
        };
        fresh.link().open(queues, hello, peer);
        self.stream(fresh)
    }

    /// Makes the stream of a link that was opened, unless the endpoint is being closed.
    fn stream(&self, fresh: Fresh<'_>) -> io::Result<Stream> {
        let stream = Stream::new(Open { link: fresh.stays(), owner: self.0.clone() });
        match self.0.hub.is_closing() {
            true => Err(closed(stream.peer_name())),
            false => Ok(stream),
        }
    }
}

impl Stream {
    /// Opens a stream to the listener with a [name](crate::Listener::name), with a NIC and an
    /// endpoint for this stream alone. A program with more than a few streams opens an [`Endpoint`]
    /// once, and [connects](Endpoint::connect) by that.
    ///
    /// On `udp` the NIC is opened at the address from which the system's
    /// [route](Nic::device_towards) leads to the listener, and hears no
    /// [strangers](NicConfig::strangers).
    ///
    /// # Errors
    /// The errors of [`Endpoint::connect`]. Also when no route leads to the listener, and when
    /// the address is that of a raw Ethernet device, because the name does not tell from which
    /// interface that is reached.
    pub async fn connect<N>(name: N) -> io::Result<Self>
    where
        N: TryInto<Name, Error: Into<NameError>>,
    {
        let name = parsed(name)?;
        let device = device_towards(&name).await?;
        let small = Endpoint::builder().completions(256).nic(NicConfig {
            queue_pairs: 8,
            registrations: 8,
            completions: 64,
            strangers: false,
            ..NicConfig::default()
        });
        small.open(&device).await?.connect(name).await
    }

    /// The endpoint at which the stream was opened or accepted.
    pub fn endpoint(&self) -> Endpoint {
        Endpoint(self.open.owner.clone())
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("nic", self.nic()).finish_non_exhaustive()
    }
}

fn parsed(name: impl TryInto<Name, Error: Into<NameError>>) -> io::Result<Name> {
    name.try_into().map_err(|why| io::Error::new(io::ErrorKind::InvalidInput, why.into()))
}

/// The device from which a listener is reached, if that can be told from its name. For raw Ethernet
/// it can't, because the interface must be named.
async fn device_towards(name: &Name) -> io::Result<String> {
    let address = name.address();
    let device = Nic::device_towards(address).await;
    device.map_err(|why| of_connect(&name.to_string(), why))?.ok_or_else(|| {
        let what = format!(
            "`{address}` is reached from an interface, and not said from which: open an Endpoint \
             there, on `packet:eth0`, say, and connect by that"
        );
        io::Error::new(io::ErrorKind::InvalidInput, what)
    })
}

/// A link whose connection is being established. Dropping a `Fresh` has the hub forget the link,
/// unless the link was taken out by `stays`.
struct Fresh<'h> {
    hub: &'h Hub,
    link: Option<Arc<Link>>,
}

impl<'h> Fresh<'h> {
    fn new(hub: &'h Arc<Hub>, connection: &Connection) -> Self {
        Self { hub, link: Some(hub.enter(connection.clone())) }
    }

    fn link(&self) -> &Arc<Link> {
        self.link.as_ref().expect("the link is there until `stays` takes it")
    }

    fn stays(mut self) -> Arc<Link> {
        self.link.take().expect("the link is there until `stays` takes it")
    }
}

impl Drop for Fresh<'_> {
    fn drop(&mut self) {
        self.link.iter().for_each(|link| self.hub.forget(link));
    }
}

/// Makes a queue pair. If the NIC has none left, and some of its queue pairs rest after their
/// connections have ended, this waits for one of those to become free.
async fn queues(hub: &Hub) -> Result<Unconnected<Queues>, ResourceError> {
    let deadline = Instant::now() + REST_PATIENCE;
    loop {
        match hub.domain.queues(&hub.queues) {
            Err(ResourceError::QueuePairsFull(_))
                if hub.shared.nic.resting_queue_pairs() > 0 && Instant::now() < deadline =>
            {
                sleep(PAUSE).await;
            }
            made => return made,
        }
    }
}
