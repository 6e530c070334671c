//! Endpoints: opened on a bundle, connected to peers, and closed.
//!
//! The folder is told what a program wants of an endpoint. It makes links and ends them, keeps the
//! translation table, recalls receives from idle peers, and tells the progress engine and the
//! program what has become of which peer.

mod builder;
mod connecting;
mod core;
mod ending;
mod event;
mod mapping;
mod owner;
mod preparing;
mod recall;
mod unmapping;
mod user;

use std::fmt;
use std::sync::Arc;

use doorbell_verbs::{Region, RegisterError, Registered, Rights};
use tokio::sync::broadcast;
use tokio::task::JoinSet;

use self::connecting::accept;
use self::core::Core;
use self::ending::watch;
use crate::arguments::Arguments;
use crate::config::EndpointConfig;
use crate::error::{CallError, Called, MapError, OpenError, SendError};
use crate::handlers::{Handlers, Tables};
use crate::kinds::{Callable, Notice, RequestId};
use crate::name::{Name, NameError};
use crate::peer::Peer;
use crate::progress::Bundle;
use crate::wire::{Admits, Tag};
pub use builder::EndpointBuilder;
pub use event::Event;

/// A place from which requests are sent, and to which they come.
///
/// Clones are handles to the same. When the last is dropped, it is closed, and its peers are told.
/// What was sent and is not answered is lost then, if it was no farther:
/// [`unmap_all`](Self::unmap_all) waits for it.
///
/// An endpoint is closed, too, when the runtime ends in which its bundle was made.
#[derive(Clone)]
pub struct Endpoint(Arc<Place>);

/// What closes an endpoint.
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
        tasks.spawn_on(watch(core.clone(), core.engine.nic.events()), runtime);
        tasks.spawn_on(accept(core.clone(), listener), runtime);
        Ok(Self(Arc::new(Place { core, _tasks: tasks, bundle })))
    }

    /// Its name, by which others map it.
    pub fn name(&self) -> &Name {
        &self.0.core.name
    }

    /// Whom it admits.
    pub fn admits(&self) -> Admits {
        self.0.core.local.admits()
    }

    /// Changes whom it admits, from the next message on that is handled: what comes from peers that
    /// are not admitted any more goes back to them as [`WrongTag`](crate::Undeliverable::WrongTag).
    /// A peer that was told where the [segment](EndpointConfig::segment) is goes on writing there.
    /// What has come of a peer that has gone by now is handled as it was admitted then.
    pub fn set_admits(&self, admits: impl Into<Admits>) {
        self.0.core.set_admits(admits.into());
    }

    /// What happens to it from here on: peers that come and go. Of a program that does not take
    /// them, the oldest of 256 are lost.
    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.0.core.events.subscribe()
    }

    /// The NIC that the endpoint's bundle is on. For layers of this workspace that stand on Active
    /// Messages.
    #[doc(hidden)]
    pub fn nic(&self) -> &doorbell_verbs::Nic {
        &self.0.core.engine.nic
    }

    /// The bundle that serves it.
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

    /// How many receives it had at the most: never more than its peers may have requests under way
    /// to it, and it to them, and one.
    pub fn most_receives(&self) -> usize {
        self.0.core.most_receives()
    }

    /// The memory in which peers may place payloads.
    pub fn segment(&self) -> Option<&Registered> {
        self.0.core.local.segment.as_ref()
    }

    /// Maps a peer at a place of the translation table: requests may be sent there until that place
    /// is [unmapped](Self::unmap) or the peer is gone, whatever is mapped and unmapped elsewhere
    /// meanwhile. The peer's endpoint must have the same handlers, as far as both have them.
    ///
    /// If there is a connection to the peer, because the peer has mapped this endpoint, or this
    /// endpoint maps the peer by the same tag elsewhere, the connection serves all of them.
    /// Otherwise a new one is made. If the NIC has no queue pair left because the numbers of
    /// connections that are over [rest](doorbell_verbs::Config::time_wait), this waits until one
    /// has rested, for up to 5 s.
    ///
    /// A future that is dropped has mapped nothing, and takes nothing from others.
    ///
    /// The tag is what the peer [admits](EndpointConfig::admits) this endpoint by: a [`Tag`], or
    /// `None` for an endpoint that admits everybody. It is shown with every message that is sent
    /// there.
    ///
    /// # Errors
    /// When the peer is not reached, is no endpoint, does not admit the tag, or has other handlers;
    /// or something is mapped there already.
    pub async fn map(
        &self,
        index: usize,
        name: &Name,
        tag: impl Into<Option<Tag>>,
    ) -> Result<Peer, MapError> {
        self.0.core.map(index, name, tag.into()).await.map(Peer::of)
    }

    /// Connects to a peer: maps it at the first place of the translation table that is free, and
    /// learns which handlers it has. A peer that is connected already is not connected to again; it
    /// stays so until [`Peer::disconnect`] or until the endpoint is dropped, whatever handles to it
    /// are. It shows the tag that the endpoint is [configured](EndpointConfig::shows) to show, if
    /// any.
    ///
    /// The name is what the peer's [`name`](Self::name) says, as a [`Name`] or as text.
    ///
    /// ```no_run
    /// # use doorbell::am::{Endpoint, MapError};
    /// # async fn connects(endpoint: Endpoint) -> Result<(), MapError> {
    /// let peer = endpoint.connect("udp:node7:5000#2a").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`map`](Self::map), and when the name is none.
    pub async fn connect<N>(&self, name: N) -> Result<Peer, MapError>
    where
        N: TryInto<Name>,
        N::Error: Into<NameError>,
    {
        let name = name.try_into().map_err(|why| MapError::Name(why.into()))?;
        let tag = self.0.core.local.config.shows;
        self.0.core.map_anywhere(&name, tag).await.map(Peer::of)
    }

    /// Maps one peer after the other, at places in a row.
    ///
    /// # Errors
    /// As [`map`](Self::map). Those before are mapped then.
    pub async fn map_all<'n>(
        &self,
        from: usize,
        names: impl IntoIterator<Item = &'n Name>,
        tag: impl Into<Option<Tag>>,
    ) -> Result<(), MapError> {
        let tag = tag.into();
        for (index, name) in (from..).zip(names) {
            self.map(index, name, tag).await?;
        }
        Ok(())
    }

    /// Takes a peer off the translation table, and waits until it has handled what was sent there
    /// before, as long as its handlers take. If the peer is mapped at no other place, and has not
    /// mapped this endpoint either, the connection ends, and what handles to the peer that were
    /// kept send meanwhile comes back.
    ///
    /// Whoever has less time than that drops the future: the unmap goes on in the background.
    ///
    /// # Errors
    /// When none is mapped there.
    pub async fn unmap(&self, index: usize) -> Result<(), SendError> {
        self.0.core.unmap(index).await
    }

    /// Takes all peers off, one after the other: so whoever is to end leaves nothing behind.
    pub async fn unmap_all(&self) {
        self.0.core.unmap_all().await;
    }

    /// The peer that is mapped at a place.
    ///
    /// # Errors
    /// When there is none.
    #[inline]
    pub fn peer(&self, index: usize) -> Result<Peer, SendError> {
        self.0.core.place(index).map(Peer::of).ok_or(SendError::NotMapped(index))
    }

    /// Sends a request to the peer at a place: see [`Peer::request`].
    ///
    /// # Errors
    /// As there, and when none is mapped there.
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
    /// As there, and when none is mapped there.
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
    /// As there, and when none is mapped there.
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
    /// As there, and when none is mapped there.
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

impl Bundle {
    /// Adds an endpoint.
    ///
    /// # Errors
    /// When its name is taken, the NIC has no room for it, or the configuration can't be.
    pub async fn endpoint<S>(
        &self,
        handlers: Handlers<S>,
        config: EndpointConfig,
    ) -> Result<Endpoint, OpenError> {
        Endpoint::open_in(self.clone(), handlers.tables, config).await
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
