//! Endpoints: opened on a bundle, connected to peers, and closed.
//!
//! The folder is told what a program wants of an endpoint. It makes links and ends them, keeps the
//! translation table, recalls receives from idle peers, and tells the progress engine and the
//! program what has become of which peer.

mod builder;
mod closing;
mod connecting;
mod core;
mod ending;
mod event;
mod mapping;
mod owner;
mod preparing;
mod recall;
mod refusals;
mod resting;
mod unmapping;
mod user;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use doorbell_verbs::{Name, NameError, Region, RegisterError, Registered, Rights};
use tokio::sync::broadcast;
use tokio::task::JoinSet;
use tokio::time::Instant;

use self::connecting::accept;
use self::core::Core;
use crate::arguments::Arguments;
use crate::config::EndpointConfig;
use crate::error::{CallError, Called, CloseError, ConnectError, OpenError, SendError};
use crate::handlers::Tables;
use crate::kinds::{Callable, Notice, RequestId};
use crate::peer::Peer;
use crate::progress::Bundle;
use crate::wire::{Admits, Tag};
pub use builder::EndpointBuilder;
pub use event::Event;

/// A set of handlers with a name, from which requests are sent and to which they come.
///
/// Clones are handles to the same endpoint. A program that is to end [closes](Self::close) the
/// endpoint, which waits until peers have handled what was sent to them. When the last handle is
/// dropped instead, or the runtime ends in which the bundle was made, what was sent goes on to
/// peers in the background, for [a second](EndpointConfig::linger) at most.
#[derive(Clone)]
pub struct Endpoint(Arc<Place>);

/// The owner of an endpoint's state, which closes the endpoint when it is dropped.
struct Place {
    core: Arc<Core>,
    /// The tasks that end with the endpoint.
    _tasks: JoinSet<()>,
    /// Dropped behind the endpoint, which the bundle serves until then.
    bundle: Bundle,
}

impl Endpoint {
    /// Opens an endpoint on a bundle.
    async fn open_in(
        bundle: Bundle,
        handlers: Tables,
        config: EndpointConfig,
    ) -> Result<Self, OpenError> {
        config.check()?;
        let payload = config.payload.next_multiple_of(8);
        let config = EndpointConfig { payload, ..config };
        let (core, listener) = Core::open(bundle.engine().clone(), handlers, config).await?;
        let (runtime, mut tasks) = (&core.local.runtime, JoinSet::new());
        if let Some(listener) = listener {
            tasks.spawn_on(accept(core.clone(), listener), runtime);
        }
        Ok(Self(Arc::new(Place { core, _tasks: tasks, bundle })))
    }

    /// Returns the endpoint's name, by which peers map and connect to it.
    pub fn name(&self) -> &Name {
        &self.0.core.name
    }

    /// Returns which peers the endpoint admits.
    pub fn admits(&self) -> Admits {
        self.0.core.local.admits()
    }

    /// Changes which peers the endpoint admits, from the next message on that is handled. Requests
    /// of peers that are not admitted any more go back as
    /// [`WrongTag`](crate::Undeliverable::WrongTag). A peer that was told where the
    /// [segment](EndpointConfig::segment) is may go on writing there. Messages of a peer that has
    /// gone by now are handled as the peer was admitted before.
    pub fn set_admits(&self, admits: impl Into<Admits>) {
        self.0.core.set_admits(admits.into());
    }

    /// Subscribes to the endpoint's events: peers that come and go from here on. A program that
    /// does not take them loses the oldest, beyond 256, or fewer if few can come and go. The events
    /// end with the endpoint, or when its [NIC is closed](doorbell_verbs::Nic::close).
    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.0.core.events()
    }

    /// Returns the endpoint's [patience](EndpointConfig::patience). For layers of this workspace that
    /// stand on Active Messages.
    #[doc(hidden)]
    pub fn patience(&self) -> Duration {
        self.0.core.local.config.patience
    }

    /// Returns the NIC that the endpoint's bundle is on. For layers of this workspace that stand on
    /// Active Messages.
    #[doc(hidden)]
    pub fn nic(&self) -> &doorbell_verbs::Nic {
        &self.0.core.engine.nic
    }

    /// Returns a function that gives the peers that the endpoint is connected to, whichever side has
    /// connected, or that are being connected. The function does not keep the endpoint. For layers
    /// of this workspace that stand on Active Messages.
    #[doc(hidden)]
    pub fn peers_later(&self) -> impl Fn() -> Vec<Peer> + Send + use<> {
        let core = Arc::downgrade(&self.0.core);
        move || {
            let links = core.upgrade().map(|core| core.links()).unwrap_or_default();
            links.into_iter().map(Peer::of).collect()
        }
    }

    /// Returns the bundle that serves the endpoint.
    pub fn bundle(&self) -> Bundle {
        self.0.bundle.clone()
    }

    /// Registers memory, parts of which can then be [placed](Peer::place) at peers without a copy.
    ///
    /// # Errors
    /// When there are as many registrations as the NIC has room for.
    pub fn register(&self, region: Region) -> Result<Registered, RegisterError> {
        self.0.core.domain.register(region, Rights::LOCAL_WRITE)
    }

    /// Returns the most receives that the endpoint ever had. They are never more than the requests
    /// that its peers may have under way to it, and it to them, and one.
    pub fn most_receives(&self) -> usize {
        self.0.core.most_receives()
    }

    /// Returns the memory in which peers may place payloads.
    pub fn segment(&self) -> Option<&Registered> {
        self.0.core.local.segment.as_ref()
    }

    /// Maps a peer at a place of the translation table. Requests may be sent there until the place
    /// is [unmapped](Self::unmap) or the peer has gone, whatever is mapped and unmapped at other
    /// places meanwhile. Handlers that both sides have at the same place must be the same.
    ///
    /// If there is a connection to the peer, because the peer has mapped this endpoint, or this
    /// endpoint maps the peer by the same tag elsewhere, the connection serves all of them.
    /// Otherwise a new one is made. If the NIC has no queue pair left because the numbers of
    /// connections that are over [rest](doorbell_verbs::Config::time_wait), this waits until one
    /// has rested, for up to 5 s.
    ///
    /// If the future is dropped, nothing is mapped.
    ///
    /// The tag is the one by which the peer [admits](EndpointConfig::admits) this endpoint: a
    /// [`Tag`], or `None` for an endpoint that admits everybody. It holds for every message that is
    /// sent there.
    ///
    /// # Errors
    /// When the peer is not reached, is no endpoint, does not admit the tag, or has other handlers,
    /// or a peer is mapped at that place already.
    pub async fn map(
        &self,
        index: usize,
        name: &Name,
        tag: impl Into<Option<Tag>>,
    ) -> Result<Peer, ConnectError> {
        self.0.core.map(index, name, tag.into()).await.map(Peer::of)
    }

    /// Connects to a peer: maps it at the first free place of the translation table, and learns
    /// which handlers it has. If the peer is connected already, this returns another handle to it.
    /// The peer stays connected until [`Peer::disconnect`], or until the endpoint is dropped,
    /// whatever handles to the peer there are. The endpoint shows the tag of its
    /// [configuration](EndpointConfig::shows), if there is one.
    ///
    /// The name is that of the peer's [`name`](Self::name), as a [`Name`] or as text.
    ///
    /// ```no_run
    /// # use doorbell_am::{Endpoint, ConnectError};
    /// # async fn connects(endpoint: Endpoint) -> Result<(), ConnectError> {
    /// let peer = endpoint.connect("udp:node7:5000#2a").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`map`](Self::map), and when the text is no name.
    pub async fn connect<N>(&self, name: N) -> Result<Peer, ConnectError>
    where
        N: TryInto<Name>,
        N::Error: Into<NameError>,
    {
        let name = name.try_into().map_err(Into::into)?;
        let tag = self.0.core.local.config.shows;
        self.0.core.map_anywhere(&name, tag).await.map(Peer::of)
    }

    /// Maps one peer after the other, at places in a row.
    ///
    /// # Errors
    /// As for [`map`](Self::map). Peers before the one that failed stay mapped.
    pub async fn map_all<'n>(
        &self,
        from: usize,
        names: impl IntoIterator<Item = &'n Name>,
        tag: impl Into<Option<Tag>>,
    ) -> Result<(), ConnectError> {
        let tag = tag.into();
        for (index, name) in (from..).zip(names) {
            self.map(index, name, tag).await?;
        }
        Ok(())
    }

    /// Takes a peer off the translation table, and waits until the peer has handled what was sent
    /// there before, as long as its handlers take. If the peer is mapped at no other place, and has
    /// not mapped this endpoint either, the connection ends. Requests that kept handles to the peer
    /// send meanwhile come back.
    ///
    /// If the future is dropped, the unmap goes on in the background.
    ///
    /// # Errors
    /// When no peer is mapped at that place.
    pub async fn unmap(&self, index: usize) -> Result<(), SendError> {
        self.0.core.unmap(index).await
    }

    /// Takes all peers off the translation table, one after the other. A program that is to end
    /// awaits this, so that all its requests are handled.
    pub async fn unmap_all(&self) {
        self.0.core.unmap_all().await;
    }

    /// Refuses all peers that would connect from now on, and tells them that the endpoint is
    /// shutting down. Peers that are connected stay, and those that are connecting right now may
    /// still become so.
    pub fn accept_no_more(&self) {
        self.0.core.shuts_down.store(true, Ordering::SeqCst);
    }

    /// Closes the endpoint, once all peers have handled what was sent to them before: handlers have
    /// returned there, and asynchronous ones have begun. Those of notices run to their ends, and
    /// those of calls are given up: a program that wants answers awaits these first. Whoever sends
    /// by another handle meanwhile may be too late. From then on, all handles to the endpoint and to
    /// its peers fail.
    ///
    /// ```
    /// use doorbell_am::{Endpoint, Handlers, Notice};
    ///
    /// const NEWS: Notice<u64> = Notice::new("news");
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let reader = Endpoint::open("shm", Handlers::new().on(NEWS, |_, _| {})).await?;
    /// # let name = reader.name();
    /// let endpoint = Endpoint::open("shm", Handlers::new()).await?;
    /// endpoint.connect(name).await?.notify(NEWS, 7).await?;
    /// endpoint.close().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When a peer ends the connection before it has handled everything, has died while requests to
    /// it were not answered, or does not handle everything within the endpoint's
    /// [patience](EndpointConfig::patience). The endpoint is closed all the same, and the error names
    /// the peers.
    ///
    /// If the future is dropped, the endpoint stays open, and takes no new peers.
    pub async fn close(&self) -> Result<(), CloseError> {
        self.close_until(Instant::now() + self.patience()).await
    }

    /// Closes the endpoint as [`close`](Self::close) does, and waits for peers until another time.
    /// For layers of this workspace that stand on Active Messages.
    #[doc(hidden)]
    pub async fn close_until(&self, until: Instant) -> Result<(), CloseError> {
        self.0.core.close_in_order(until).await
    }

    /// Returns the peer that is mapped at a place.
    ///
    /// # Errors
    /// When no peer is mapped at that place.
    #[inline]
    pub fn peer(&self, index: usize) -> Result<Peer, SendError> {
        self.0.core.place(index).map(Peer::of).ok_or(SendError::NotMapped(index))
    }

    /// Sends a request to the peer at a place: see [`Peer::request`].
    ///
    /// # Errors
    /// As for a [`Peer`], and when no peer is mapped at that place.
    #[inline]
    pub async fn request<A: Arguments>(
        &self,
        to: usize,
        id: RequestId<A>,
        arguments: A,
    ) -> Result<(), SendError> {
        self.peer(to)?.request(id, arguments).await
    }

    /// Sends a request with a payload to the peer at a place: see [`Peer::request_with`].
    ///
    /// # Errors
    /// As for a [`Peer`], and when no peer is mapped at that place.
    #[inline]
    pub async fn request_with<A: Arguments>(
        &self,
        to: usize,
        id: RequestId<A>,
        arguments: A,
        payload: impl AsRef<[u8]>,
    ) -> Result<(), SendError> {
        self.peer(to)?.request_with(id, arguments, payload).await
    }

    /// Sends a notice to the peer at a place: see [`Peer::notify`].
    ///
    /// # Errors
    /// As for a [`Peer`], and when no peer is mapped at that place.
    #[inline]
    pub async fn notify<A: Arguments>(
        &self,
        to: usize,
        notice: Notice<A>,
        arguments: A,
    ) -> Result<(), SendError> {
        self.peer(to)?.notify(notice, arguments).await
    }

    /// Calls a handler of the peer at a place: see [`Peer::call`].
    ///
    /// # Errors
    /// As for a [`Peer`], and when no peer is mapped at that place.
    #[inline]
    pub async fn call<K: Callable>(
        &self,
        to: usize,
        kind: K,
        arguments: K::Arguments,
    ) -> Result<K::Answer, CallError> {
        match self.peer(to) {
            Ok(peer) => peer.call(kind, arguments).await,
            Err(why) => {
                let call = Called::new(format!("place {to}").into(), kind.index(), kind.name());
                Err(CallError::NotSent { call, why })
            }
        }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("name", &format_args!("{}", self.name())).finish()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.core.close();
    }
}
