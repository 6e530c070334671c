//! Connections to peers: made, found again, and accepted.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use doorbell_verbs::{Incoming, Listener, Name, Qpn, RemoteMemory, ServiceId};

use super::core::Core;
use super::refusals::{
    lost, no_endpoint, no_room, not_admitted, refused, unproved, unwelcome, was_late,
};
use super::user::User;
use crate::config::Policy;
use crate::error::{ConnectError, Unwelcome};
use crate::handlers::Difference;
use crate::link::Link;
use crate::peer::ask_within;
use crate::proof::{Claim, Nonce, Posed, Proof};
use crate::wire::{
    Admits, Ask, Challenge, Hello, Knock, Meeting, NOWHERE, Nature, Refusal, Shown, Side, Size,
    Tag, memory_of_words, words_of_proof,
};

/// The time that an answer is waited for by a link that is there already, before a connection is
/// made instead.
const FOUND_PATIENCE: Duration = Duration::from_secs(1);

/// How often a peer is asked for a challenge, if the challenge is too old when it is answered.
const CHALLENGES: u32 = 3;

impl Core {
    /// Becomes a user of a link to a peer, of one that there is or of a new one.
    pub(super) async fn reach(
        self: &Arc<Self>,
        name: &Name,
        tag: Option<Tag>,
    ) -> Result<User, ConnectError> {
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
    ) -> Result<Option<User>, ConnectError> {
        let Some(user) = self.user_of(name, tag).await else { return Ok(None) };
        user.link().set_name(name);
        let alike = match self.show(user.link(), name, tag).await {
            Ok(()) => self.compare(user.link(), name, Some(FOUND_PATIENCE)).await,
            Err(why) => Err(why),
        };
        match alike {
            Ok(()) => Ok(Some(user)),
            Err(ConnectError::Lost { why, .. }) if was_late(&*why) => Ok(None),
            Err(ConnectError::Lost { .. }) if user.link().ending().is_some() => Ok(None),
            Err(why) => Err(why),
        }
    }

    /// Becomes a user of a link to an endpoint whose name no other can have, if a link takes a user
    /// with that tag. What a peer says is its service number is believed only of a peer at the
    /// address in the name.
    async fn user_of(self: &Arc<Self>, name: &Name, tag: Option<Tag>) -> Option<User> {
        let is = |peer: &Nature| peer.unique && peer.service == name.service().0;
        // By a new connection, the peer has to prove that it knows the tag.
        let proved = |link: &Arc<Link>| {
            link.is_admitted() || !tag.is_some_and(|tag| self.local.demands(tag))
        };
        let there = |link: &Arc<Link>| {
            link.peer().is_some_and(is) && proved(link) && link.ending().is_none()
        };
        for link in self.links_that(there) {
            let known = link.is_named(name) || link.leads_to(name).await;
            let user = || there(&link).then(|| User::of(self, &link, tag)).flatten();
            if let Some(user) = known.then(user).flatten() {
                return Some(user);
            }
        }
        None
    }

    /// Makes a connection to a peer, and becomes the first user of its link.
    async fn connect(
        self: &Arc<Self>,
        name: &Name,
        tag: Option<Tag>,
        size: Size,
    ) -> Result<User, ConnectError> {
        let mut tries = CHALLENGES;
        loop {
            tries -= 1;
            let introduced = match tag {
                Some(tag) => self.knock(name, tag, size).await?,
                None => Introduction::without_tag(),
            };
            match self.greet(name, &introduced, size).await {
                // Whoever has posed the challenge knows the tag. So the challenge has become too
                // old on the way.
                Err(ConnectError::Unwelcome { why: Unwelcome::NotAdmitted { .. }, .. })
                    if tries > 0 && introduced.claim.is_some() => {}
                Err(ConnectError::Unwelcome { why: Unwelcome::Refused(why), .. })
                    if tries > 0 && why == Refusal::Stale.text() => {}
                found => return found,
            }
        }
    }

    /// Asks a peer for the challenge that a greeting with a tag answers, and makes sure that the
    /// peer knows the tag if it demands one.
    async fn knock(&self, name: &Name, tag: Tag, size: Size) -> Result<Introduction, ConnectError> {
        let unconnected = self.knocker().await.map_err(|why| no_room(name, why))?;
        let knock = Knock { size, service: self.name.service().0, nonce: Nonce::draw() };
        let knocked = unconnected.connect(name, &knock.to_bytes()).await;
        let challenge = match knocked {
            Err(ConnectError::Refused { ref private, .. }) => Challenge::from_bytes(private),
            // A connection for a knock is no endpoint's.
            Ok(_) => return Err(no_endpoint(name)),
            Err(_) => None,
        };
        let Some(challenge) = challenge else {
            let why = knocked.map(drop).expect_err("it was not connected");
            return Err(refused(name, Some(tag), why));
        };
        let statement = knock.challenged(challenge.nonce, name.service().0);
        let claim = challenge.proof.map(|proof| Claim { statement, proof });
        match claim {
            Some(claim) if !claim.is_of(tag.0) => Err(not_admitted(name, Some(tag))),
            None if self.local.demands(tag) => Err(unproved(name, tag)),
            _ => Ok(Introduction { nonce: knock.nonce, answers: Some((tag, challenge)), claim }),
        }
    }

    /// Makes a connection to a peer, and a link of which this side is the first user.
    async fn greet(
        self: &Arc<Self>,
        name: &Name,
        introduced: &Introduction,
        size: Size,
    ) -> Result<User, ConnectError> {
        let (unconnected, fresh) = self.prepare(size).await.map_err(|why| no_room(name, why))?;
        let own = self.hello(introduced.nonce, NOWHERE, &fresh.link);
        let own = introduced.shown_by(own, unconnected.qpn(), name.service());
        let tag = introduced.answers.map(|(tag, _)| tag);
        let connected = unconnected.connect(name, &own.asking()).await;
        let (queues, private) = connected.map_err(|why| refused(name, tag, why))?;
        let hello = Hello::from_bytes(&private).filter(|hello| hello.size == size);
        let hello = hello.ok_or_else(|| no_endpoint(name))?;
        let far = fresh.link.connection.peer_qpn().ok_or_else(|| no_endpoint(name))?;
        let meeting = Meeting::of(Side::Connects, [own, hello], [fresh.link.qpn(), far]);
        let claim = introduced.repeated(hello, meeting, name)?;
        // Before other tasks can find the link.
        let user = User::of(self, &fresh.link, tag).expect("nobody has used the link before");
        fresh.link.admit_as(claim);
        fresh.link.greeted(hello, meeting);
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
    ) -> Result<User, ConnectError> {
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
    ) -> Result<User, ConnectError> {
        let long = self.connect_alike(name, tag, Size::Long).await?;
        let [short, medium] = Size::LESS;
        let short = self.connect(name, tag, short).await?;
        let medium = self.connect(name, tag, medium).await?;
        long.link().set_lanes([short, medium].map(User::stays));
        Ok(long)
    }

    /// Shows a peer a tag, or none, from now on, and learns where payloads may be placed.
    async fn show(
        &self,
        link: &Arc<Link>,
        name: &Name,
        tag: Option<Tag>,
    ) -> Result<(), ConnectError> {
        let mut words = vec![Ask::Show as u64];
        words.extend(tag.and_then(|tag| link.shows(tag)).into_iter().flat_map(words_of_proof));
        let reply = ask_within(link, &words, &[], Some(FOUND_PATIENCE))
            .await
            .map_err(|why| lost(name, why))?;
        let segment = memory_of_words(reply.words());
        link.send_side().segment = segment.ok_or_else(|| not_admitted(name, tag))?;
        Ok(())
    }

    /// Makes sure that handlers which both sides have at the same place are the same. Each answer
    /// of the peer is waited for no longer than `within`.
    async fn compare(
        &self,
        link: &Arc<Link>,
        name: &Name,
        within: Option<Duration>,
    ) -> Result<(), ConnectError> {
        if link.has_same_handlers() {
            return Ok(());
        }
        for piece in &self.listing {
            let answer = ask_within(link, &[Ask::Compare as u64], piece, within).await;
            if let Some(found) =
                Difference::from_bytes(answer.map_err(|why| lost(name, why))?.payload())
            {
                let Difference { which, index, name: there } = found;
                let why = Unwelcome::OtherHandlers { table: which.name(), index, there };
                return Err(unwelcome(name, why));
            }
        }
        Ok(())
    }

    /// Makes the greeting of this endpoint for a link, without a tag.
    fn hello(&self, nonce: Nonce, segment: RemoteMemory, link: &Link) -> Hello {
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
        Hello { size: link.size, handlers: self.local.digest, nature, nonce, segment, shows: None }
    }

    /// Accepts or refuses a connection of a peer. A peer that does not prove that it knows the tag
    /// which this endpoint demands is refused before anything is made for it.
    async fn accept(self: Arc<Self>, incoming: Incoming) {
        let refuse = |incoming: Incoming, why: Refusal| {
            tracing::debug!(%why, "a peer is refused");
            let _ = incoming.reject(why.text().as_bytes());
        };
        if self.shuts_down.load(Ordering::SeqCst) {
            return refuse(incoming, Refusal::ShutsDown);
        }
        if let Some(knock) = Knock::from_bytes(incoming.private()) {
            return match self.challenge(knock) {
                Ok(challenge) => drop(incoming.reject(&challenge.to_bytes())),
                Err(why) => refuse(incoming, why),
            };
        }
        let Some(hello) = Hello::from_bytes(incoming.private()) else {
            return refuse(incoming, Refusal::NoHello);
        };
        if !self.has_policy_of(hello.size) {
            return refuse(incoming, Refusal::Policy);
        }
        let claim = match self.claim(hello, incoming.request().qpn) {
            Ok(claim) => claim,
            Err(why) => return refuse(incoming, why),
        };
        let Ok((unconnected, fresh)) = self.prepare(hello.size).await else {
            return refuse(incoming, Refusal::NoRoom);
        };
        fresh.link.admit_as(claim);
        let mut own = self.hello(Nonce::draw(), fresh.link.offered_segment(), &fresh.link);
        let demanded = claim.and_then(|_| self.local.admits().demanded());
        own.shows = demanded.map(|_| Shown { epoch: false, proof: Proof::default() });
        let qpns = [incoming.request().qpn, fresh.link.qpn()];
        let meeting = Meeting::of(Side::Accepts, [hello, own], qpns);
        own.shows = demanded.map(|Tag(tag)| {
            let proof = meeting.accepted().proven_by(tag);
            Shown { epoch: false, proof }
        });
        // A map of the peer finds this link from here on, and makes no second connection.
        fresh.link.greeted(hello, meeting);
        match unconnected.accept(incoming, &own.to_bytes()).await {
            Ok((queues, _)) => self.open_link(&fresh.stays(), queues),
            Err(why) => tracing::debug!(qpn = %fresh.link.qpn(), %why, "a peer was not accepted"),
        }
    }

    /// Returns whether both sides have a connection for each size class, or both one for all
    /// messages.
    fn has_policy_of(&self, size: Size) -> bool {
        (size == Size::Any) != (self.local.config.policy == Policy::PerSize)
    }

    /// Poses a challenge to a peer that is to show a tag.
    fn challenge(&self, knock: Knock) -> Result<Challenge, Refusal> {
        if !self.has_policy_of(knock.size) {
            return Err(Refusal::Policy);
        }
        let admits = self.local.admits();
        if admits == Admits::Nobody {
            return Err(Refusal::Tag);
        }
        let Posed { odd, nonce } = self.challenges.pose(knock.nonce);
        let statement = knock.challenged(nonce, self.name.service().0);
        let proof = admits.demanded().map(|Tag(tag)| statement.proven_by(tag));
        Ok(Challenge { epoch: odd, nonce, proof })
    }

    /// Returns what a greeting claims that came from the queue pair of this number, if the endpoint
    /// admits the peer by that.
    fn claim(&self, hello: Hello, qpn: Qpn) -> Result<Option<Claim>, Refusal> {
        let admits = self.local.admits();
        let Some(Shown { epoch, proof }) = hello.shows else {
            return if admits.admits(None) { Ok(None) } else { Err(Refusal::Tag) };
        };
        let nonce = self.challenges.posed(epoch, hello.nonce).ok_or(Refusal::Stale)?;
        let challenge = Challenge { epoch, nonce, proof: None };
        let statement = challenge.answered(hello, qpn.get(), self.name.service().0);
        let claim = Some(Claim { statement, proof });
        if !admits.admits(claim) {
            return Err(Refusal::Tag);
        }
        // Not before, or whoever has heard the greeting could use the challenge up.
        let first = self.challenges.is_answered_first(epoch, hello.nonce);
        if first { Ok(claim) } else { Err(Refusal::Stale) }
    }
}

/// The state of a connection before the greeting of the side that connects: what the two endpoints
/// know of each other.
struct Introduction {
    /// The number that this side has drawn.
    nonce: Nonce,
    /// The tag that this side shows, and the challenge that it answers by that.
    answers: Option<(Tag, Challenge)>,
    /// The peer's claim to know the tag, if the peer demands one.
    claim: Option<Claim>,
}

impl Introduction {
    fn without_tag() -> Self {
        Self { nonce: Nonce::draw(), answers: None, claim: None }
    }

    /// Adds the tag, if one is shown, to the greeting that is sent by a queue pair to a service.
    fn shown_by(&self, hello: Hello, qpn: Qpn, to: ServiceId) -> Hello {
        let Some((Tag(tag), challenge)) = self.answers else { return hello };
        let shown = |proof| Hello { shows: Some(Shown { epoch: challenge.epoch, proof }), ..hello };
        let statement = challenge.answered(shown(Proof::default()), qpn.get(), to.0);
        shown(statement.proven_by(tag))
    }

    /// Returns what the greeting of the accepting side claims. A peer that has posed a challenge
    /// which shows that it knows the tag must show that by its greeting, too: whoever has passed
    /// on the challenge of another can't.
    fn repeated(
        &self,
        hello: Hello,
        meeting: Meeting,
        name: &Name,
    ) -> Result<Option<Claim>, ConnectError> {
        let (Some((tag, _)), Some(_)) = (self.answers, self.claim) else { return Ok(None) };
        let statement = meeting.accepted();
        let claim = hello.shows.map(|Shown { proof, .. }| Claim { statement, proof });
        match claim.filter(|claim| claim.is_of(tag.0)) {
            Some(claim) => Ok(Some(claim)),
            None => Err(unproved(name, tag)),
        }
    }
}

/// Accepts connections of peers until the endpoint stops listening.
pub(super) async fn accept(core: Arc<Core>, mut listener: Listener) {
    while let Ok(incoming) = listener.accept().await {
        core.local.runtime.spawn(core.clone().accept(incoming));
    }
}
