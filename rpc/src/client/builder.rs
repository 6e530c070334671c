//! How channels are configured.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use doorbell_am::{Bundle, Endpoint, EndpointBuilder, Event, Name, NameError, OpenError};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::AbortHandle;

use super::calls::Calls;
use super::connector::{Backoff, Connector, runtime_ended};
use super::{Channel, Inner};
use crate::meters::PermitMeter;
use crate::status::{Status, chain};

/// How a channel is to be, from its limits to its device.
#[derive(Clone, Debug)]
#[must_use = "a channel is there when it is connected"]
pub struct ChannelBuilder {
    device: Option<String>,
    endpoint: EndpointBuilder,
    in_flight: usize,
    sheds: bool,
    timeout: Option<Duration>,
    patience: Duration,
    keep_alive: Option<Duration>,
    backoff: Backoff,
    longest: usize,
    memory: usize,
}

impl Default for ChannelBuilder {
    fn default() -> Self {
        Self {
            device: None,
            endpoint: Endpoint::builder(),
            in_flight: 256,
            sheds: false,
            timeout: None,
            patience: Duration::from_secs(5),
            keep_alive: None,
            backoff: Backoff::default(),
            longest: 64 << 20,
            memory: 256 << 20,
        }
    }
}

/// How long servers may take to answer calls without a deadline.
const PATIENCE: Duration = Duration::from_secs(24 * 60 * 60);

impl ChannelBuilder {
    /// The device that the channel opens: `udp:192.0.2.8:0`, `packet:eth0`, … Unless set, any
    /// address of this machine for a server on `udp`, and `shm` for one on `shm`.
    pub fn device(self, device: impl Into<String>) -> Self {
        Self { device: Some(device.into()), ..self }
    }

    /// The most calls in flight, 256 unless set. Further ones wait.
    pub fn in_flight(self, calls: usize) -> Self {
        Self { in_flight: calls.clamp(1, Semaphore::MAX_PERMITS), ..self }
    }

    /// The longest body of a response, and the longest message of a stream, that the channel takes:
    /// 64 MiB unless set.
    pub fn longest_body(self, bytes: usize) -> Self {
        Self { longest: bytes, ..self }
    }

    /// The most memory for what is long, 256 MiB unless set: bodies of responses too long for
    /// messages that are being received or that the program holds, and messages of streams beyond
    /// 64 KiB that the program has not read. Further bodies and messages wait.
    pub fn body_memory(self, bytes: usize) -> Self {
        Self { memory: bytes, ..self }
    }

    /// Has calls beyond the most in flight fail with
    /// [`ResourceExhausted`](crate::Code::ResourceExhausted) rather than wait.
    pub fn shed(self) -> Self {
        Self { sheds: true, ..self }
    }

    /// The time of calls that have no deadline of their own.
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..self }
    }

    /// How long a call without a deadline waits for a connection, five seconds unless set.
    pub fn connect_timeout(self, timeout: Duration) -> Self {
        Self { patience: timeout, ..self }
    }

    /// How long the server may be silent before the connection to it ends, whether calls wait for
    /// it or not. Its NIC is asked for a sign of life when nothing has come for half of that time.
    /// The server counts as dead, too, if its process is stopped for as long, or keeps its NIC
    /// waiting. From 10 ms.
    ///
    /// Unless set, a server that calls or streams wait for is dead when it has been silent for a
    /// second after it was asked, which is done every half second; and any other after half a
    /// minute.
    ///
    /// Over `shm` no time counts: the end of a process is told at once, and a process that is
    /// stopped is waited for, which deadlines bound. On a [bundle](Self::connect_on) the setting of
    /// its NIC counts, and this does nothing. What the calls get is in the guide, under "Dead
    /// peers".
    pub fn keep_alive(self, time: Duration) -> Self {
        Self { keep_alive: Some(time), ..self }
    }

    /// The pauses between attempts to connect.
    pub fn backoff(self, backoff: Backoff) -> Self {
        Self { backoff, ..self }
    }

    /// The endpoint of Active Messages below: tags, credits, the NIC, and all else that it can be
    /// configured to be.
    pub fn endpoint(self, configure: impl FnOnce(EndpointBuilder) -> EndpointBuilder) -> Self {
        Self { endpoint: configure(self.endpoint), ..self }
    }

    /// Connects to a server.
    ///
    /// # Errors
    /// When the name is none, the device can't be opened, the server can't be connected to in time,
    /// or this is called outside of a Tokio runtime.
    pub async fn connect(
        self,
        name: impl TryInto<Name, Error: Into<NameError>>,
    ) -> Result<Channel, Status> {
        let channel = self.connect_lazily(name).await?;
        channel.0.connector.connection(None).await?;
        Ok(channel)
    }

    /// A channel that connects when the first call is made.
    ///
    /// # Errors
    /// When the name is none, the device can't be opened, or this is called outside of a Tokio
    /// runtime.
    pub async fn connect_lazily(
        self,
        name: impl TryInto<Name, Error: Into<NameError>>,
    ) -> Result<Channel, Status> {
        let name = parsed(name)?;
        if let Err(why) = Handle::try_current() {
            let why = Status::unavailable(format!(
                "there is no Tokio runtime here, and a channel is served by the one in which it is made: \
                 make the channel to {name} in async code that a runtime runs"
            ))
            .with_source(why);
            return Err(why);
        }
        let device = self.device.clone().map_or_else(|| device_for(&name), Ok)?;
        let calls = Arc::new(Calls::new(self.longest, self.memory));
        let endpoint = self.endpoint.clone().patience(PATIENCE);
        let endpoint = match self.keep_alive {
            None => endpoint,
            Some(time) => endpoint.keep_alive(time),
        };
        let endpoint = endpoint.open(&device, calls.handlers()).await;
        let endpoint = endpoint.map_err(|why| unopened(&device, why))?;
        Ok(self.over(endpoint, calls, name))
    }

    /// A channel on a bundle, whose NIC it shares with other endpoints. It connects when the first
    /// call is made.
    ///
    /// # Errors
    /// When the name is none, or the bundle's NIC has no room for it.
    pub async fn connect_on(
        self,
        bundle: &Bundle,
        name: impl TryInto<Name, Error: Into<NameError>>,
    ) -> Result<Channel, Status> {
        let name = parsed(name)?;
        let calls = Arc::new(Calls::new(self.longest, self.memory));
        let endpoint = self.endpoint.clone().patience(PATIENCE).open_on(bundle, calls.handlers());
        let endpoint = endpoint.await.map_err(|why| unopened("a bundle", why))?;
        Ok(self.over(endpoint, calls, name))
    }

    fn over(self, endpoint: Endpoint, calls: Arc<Calls>, name: Name) -> Channel {
        let watch = watch(&endpoint, calls.clone(), &name);
        let permit_meter = PermitMeter::new(&name, self.in_flight);
        Channel(Arc::new(Inner {
            calls,
            watch,
            connector: Connector::new(endpoint, name, self.backoff, self.patience),
            permits: Semaphore::new(self.in_flight),
            permit_meter,
            most: self.in_flight,
            sheds: self.sheds,
            timeout: self.timeout,
            next: AtomicU64::new(0),
        }))
    }
}

fn parsed(name: impl TryInto<Name, Error: Into<NameError>>) -> Result<Name, Status> {
    name.try_into().map_err(|why| {
        let why = why.into();
        Status::invalid_argument(why.to_string()).with_source(why)
    })
}

fn unopened(device: &str, why: OpenError) -> Status {
    Status::unavailable(format!("opening {device} for a channel: {}", chain(&why))).with_source(why)
}

/// The device by which a server of a name can be reached.
fn device_for(name: &Name) -> Result<String, Status> {
    let address = name.address();
    let at_4791 = address.ends_with(":4791");
    match address.split(':').next() {
        // Whoever listens at RoCE's own port is reached from that port alone.
        Some("udp") if address.starts_with("udp:[") && at_4791 => Ok("udp:[::]:4791".to_owned()),
        Some("udp") if at_4791 => Ok("udp:0.0.0.0:4791".to_owned()),
        Some("udp") if address.starts_with("udp:[") => Ok("udp:[::]:0".to_owned()),
        Some("udp") => Ok("udp:0.0.0.0:0".to_owned()),
        Some("shm") => Ok("shm".to_owned()),
        _ => Err(Status::invalid_argument(format!(
            "which interface leads to {name} can't be told from its name: name the device, as in \
             `Channel::builder().device(\"packet:eth0\")`"
        ))),
    }
}

/// Ends the calls of connections that have ended, until the task is aborted; and all calls when the
/// runtime ends.
fn watch(endpoint: &Endpoint, calls: Arc<Calls>, name: &Name) -> AbortHandle {
    let mut events = endpoint.events();
    let closes = ClosesWithRuntime { calls, name: name.clone() };
    let watch = async move {
        let calls = &closes.calls;
        loop {
            match events.recv().await {
                Ok(Event::Gone(peer, ending)) => calls.end_all_of(&peer, &ending.to_string()),
                // A channel has a connection at a time, so there are never many events to miss.
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return,
            }
        }
    };
    endpoint.bundle().runtime().spawn(watch).abort_handle()
}

/// Ends all calls of a channel when the runtime ends that serves the channel. It does so, too, when
/// the last handle to the channel was dropped, and no call is left.
struct ClosesWithRuntime {
    calls: Arc<Calls>,
    name: Name,
}

impl Drop for ClosesWithRuntime {
    fn drop(&mut self) {
        self.calls.close(runtime_ended(&self.name));
    }
}
