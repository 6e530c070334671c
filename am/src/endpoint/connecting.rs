//! Connections to peers: made, found again, and accepted.

use std::sync::Arc;
use std::time::Duration;

use doorbell_verbs::{ConnectError, Incoming, Listener};

use super::core::Core;
use super::user::User;
use crate::config::Policy;
use crate::error::{CallError, MapError};
use crate::handlers::Difference;
use crate::link::Link;
use crate::name::Name;
use crate::peer::ask_within;
use crate::wire::{Ask, Hello, Nature, Refusal, Size, Tag, memory_of_words};

/// The time that an answer is waited for by a link that is there already, before a connection is
/// made instead.
const FOUND_PATIENCE: Duration = Duration::from_secs(1);

impl Core {
    /// Becomes a user of a link to a peer, of one that there is or of a new one.
    pub(super) async fn reach(
        self: &Arc<Self>,
        name: &Name,
        tag: Option<Tag>,
    ) -> Result<User, MapError> {
        if self.local.config.policy == Policy::PerSize {
            return self.connect_per_size(name, tag).await;
        }
        match self.find(name, tag).await? {
            Some(user) => Ok(user),
            None => self.connect_alike(name, tag, Size::Any).await,
        }
    }

    /// Becomes a user of a link to the peer that is there already, and shows the tag there. Returns
    /// `None` if there is no such link, the link has ended meanwhile, or the peer does not answer
    /// soon, because its handlers hold all credits or a thread. A new connection needs neither, and
    /// shows whether the peer is still there.
    async fn find(
        self: &Arc<Self>,
        name: &Name,
        tag: Option<Tag>,
    ) -> Result<Option<User>, MapError> {
        let Some(user) = self.user_of(name, tag) else { return Ok(None) };
        user.link().set_name(name);
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

    /// Becomes a user of a link to an endpoint whose name no other can have, if a link takes a user
    /// with that tag.
    fn user_of(self: &Arc<Self>, name: &Name, tag: Option<Tag>) -> Option<User> {
        let is = |peer: &Nature| peer.unique && peer.service == name.service().0;
        let there = |link: &&Arc<Link>| link.peer().is_some_and(is) && link.ending().is_none();
        self.find_link(|link| there(&link).then(|| User::of(self, link, tag)).flatten())
    }

    /// Makes a connection to a peer, and becomes the first user of its link.
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
        // Before other tasks can find the link.
        let user = User::of(self, &fresh.link, tag).expect("nobody has used the link before");
        fresh.link.greeted(hello);
        fresh.link.set_name(name);
        self.open_link(&fresh.stays(), queues);
        Ok(user)
    }

    /// Makes a connection to a peer, and makes sure that both sides have the same handlers.
    async fn connect_alike(
        self: &Arc<Self>,
        name: &Name,
        tag: Option<Tag>,
        size: Size,
    ) -> Result<User, MapError> {
        let user = self.connect(name, tag, size).await?;
        let within = self.local.config.deadline.unwrap_or(self.local.config.patience);
        self.compare(user.link(), name, Some(within)).await?;
        Ok(user)
    }

    /// Makes three connections to a peer, one for each size class of messages.
    async fn connect_per_size(
        self: &Arc<Self>,
        name: &Name,
        tag: Option<Tag>,
    ) -> Result<User, MapError> {
        let long = self.connect_alike(name, tag, Size::Long).await?;
        let [short, medium] = Size::LESS;
        let short = self.connect(name, tag, short).await?;
        let medium = self.connect(name, tag, medium).await?;
        long.link().set_lanes([short, medium].map(User::stays));
        Ok(long)
    }

    /// Shows a peer a tag, or none, from now on, and learns where payloads may be placed.
    async fn show(&self, link: &Arc<Link>, name: &Name, tag: Option<Tag>) -> Result<(), MapError> {
        let words = [Ask::Show as u64, tag.map_or(0, |Tag(tag)| tag)];
        let words = &words[..1 + usize::from(tag.is_some())];
        let lost = |why| MapError::Lost { name: name.to_string(), why };
        let reply = ask_within(link, words, &[], Some(FOUND_PATIENCE)).await.map_err(lost)?;
        let segment = memory_of_words(reply.words());
        let refused = || MapError::Tag { name: name.to_string(), shown: tag };
        link.send_side().segment = segment.ok_or_else(refused)?;
        Ok(())
    }

    /// Makes sure that handlers which both sides have at the same place are the same. Each answer
    /// of the peer is waited for no longer than `within`.
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

    /// Makes the greeting of this endpoint for a link, with the tag that it shows.
    fn hello(&self, tag: Option<Tag>, link: &Link) -> Hello {
        let nature = Nature {
            // A link for messages of one size does not serve a map of the other side.
            unique: self.local.config.service.is_none() && link.size == Size::Any,
            metadata: true,
            service: self.name.service().0,
            credits: link.grants() as u16,
            limit: link.own_limit() as u16,
            payload: link.payload() as u32,
            patience: u32::try_from(self.local.config.patience.as_millis()).unwrap_or(u32::MAX),
        };
        let segment = link.offered_segment();
        Hello { size: link.size, tag, segment, handlers: self.local.digest, nature }
    }

    /// Accepts or refuses a connection of a peer.
    async fn accept(self: Arc<Self>, incoming: Incoming) {
        let refuse = |incoming: Incoming, why: Refusal| {
            tracing::debug!(%why, "a peer is refused");
            let _ = incoming.reject(why.text().as_bytes());
        };
        let Some(hello) = Hello::from_bytes(incoming.private()) else {
            return refuse(incoming, Refusal::NoHello);
        };
        if (hello.size == Size::Any) == (self.local.config.policy == Policy::PerSize) {
            return refuse(incoming, Refusal::Policy);
        }
        if !self.local.admits().admits(hello.tag) {
            return refuse(incoming, Refusal::Tag);
        }
        let Ok((unconnected, fresh)) = self.prepare(hello.size).await else {
            return refuse(incoming, Refusal::NoRoom);
        };
        // A map of the peer finds this link from here on, and makes no second connection.
        fresh.link.greeted(hello);
        let hello = self.hello(None, &fresh.link).to_bytes();
        match unconnected.accept(incoming, &hello).await {
            Ok((queues, _)) => self.open_link(&fresh.stays(), queues),
            Err(why) => tracing::debug!(qpn = %fresh.link.qpn(), %why, "a peer was not accepted"),
        }
    }
}

/// Accepts connections of peers for as long as the endpoint lives.
pub(super) async fn accept(core: Arc<Core>, mut listener: Listener) {
    loop {
        let incoming = listener.accept().await;
        core.local.runtime.spawn(core.clone().accept(incoming));
    }
}
