//! Mapping peers: connections that are made, found, taken up and given up.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use doorbell_verbs::{ConnectError, Incoming, Listener};

use super::{Core, ask, ask_within, left, memory};
use crate::buffers::locked;
use crate::endpoint::Policy;
use crate::error::{CallError, MapError, SendError};
use crate::life::User;
use crate::link::Link;
use crate::listing::Difference;
use crate::lookup::learn;
use crate::name::Name;
use crate::refusal::Refusal;
use crate::sizes::Size;
use crate::tag::Tag;
use crate::wire::{Ask, Hello, Nature};

/// How long an answer is waited for by a link that is there already, before a connection is made
/// instead.
const FOUND_PATIENCE: Duration = Duration::from_secs(1);

/// Mapping.
impl Core {
    /// Maps a peer at a place: by the connection that there is, or by a new one.
    pub async fn map(
        self: &Arc<Self>,
        index: usize,
        name: &Name,
        tag: Option<Tag>,
    ) -> Result<Arc<Link>, MapError> {
        let most = self.config.places;
        is_place((index, most), name)?;
        self.is_free(index, name)?;
        let user = self.reach(name, tag).await?;
        let mut table = self.translation.write().unwrap_or_else(PoisonError::into_inner);
        put(&mut table, (index, most), name, user)
    }

    /// Maps a peer at the first place that is free, and learns what its named handlers are.
    pub async fn map_anywhere(
        self: &Arc<Self>,
        name: &Name,
        tag: Option<Tag>,
    ) -> Result<Arc<Link>, MapError> {
        if let Some(link) = self.connected_to(name, tag) {
            return Ok(link);
        }
        let user = self.reach(name, tag).await?;
        let lost = |why| MapError::Lost { name: name.to_string(), why };
        learn(user.link(), self.config.deadline).await.map_err(lost)?;
        let mut table = self.translation.write().unwrap_or_else(PoisonError::into_inner);
        let is_free =
            |place: &Option<Arc<Link>>| place.as_ref().is_none_or(|link| link.ending().is_some());
        let index = table.iter().position(is_free).unwrap_or(table.len());
        put(&mut table, (index, self.config.places), name, user)
    }

    /// The link by which a peer of that name is mapped, if it stands and shows the same tag, and
    /// what the peer's named handlers are is known.
    fn connected_to(&self, name: &Name, tag: Option<Tag>) -> Option<Arc<Link>> {
        let table = self.translation.read().unwrap_or_else(PoisonError::into_inner);
        let mut there = table.iter().flatten().filter(|link| {
            link.is_named(name) && link.names().is_some() && link.ending().is_none()
        });
        // Whoever becomes a user for a moment has the tag looked at.
        there.find(|link| User::of(link, tag).is_some()).cloned()
    }

    /// A link to a peer: the one that there is, or a new one.
    async fn reach(self: &Arc<Self>, name: &Name, tag: Option<Tag>) -> Result<User, MapError> {
        if self.config.policy == Policy::PerSize {
            return self.connect_per_size(name, tag).await;
        }
        match self.find(name, tag).await? {
            Some(user) => Ok(user),
            None => self.connect_alike(name, tag, Size::Any).await,
        }
    }

    /// Uses a link to the peer that is there already, and shows the tag there. `None` if there is
    /// none, the link ended meanwhile, or the peer does not answer soon, because its handlers hold
    /// all credits or a thread: a new connection needs none of those, and shows whether the peer is
    /// still there.
    async fn find(&self, name: &Name, tag: Option<Tag>) -> Result<Option<User>, MapError> {
        let Some(user) = self.user_of(name, tag) else { return Ok(None) };
        user.link().is_to(name);
        let alike = match self.show(user.link(), name, tag).await {
            Ok(()) => self.compare(user.link(), name, Some(FOUND_PATIENCE)).await,
            Err(why) => Err(why),
        };
        match alike {
            Ok(()) => Ok(Some(user)),
            Err(MapError::Lost { why: CallError::Deadline { .. }, .. }) => Ok(None),
            Err(MapError::Lost { .. }) if user.link().ending().is_some() => Ok(None),
            Err(why) => Err(why),
        }
    }

    /// Becomes a user of a link to an endpoint that takes one with that tag, if nobody else can
    /// have the endpoint's name.
    fn user_of(&self, name: &Name, tag: Option<Tag>) -> Option<User> {
        let is = |peer: &Nature| peer.unique && peer.service == name.service().0;
        let there = |link: &&Arc<Link>| link.peer().is_some_and(is) && link.ending().is_none();
        let links = locked(&self.links);
        links.iter().flatten().filter(there).find_map(|link| User::of(link, tag))
    }

    /// Makes a connection to a peer, and a link of which this is the first user.
    async fn connect(
        self: &Arc<Self>,
        name: &Name,
        tag: Option<Tag>,
        size: Size,
    ) -> Result<User, MapError> {
        let text = || name.to_string();
        let no_room = |why| MapError::NoRoom { name: text(), why };
        let (unconnected, fresh) = self.prepare(size).await.map_err(no_room)?;
        let hello = self.hello(tag, &fresh.link).to_bytes();
        let connected = unconnected.connect(name.address(), name.service(), &hello).await;
        let refused = |why| match why {
            ConnectError::Refused { ref private, .. } => match Refusal::from_private(private) {
                Some(Refusal::Tag) => MapError::Tag { name: text(), shown: tag },
                Some(why) => MapError::Refused { name: text(), why: why.text() },
                None => MapError::Connect { name: text(), why },
            },
            why => MapError::Connect { name: text(), why },
        };
        let (queues, private) = connected.map_err(refused)?;
        let hello = Hello::from_bytes(&private).filter(|hello| hello.size == size);
        let hello = hello.ok_or_else(|| MapError::NoEndpoint(text()))?;
        // Before others can find it.
        let user = User::of(&fresh.link, tag).expect("nobody has used the link before");
        fresh.link.hears(hello);
        fresh.link.is_to(name);
        self.opens(&fresh.stays(), queues);
        Ok(user)
    }

    /// Makes a connection to a peer that has the same handlers, as far as both have them.
    async fn connect_alike(
        self: &Arc<Self>,
        name: &Name,
        tag: Option<Tag>,
        size: Size,
    ) -> Result<User, MapError> {
        let user = self.connect(name, tag, size).await?;
        let within = self.config.deadline.unwrap_or(self.config.patience);
        self.compare(user.link(), name, Some(within)).await?;
        Ok(user)
    }

    /// Makes three connections, one for each size of messages.
    async fn connect_per_size(
        self: &Arc<Self>,
        name: &Name,
        tag: Option<Tag>,
    ) -> Result<User, MapError> {
        let long = self.connect_alike(name, tag, Size::Long).await?;
        let [short, medium] = Size::LESS;
        let short = self.connect(name, tag, short).await?;
        let medium = self.connect(name, tag, medium).await?;
        long.link().has_lanes([short, medium].map(User::stays));
        Ok(long)
    }

    /// Shows a peer a tag, or none, from now on, and hears where payloads may be placed.
    async fn show(&self, link: &Arc<Link>, name: &Name, tag: Option<Tag>) -> Result<(), MapError> {
        let words = [Ask::Show as u64, tag.map_or(0, |Tag(tag)| tag)];
        let words = &words[..1 + usize::from(tag.is_some())];
        let lost = |why| MapError::Lost { name: name.to_string(), why };
        let reply = ask_within(link, words, &[], Some(FOUND_PATIENCE)).await.map_err(lost)?;
        let segment = memory(reply.words());
        let refused = || MapError::Tag { name: name.to_string(), shown: tag };
        link.out().segment = segment.ok_or_else(refused)?;
        Ok(())
    }

    /// Makes sure that a peer has the same handlers, as far as both have them. Each of its answers
    /// is waited for no longer than that.
    async fn compare(
        &self,
        link: &Arc<Link>,
        name: &Name,
        within: Option<Duration>,
    ) -> Result<(), MapError> {
        if link.has_same_handlers() {
            return Ok(());
        }
        for piece in &self.listing {
            let answer = ask_within(link, &[Ask::Compare as u64], piece, within).await;
            let lost = |why| MapError::Lost { name: name.to_string(), why };
            if let Some(found) = Difference::from_bytes(answer.map_err(lost)?.payload()) {
                let Difference { which, index, name: there } = found;
                return Err(MapError::Handlers {
                    name: name.to_string(),
                    table: which.name(),
                    index,
                    there,
                });
            }
        }
        Ok(())
    }

    /// Fails if somebody is at a place who has not gone.
    fn is_free(&self, index: usize, name: &Name) -> Result<(), MapError> {
        match self.place(index) {
            Some(there) if there.ending().is_none() => Err(taken(index, name, &there)),
            _ => Ok(()),
        }
    }

    /// Whom a message to a place goes to.
    #[inline]
    pub fn place(&self, index: usize) -> Option<Arc<Link>> {
        let table = self.translation.read().unwrap_or_else(PoisonError::into_inner);
        table.get(index)?.clone()
    }
}

/// Fails if a translation table of so many places does not have a place.
fn is_place((index, most): (usize, usize), name: &Name) -> Result<(), MapError> {
    if index < most {
        return Ok(());
    }
    Err(MapError::Place { name: name.to_string(), index, most })
}

/// Puts a peer at a place of a translation table of so many places.
fn put(
    table: &mut Vec<Option<Arc<Link>>>,
    (index, most): (usize, usize),
    name: &Name,
    user: User,
) -> Result<Arc<Link>, MapError> {
    is_place((index, most), name)?;
    if table.len() <= index {
        table.resize(index + 1, None);
    }
    match &mut table[index] {
        Some(there) if there.ending().is_none() => Err(taken(index, name, there)),
        // Of a link that is over, nobody counts the users.
        free => Ok(free.insert(user.stays()).clone()),
    }
}

/// Unmapping.
impl Core {
    /// Takes a peer off its place, and waits until what was sent there is handled, as long as that
    /// takes. If that leaves the link without users on both sides, the connection ends.
    pub async fn unmap(&self, index: usize) -> Result<(), SendError> {
        let link = {
            let mut table = self.translation.write().unwrap_or_else(PoisonError::into_inner);
            table.get_mut(index).and_then(Option::take).ok_or(SendError::NotMapped(index))?
        };
        match User::that_stayed(link.clone()).leave() {
            Some(asks) => drop(asks.await),
            // The link has other users, and stays.
            None => settle(&link).await,
        }
        Ok(())
    }

    /// Takes the peer of a link off all its places.
    pub async fn unmap_link(&self, link: &Arc<Link>) -> Result<(), SendError> {
        let places = self.translation.read().unwrap_or_else(PoisonError::into_inner).len();
        let mut found = false;
        for index in 0..places {
            if self.place(index).is_some_and(|there| Arc::ptr_eq(&there, link)) {
                found |= self.unmap(index).await.is_ok();
            }
        }
        if found { Ok(()) } else { Err(SendError::NotConnected { peer: link.peer_text() }) }
    }

    /// Takes all peers off. That others take one off meanwhile is all the same.
    pub async fn unmap_all(&self) {
        let places = self.translation.read().unwrap_or_else(PoisonError::into_inner).len();
        for index in 0..places {
            let _ = self.unmap(index).await;
        }
        // Some may go on whose future was dropped.
        for link in self.all().iter().filter(|link| link.life.is_asking()) {
            settle(link).await;
        }
    }

    /// Asks the peer at the end of a link that has lost its last user on this side whether the link
    /// may end, and ends it then. What was sent there before is handled by then, for the peer
    /// answers in turn.
    pub async fn ask_to_end(&self, link: &Arc<Link>) {
        let mut in_use = false;
        for link in link.lanes().iter().chain([link]) {
            let answer = ask(link, &[Ask::Leave as u64], &[]).await;
            in_use = answer.is_ok_and(|reply| reply.words().eq([1]));
        }
        if !link.life.is_answered(in_use) {
            return;
        }
        for link in link.lanes().iter().chain([link]) {
            let ended = link.connection.disconnect(&[]).await;
            self.ends(link, ended.unwrap_or(left()));
        }
    }
}

fn taken(index: usize, name: &Name, there: &Link) -> MapError {
    MapError::Taken { name: name.to_string(), index, there: there.peer_text().into() }
}

/// Waits until a peer has handled what was sent to it by a link, or has gone. It answers a question
/// in its turn, behind what was sent before.
pub(crate) async fn settle(link: &Arc<Link>) {
    for link in link.lanes().iter().chain([link]) {
        // An empty listing is compared with success, so the answer says only that its turn has
        // come.
        let _ = ask(link, &[Ask::Compare as u64], &[]).await;
    }
}

/// Being mapped.
impl Core {
    /// What this endpoint says of itself when a connection is made, and the tag that it shows.
    fn hello(&self, tag: Option<Tag>, link: &Link) -> Hello {
        let nature = Nature {
            // A link for messages of one size does not serve a map of the other side.
            unique: self.config.service.is_none() && link.size == Size::Any,
            metadata: true,
            service: self.name.service().0,
            credits: link.grants() as u16,
            limit: link.limit() as u16,
            payload: link.payload() as u32,
            patience: u32::try_from(self.config.patience.as_millis()).unwrap_or(u32::MAX),
        };
        let segment = self.segment_for(link);
        Hello { size: link.size, tag, segment, handlers: self.digest, nature }
    }

    async fn accept(self: Arc<Self>, incoming: Incoming) {
        let refuse = |incoming: Incoming, why: Refusal| {
            tracing::debug!(%why, "a peer is refused");
            let _ = incoming.reject(why.text().as_bytes());
        };
        let Some(hello) = Hello::from_bytes(incoming.private()) else {
            return refuse(incoming, Refusal::NoHello);
        };
        if (hello.size == Size::Any) == (self.config.policy == Policy::PerSize) {
            return refuse(incoming, Refusal::Policy);
        }
        if !self.admits().admits(hello.tag) {
            return refuse(incoming, Refusal::Tag);
        }
        let Ok((unconnected, fresh)) = self.prepare(hello.size).await else {
            return refuse(incoming, Refusal::NoRoom);
        };
        // Whoever maps the peer from here on finds this, and no second connection is made.
        fresh.link.hears(hello);
        let hello = self.hello(None, &fresh.link).to_bytes();
        match unconnected.accept(incoming, &hello).await {
            Ok((queues, _)) => self.opens(&fresh.stays(), queues),
            Err(why) => tracing::debug!(qpn = %fresh.link.qpn(), %why, "a peer was not accepted"),
        }
    }
}

/// Takes up whoever maps the endpoint.
pub(crate) async fn accept(core: Arc<Core>, mut listener: Listener) {
    loop {
        let incoming = listener.accept().await;
        core.shared.runtime.spawn(core.clone().accept(incoming));
    }
}
