//! Opening endpoints, with settings that differ from the defaults.

use std::time::Duration;

use doorbell_verbs::{Config, KeepAlive, Name, NameError, Nic};

use super::Endpoint;
use crate::config::{BundleConfig, EndpointConfig, Flow, Policy, SegmentMemory};
use crate::error::OpenError;
use crate::handlers::Handlers;
use crate::progress::Bundle;
use crate::wire::{Admits, Tag};

/// A builder of endpoints. Every setting has a default, and [`open`](Self::open) opens the
/// endpoint.
///
/// ```
/// use std::time::Duration;
///
/// use doorbell_am::{Endpoint, Handlers, Tag};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let endpoint = Endpoint::builder()
///     .tag(Tag(42))
///     .deadline(Duration::from_secs(2))
///     .payload(64 << 10)
///     .open("shm", Handlers::new())
///     .await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default, Debug)]
#[must_use = "nothing is open before `open`"]
pub struct EndpointBuilder {
    endpoint: EndpointConfig,
    bundle: BundleConfig,
    nic: Config,
}

impl Endpoint {
    /// Opens an endpoint with the default [settings](Self::builder), on a NIC and a bundle of its
    /// own. When the last handle to the endpoint and to its [bundle](Self::bundle) is dropped, the
    /// device is closed, and its address can be opened again at once. Only if a handler drops the
    /// last handle, the runtime closes the device, since the handler may hold the NIC.
    ///
    /// The device is `shm` for processes of the same machine, `udp:192.0.2.7` or a host's name for
    /// any network, `packet:eth0` or `packet-v2:eth0` for raw Ethernet: see
    /// [`Nic::open`](doorbell_verbs::Nic::open).
    ///
    /// ```
    /// use doorbell_am::{Call, Endpoint, Handlers};
    ///
    /// const ADD: Call<(u64, u64), u64> = Call::new("add");
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let adds = Handlers::new().on(ADD, |_, (a, b)| a + b);
    /// let server = Endpoint::open("shm", adds).await?;
    /// let client = Endpoint::open("shm", Handlers::new()).await?;
    /// let peer = client.connect(server.name()).await?;
    /// assert_eq!(peer.call(ADD, (2, 3)).await?, 5);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the device can't be opened.
    pub async fn open<S>(device: &str, handlers: Handlers<S>) -> Result<Self, OpenError> {
        Self::builder().open(device, handlers).await
    }

    /// Opens an endpoint that is a client of a peer, with the default settings: see
    /// [`EndpointBuilder::open_towards`].
    ///
    /// # Errors
    /// As [`EndpointBuilder::open_towards`].
    pub async fn open_towards<S>(
        peer: impl TryInto<Name, Error: Into<NameError>>,
        handlers: Handlers<S>,
    ) -> Result<Self, OpenError> {
        Self::builder().open_towards(peer, handlers).await
    }

    /// Opens an endpoint on a NIC that is open, with a [bundle](Self::bundle) of its own.
    ///
    /// # Errors
    /// When the NIC has no room for the endpoint.
    pub async fn on<S>(nic: &Nic, handlers: Handlers<S>) -> Result<Self, OpenError> {
        Self::builder().on(nic, handlers).await
    }

    /// Opens an endpoint on a bundle, beside other endpoints of its NIC.
    ///
    /// # Errors
    /// When the NIC has no room for the endpoint.
    pub async fn on_bundle<S>(bundle: &Bundle, handlers: Handlers<S>) -> Result<Self, OpenError> {
        Self::builder().on_bundle(bundle, handlers).await
    }

    /// Makes a builder, by which an endpoint is configured and opened.
    pub fn builder() -> EndpointBuilder {
        EndpointBuilder::default()
    }
}

impl EndpointBuilder {
    /// Sets the number by which peers know the endpoint at its NIC's address, so that its
    /// [name](Endpoint::name) is the same whenever it is opened. Without it, the number is one that
    /// nobody can guess.
    pub fn service(self, service: u64) -> Self {
        self.with(|config| config.service = Some(service))
    }

    /// Sets the tag of a group of endpoints. The endpoint admits peers that prove that they know the
    /// tag, and [connects](Endpoint::connect) to no others. The tag never goes over the network. A
    /// tag that is to keep strangers out is [drawn](Tag).
    pub fn tag(self, tag: Tag) -> Self {
        self.with(|config| (config.admits, config.shows) = (tag.into(), Some(tag)))
    }

    /// Sets which peers the endpoint [admits](EndpointConfig::admits); all of them by default.
    pub fn admits(self, admits: impl Into<Admits>) -> Self {
        let admits = admits.into();
        self.with(|config| config.admits = admits)
    }

    /// Sets how many messages each peer may have [under way](EndpointConfig::credits) to the
    /// endpoint, from the first one on. By default it is eight [at first](Self::first_credits), and
    /// up to 256 for a peer that uses them.
    pub fn credits(self, credits: usize) -> Self {
        self.with(|config| (config.credits, config.first_credits) = (credits, credits))
    }

    /// Sets how many of its [credits](Self::credits) a new peer has; it [gets
    /// more](EndpointConfig::first_credits) as it uses them.
    pub fn first_credits(self, credits: usize) -> Self {
        self.with(|config| config.first_credits = credits)
    }

    /// Sets the most [receives](EndpointConfig::first_receives) that a new peer has before it sends
    /// anything; as many as its first credits by default.
    pub fn first_receives(self, receives: usize) -> Self {
        self.with(|config| config.first_receives = receives)
    }

    /// Sets the longest [payload](EndpointConfig::payload) of a message; 4096 bytes by default.
    pub fn payload(self, bytes: usize) -> Self {
        self.with(|config| config.payload = bytes)
    }

    /// Sets the memory in which peers may [place](crate::Peer::place) payloads; none by default.
    pub fn segment(self, segment: impl Into<SegmentMemory>) -> Self {
        let segment = segment.into();
        self.with(|config| config.segment = Some(segment))
    }

    /// Sets the most [asynchronous handlers](EndpointConfig::tasks) that are under way at a time;
    /// 65,536 by default.
    pub fn tasks(self, tasks: usize) -> Self {
        self.with(|config| config.tasks = tasks)
    }

    /// Sets the most bytes that the requests of asynchronous handlers
    /// [keep](EndpointConfig::task_memory); 64 MiB by default.
    pub fn task_memory(self, bytes: usize) -> Self {
        self.with(|config| config.task_memory = bytes)
    }

    /// Sets the most [peers](EndpointConfig::places) that the endpoint maps; 1024 by default.
    pub fn places(self, places: usize) -> Self {
        self.with(|config| config.places = places)
    }

    /// Sets the most [receives](EndpointConfig::receives), which bounds the memory that messages
    /// take; 4096 by default.
    pub fn receives(self, receives: usize) -> Self {
        self.with(|config| config.receives = receives)
    }

    /// Sets the number of [peers](EndpointConfig::peers) for each of which there is a receive
    /// beside the [`receives`](Self::receives); none by default.
    pub fn peers(self, peers: usize) -> Self {
        self.with(|config| config.peers = peers)
    }

    /// Sets whether peers may [connect](EndpointConfig::listens) to the endpoint, which is so by
    /// default.
    pub fn listens(self, listens: bool) -> Self {
        self.with(|config| config.listens = listens)
    }

    /// Sets how long handlers of peers have to [answer](EndpointConfig::patience) what this
    /// endpoint sends; half a minute by default.
    pub fn patience(self, patience: Duration) -> Self {
        self.with(|config| config.patience = patience)
    }

    /// Sets how long calls wait for their [answers](EndpointConfig::deadline), unless
    /// [`Peer::within`](crate::Peer::within) says otherwise; as long as the patience by default.
    pub fn deadline(self, deadline: Duration) -> Self {
        self.with(|config| config.deadline = Some(deadline))
    }

    /// Sets how long messages [go on](EndpointConfig::linger) to peers once the endpoint is dropped;
    /// a second by default.
    pub fn linger(self, linger: Duration) -> Self {
        self.with(|config| config.linger = linger)
    }

    /// Sets the [policy](Policy) by which messages travel.
    pub fn policy(self, policy: Policy) -> Self {
        self.with(|config| config.policy = policy)
    }

    /// Sets the [flow control](Flow) that keeps peers from sending too much.
    pub fn flow(self, flow: Flow) -> Self {
        self.with(|config| config.flow = flow)
    }

    /// Replaces the whole configuration of the endpoint.
    pub fn config(self, endpoint: EndpointConfig) -> Self {
        Self { endpoint, ..self }
    }

    /// Sets the configuration of the bundle that [`open`](Self::open) makes.
    pub fn bundle(self, bundle: BundleConfig) -> Self {
        Self { bundle, ..self }
    }

    /// Sets the configuration of the NIC that [`open`](Self::open) opens.
    pub fn nic(self, nic: Config) -> Self {
        Self { nic, ..self }
    }

    fn with(mut self, set: impl FnOnce(&mut EndpointConfig)) -> Self {
        set(&mut self.endpoint);
        self
    }

    /// Sets whether the NIC that [`open`](Self::open) opens hears
    /// [strangers](doorbell_verbs::Config::strangers) on `udp`; it does by default. A client's need
    /// not.
    pub fn strangers(self, strangers: bool) -> Self {
        Self { nic: Config { strangers, ..self.nic }, ..self }
    }

    /// Sets how long a peer may be silent before the connection to it ends, whether a task waits
    /// for the peer or not: both times of [`KeepAlive`] of the NIC that [`open`](Self::open) opens.
    /// By default these are a second for a peer that a task waits for, and half a minute for
    /// others.
    pub fn keep_alive(self, time: Duration) -> Self {
        let keep_alive = KeepAlive { idle: time, busy: time };
        Self { nic: Config { keep_alive, ..self.nic }, ..self }
    }

    /// Opens the endpoint, with a NIC of its own on a [device](Nic::open).
    ///
    /// # Errors
    /// When the device can't be opened, or the configuration is not valid.
    pub async fn open<S>(self, device: &str, handlers: Handlers<S>) -> Result<Endpoint, OpenError> {
        let bundle = self.open_bundle(device).await?;
        self.on_bundle(&bundle, handlers).await
    }

    /// Opens the endpoint on the device by which a peer is [reached](Nic::device_towards), with a
    /// NIC that hears no [strangers](Self::strangers), for a client of that peer. On `udp` that is
    /// a port at the address from which the system's route leads there: a client of a peer at a
    /// loopback address can't be reached from other machines. The endpoint is not connected yet,
    /// and may connect to further peers from there.
    ///
    /// # Errors
    /// When the name is malformed, its host is not known, no route leads there, or the device is a
    /// raw one, of which the interface has to be named; and as [`open`](Self::open).
    pub async fn open_towards<S>(
        self,
        peer: impl TryInto<Name, Error: Into<NameError>>,
        handlers: Handlers<S>,
    ) -> Result<Endpoint, OpenError> {
        let peer: Name = peer.try_into().map_err(Into::into)?;
        let towards = Nic::device_towards(peer.address()).await;
        let device = towards
            .map_err(|why| OpenError::Towards { name: peer.to_string(), why: Box::new(why) })?;
        let device = device.ok_or_else(|| OpenError::Interface { name: peer.to_string() })?;
        self.strangers(false).open(&device, handlers).await
    }

    /// Returns the configurations of the NIC and of the bundle that [`open`](Self::open) makes. For
    /// layers of this workspace that share a NIC among endpoints.
    #[doc(hidden)]
    pub fn shared_parts(&self) -> (&Config, &BundleConfig) {
        (&self.nic, &self.bundle)
    }

    /// Opens a device, and makes the bundle on which the endpoint is to be
    /// [opened](Self::on_bundle). For layers of this workspace that need the NIC for more.
    #[doc(hidden)]
    pub async fn open_bundle(&self, device: &str) -> Result<Bundle, OpenError> {
        let nic = Nic::builder().config(self.nic.clone()).open(device).await?;
        Bundle::with_nic(&nic, &self.bundle)
    }

    /// Opens the endpoint on a NIC that is open, with a [bundle](Endpoint::bundle) of its own. The
    /// builder's settings of the NIC do not count.
    ///
    /// # Errors
    /// When the NIC has no room for the endpoint, or the configuration is not valid.
    pub async fn on<S>(self, nic: &Nic, handlers: Handlers<S>) -> Result<Endpoint, OpenError> {
        let bundle = Bundle::new(nic, &self.bundle)?;
        self.on_bundle(&bundle, handlers).await
    }

    /// Opens the endpoint on a bundle, beside other endpoints of its NIC. The builder's settings of
    /// the NIC and of the bundle do not count.
    ///
    /// # Errors
    /// When the service number is taken, the NIC has no room for the endpoint, or the configuration
    /// is not valid.
    pub async fn on_bundle<S>(
        self,
        bundle: &Bundle,
        handlers: Handlers<S>,
    ) -> Result<Endpoint, OpenError> {
        Endpoint::open_in(bundle.clone(), handlers.tables, self.endpoint).await
    }
}
