//! Configuring a channel, and opening its endpoint.

use std::sync::Arc;
use std::time::Duration;

use doorbell_am::{Bundle, Endpoint, EndpointBuilder, Name, NameError, OpenError};
use doorbell_verbs::{ConnectError, Nic};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use super::backoff::Backoff;
use super::channel::Channel;
use super::session::{Calls, Session, Settings};
use super::sharing::{Place, shared_bundle};
use crate::deadlines::deadline_after;
use crate::status::{Status, chain};

/// Configures a channel, from its limits to its device, and connects it.
#[derive(Clone, Debug)]
#[must_use = "a channel is there when it is connected"]
pub struct ChannelBuilder {
    device: Option<String>,
    place: ChannelPlace,
    /// Whether the channel opens a NIC for itself.
    own_nic: bool,
    endpoint: EndpointBuilder,
    session: Settings,
    keep_alive: Option<Duration>,
    longest: usize,
    memory: usize,
    patience_for_bodies: Duration,
}

/// The device, NIC or bundle that a channel is opened on.
#[derive(Clone, Debug)]
enum ChannelPlace {
    Device,
    Nic(Nic),
    Bundle(Bundle),
}

impl ChannelPlace {
    /// Returns the bundle of a channel that opens no device.
    fn bundle(&self, endpoint: &EndpointBuilder) -> Result<Option<Bundle>, OpenError> {
        match self {
            Self::Device => Ok(None),
            Self::Nic(nic) => Bundle::new(nic, endpoint.shared_parts().1).map(Some),
            Self::Bundle(bundle) => Ok(Some(bundle.clone())),
        }
    }
}

impl Default for ChannelBuilder {
    fn default() -> Self {
        Self {
            device: None,
            place: ChannelPlace::Device,
            own_nic: false,
            // Channels may be many, and most of them idle. Nobody connects to one, and a channel
            // has one connection, beside those that are being ended.
            endpoint: Endpoint::builder().listens(false).first_receives(1).places(4),
            session: Settings {
                in_flight: 256,
                sheds: false,
                waits: false,
                timeout: None,
                patience: None,
                backoff: Backoff::default(),
            },
            keep_alive: None,
            longest: 64 << 20,
            memory: 256 << 20,
            patience_for_bodies: Duration::from_secs(10),
        }
    }
}

/// How long `connect` tries to connect, unless that is set.
const FIRST: Duration = Duration::from_secs(5);

/// How long servers may take to answer calls that have no deadline. Active Messages need a bound.
const PATIENCE: Duration = Duration::from_secs(24 * 60 * 60);

impl Channel {
    /// Connects to a server, with all settings at their defaults.
    ///
    /// # Errors
    /// When `name` is malformed, a device of its kind can't be opened here, or the server can't be
    /// connected to within five seconds.
    pub async fn connect(name: impl TryInto<Name, Error: Into<NameError>>) -> Result<Self, Status> {
        Self::builder().connect(name).await
    }

    /// A builder of a channel, with all settings at their defaults.
    pub fn builder() -> ChannelBuilder {
        ChannelBuilder::default()
    }
}

impl ChannelBuilder {
    /// Sets the device that the channel opens, such as `udp:192.0.2.8:0` or `packet:eth0`. Unless
    /// set, the channel uses `shm` for a server on `shm`, and for a server on `udp` the address
    /// from which this machine's [route](Nic::device_towards) leads to it. So the client of a
    /// server at a loopback address can't be reached from other machines.
    ///
    /// On `udp` the device hears the server and no [strangers](doorbell_verbs::Config::strangers).
    pub fn device(self, device: impl Into<String>) -> Self {
        Self { device: Some(device.into()), ..self }
    }

    /// Has the channel use a NIC that is open, with a bundle of its own there. The
    /// [device](Self::device) does not count then.
    pub fn on(self, nic: &Nic) -> Self {
        Self { place: ChannelPlace::Nic(nic.clone()), ..self }
    }

    /// Has the channel use a bundle, whose NIC it shares with other endpoints. The
    /// [device](Self::device) does not count then.
    pub fn on_bundle(self, bundle: &Bundle) -> Self {
        Self { place: ChannelPlace::Bundle(bundle.clone()), ..self }
    }

    /// Sets whether the channel opens a NIC for itself. Unless set, it shares one with the other
    /// channels of its runtime that have the same device and configuration of the NIC. A NIC takes
    /// about a dozen descriptors and half a megabyte, and channels that share one share a socket
    /// and the thread that serves it.
    pub fn own_nic(self, own: bool) -> Self {
        Self { own_nic: own, ..self }
    }

    /// Sets the most calls in flight, 256 unless set. Further calls wait.
    pub fn in_flight(mut self, calls: usize) -> Self {
        self.session.in_flight = calls.clamp(1, Semaphore::MAX_PERMITS);
        self
    }

    /// Sets the longest response body, and the longest message of a stream, that the channel
    /// accepts: 64 MiB unless set.
    pub fn longest_body(self, bytes: usize) -> Self {
        Self { longest: bytes, ..self }
    }

    /// Sets the most memory for long data, 256 MiB unless set. Long data are response bodies too
    /// long for a message, while they are received, and messages of streams beyond 64 KiB that the
    /// program has not read. Further bodies and messages [wait](Self::patience_for_bodies). A body
    /// that the program was given is the program's own memory, and does not count.
    pub fn body_memory(self, bytes: usize) -> Self {
        Self { memory: bytes, ..self }
    }

    /// Sets how long a body, or a message of a stream that the program waits for, may wait for
    /// [memory](Self::body_memory) while none comes back: ten seconds unless set. Then the call or
    /// the stream fails with [`ResourceExhausted`](crate::Code::ResourceExhausted), within twice
    /// that time. While memory comes back, bodies wait their turn for as long as it takes.
    pub fn patience_for_bodies(self, patience: Duration) -> Self {
        Self { patience_for_bodies: patience, ..self }
    }

    /// Makes calls beyond the most in flight fail with
    /// [`ResourceExhausted`](crate::Code::ResourceExhausted), rather than wait.
    pub fn shed(mut self) -> Self {
        self.session.sheds = true;
        self
    }

    /// Sets the time limit of calls that have no deadline of their own.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.session.timeout = Some(timeout);
        self
    }

    /// Sets for how long a server may be silent, when the channel connects to it, before it counts
    /// as gone: 20 seconds unless set. Calls wait meanwhile, but not beyond their deadlines. A
    /// server counts as gone at once if the connection is refused, or if the system of its host
    /// says that nobody is there.
    ///
    /// [`connect`](Self::connect) tries for as long, whatever the answers are, and for five seconds
    /// unless this is set.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.session.patience = Some(timeout);
        self
    }

    /// Has calls wait for a server that is gone, until there is a connection or their deadlines
    /// have passed. Unless set, they fail at once with
    /// [`Unavailable`](crate::Code::Unavailable). A call decides for itself by
    /// [`set_wait_for_ready`](crate::Request::set_wait_for_ready).
    pub fn wait_for_ready(mut self, waits: bool) -> Self {
        self.session.waits = waits;
        self
    }

    /// Sets for how long the server may be silent before the channel takes it for dead, whether or
    /// not calls wait for it. The server's NIC is probed when nothing has come for half of that
    /// time. A server whose process is stopped for this long, or does not let its NIC make
    /// progress, counts as dead, too. The shortest time is 10 ms.
    ///
    /// Unless set, a server that calls or streams wait for is probed every half second, and counts
    /// as dead five seconds after a probe that it does not answer, or half a second if the system
    /// of its host says that nobody is at its port. Any other server counts as dead after half a
    /// minute of silence.
    ///
    /// Over `shm` the setting has no effect: the end of a process is noticed at once, and a process
    /// that is stopped is waited for, as long as deadlines allow. On a [bundle](Self::on_bundle)
    /// the setting of the bundle's NIC counts, and this setting has no effect.
    ///
    /// When a server is dead, its connection ends. Calls that wait for it are sent again over the
    /// next connection if they may run again, and fail with
    /// [`Unavailable`](crate::Code::Unavailable) otherwise. Streams end with the same code.
    pub fn keep_alive(self, time: Duration) -> Self {
        Self { keep_alive: Some(time), ..self }
    }

    /// Sets the pauses between attempts to connect.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.session.backoff = backoff;
        self
    }

    /// Configures the endpoint of Active Messages below the channel: tags, credits, the NIC, and
    /// everything else that an [`EndpointBuilder`] has.
    pub fn endpoint(self, configure: impl FnOnce(EndpointBuilder) -> EndpointBuilder) -> Self {
        Self { endpoint: configure(self.endpoint), ..self }
    }

    /// Connects to a server.
    ///
    /// # Errors
    /// When the name is malformed, the device can't be opened, the server can't be connected to in
    /// time, or this is called outside of a Tokio runtime.
    pub async fn connect(
        self,
        name: impl TryInto<Name, Error: Into<NameError>>,
    ) -> Result<Channel, Status> {
        let deadline = deadline_after(self.session.patience.unwrap_or(FIRST));
        let channel = self.connect_lazily(name).await?;
        channel.0.connect(deadline).await?;
        Ok(channel)
    }

    /// Makes a channel that connects when the first call is made.
    ///
    /// # Errors
    /// When the name is malformed, the device can't be opened, or this is called outside of a Tokio
    /// runtime.
    pub async fn connect_lazily(
        self,
        name: impl TryInto<Name, Error: Into<NameError>>,
    ) -> Result<Channel, Status> {
        let name = parsed(name)?;
        let Ok(runtime) = Handle::try_current() else {
            return Err(Status::unavailable(format!(
                "there is no Tokio runtime here, and a channel is served by the one in which it is made: \
                 make the channel to {name} in async code that a runtime runs"
            )));
        };
        if let Some(bundle) = self.place.bundle(&self.endpoint).map_err(unplaced)? {
            return self.connect_on(&bundle, name).await;
        }
        let device = match &self.device {
            Some(device) => device.clone(),
            None => device_for(&name).await?,
        };
        let calls = self.calls();
        let endpoint = self.endpoint.clone().patience(PATIENCE).strangers(false);
        let endpoint = match self.keep_alive {
            None => endpoint,
            Some(time) => endpoint.keep_alive(time),
        };
        let opened = async {
            let place = Place { device: &device, is_any: self.device.is_none() };
            let bundle = match self.own_nic {
                true => endpoint.open_bundle(&device).await?,
                false => shared_bundle(place, &endpoint, &runtime).await?,
            };
            endpoint.on_bundle(&bundle, calls.handlers()).await
        };
        let endpoint = opened.await.map_err(|why| unopened(&device, why))?;
        Ok(Channel(Session::new(endpoint, calls, name, self.session)))
    }

    async fn connect_on(self, bundle: &Bundle, name: Name) -> Result<Channel, Status> {
        let calls = self.calls();
        let endpoint = self.endpoint.clone().patience(PATIENCE).on_bundle(bundle, calls.handlers());
        let endpoint = endpoint.await.map_err(unplaced)?;
        Ok(Channel(Session::new(endpoint, calls, name, self.session)))
    }

    /// The calls of a channel with these settings.
    fn calls(&self) -> Arc<Calls> {
        Arc::new(Calls::new(self.longest, self.memory, self.patience_for_bodies))
    }
}

fn parsed(name: impl TryInto<Name, Error: Into<NameError>>) -> Result<Name, Status> {
    name.try_into().map_err(|why| Status::invalid_argument(chain(&why.into())))
}

fn unplaced(why: OpenError) -> Status {
    unopened("a bundle", why)
}

fn unopened(device: &str, why: OpenError) -> Status {
    Status::unavailable(format!("opening {device} for a channel: {}", chain(&why)))
}

/// The device from which a server with a given name is reached.
async fn device_for(name: &Name) -> Result<String, Status> {
    let no_way = |why| format!("looking for the way to {name}: {}", chain(&why));
    match Nic::device_towards(name.address()).await {
        Ok(Some(device)) => Ok(device),
        Ok(None) => Err(Status::invalid_argument(format!(
            "which interface leads to {name} can't be told from its name: name the device, as in \
             `Channel::builder().device(\"packet:eth0\")`"
        ))),
        // The name may be known later. It is looked up again by each attempt to connect.
        Err(ConnectError::LookUp(_)) => {
            let host = name.address().trim_start_matches("udp:");
            let at_4791 = host.ends_with(":4791") || !host.contains(':');
            Ok(format!("udp:0.0.0.0:{}", if at_4791 { 4791 } else { 0 }))
        }
        Err(why @ ConnectError::Address(_)) => Err(Status::invalid_argument(no_way(why))),
        Err(why) => Err(Status::unavailable(no_way(why))),
    }
}
