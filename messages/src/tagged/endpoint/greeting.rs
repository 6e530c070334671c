//! How endpoints meet: each tells the other its limits, once for each device that both have.
//!
//! Whoever connects by a name reaches the endpoint of that name. Who says that he has a name may be
//! anybody. So a peer that has connected to this endpoint is found by its name only with a
//! [`Proof`], and what a program sends to an endpoint by its name goes there.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use doorbell_am::{self as am, CallError, Unwelcome};
use tokio::time::Instant;

use super::effects::Effects;
use super::shared::{OwnRail, Shared};
use super::state::{Known, State};
use crate::matching::Source;
use crate::tagged::error::ConnectError;
use crate::tagged::limits::Limits;
use crate::tagged::pull::{NearProcess, NotItsMemory, PullConnection, Secret};
use crate::tagged::wire::{Answer, GREET, Greeting, OVERHEAD, Proof, Pulls, Rail};

/// The longest body that any endpoint takes before its receive is known.
const LEAST_EAGER: usize = Limits::LEAST_WINDOW - OVERHEAD;

/// The time that a peer has for its connection to come which is to go on in place of this side's.
const PATIENCE: Duration = Duration::from_secs(10);

/// The time between two looks for such a connection.
const PAUSE: Duration = Duration::from_millis(1);

/// Why a peer is not greeted.
enum Ungreeted {
    /// It is an endpoint of Active Messages, and none of messages.
    OtherKind,
    /// It has not answered as it should, for the reason in the text.
    Lost(String),
}

impl From<String> for Ungreeted {
    fn from(why: String) -> Self {
        Self::Lost(why)
    }
}

impl Shared {
    /// Greets a peer over connections that were made to it, each with the name that was connected
    /// to, and waits for the answers.
    pub async fn greet(
        self: &Arc<Self>,
        links: &[(am::Peer, String)],
    ) -> Result<Source, ConnectError> {
        let count = links.len() as u16;
        let (first, name) = links.first().ok_or(ConnectError::NoName)?;
        let (source, joins) = {
            let mut state = self.lock();
            let before = state.connected_by(name).map(|(source, _)| source);
            let source = match before.filter(|_| !state.has_link(first)) {
                Some(source) => {
                    state.add_link(first, source, 0);
                    source
                }
                None => state.meet(first, Some(name), LEAST_EAGER),
            };
            match state.peers.get_mut(source) {
                Some(known) if !known.is_greeted => {
                    let draw =
                        || getrandom::u64().expect("Linux has random numbers once it has started");
                    if known.told == 0 {
                        known.told = draw().max(1);
                    }
                    (source, known.told)
                }
                _ => return Ok(source),
            }
        };
        for (place, (link, name)) in (0..).zip(links) {
            let rail = Rail { place, count, joins };
            self.lock().adds_rail(source, link, rail);
            match self.greet_one(source, link, name, rail).await {
                Ok(None) => {}
                Ok(Some(other)) => {
                    // No program has heard of the peer as that of this connection.
                    self.gone(link);
                    self.lock().add_link(link, other, 0);
                    return Ok(other);
                }
                Err(Ungreeted::OtherKind) => {
                    links.iter().for_each(|(link, _)| self.gone(link));
                    let (name, why) = (name.clone(), Unwelcome::OtherKind("messages"));
                    return Err(ConnectError::Unwelcome { name, why });
                }
                Err(Ungreeted::Lost(why)) => {
                    links.iter().for_each(|(link, _)| self.gone(link));
                    let why = format!("{why}; is it an endpoint of messages?").into();
                    return Err(ConnectError::Lost { name: name.clone(), why });
                }
            }
        }
        Ok(source)
    }

    /// Greets a peer over one connection. If the peer has connected to this endpoint, too, and has
    /// become another peer by that, this returns the other one.
    async fn greet_one(
        &self,
        source: Source,
        link: &am::Peer,
        name: &str,
        rail: Rail,
    ) -> Result<Option<Source>, Ungreeted> {
        let greeting = Bytes::from(self.greeting(rail, Pulls::default()).to_bytes());
        let began = Instant::now();
        let refused = || {
            "it refuses: it speaks another version of this protocol, has fewer devices, or does not \
             find this process's memory where it was told"
                .to_owned()
        };
        let answer = loop {
            let answer = link.call(GREET, greeting.clone()).await;
            let answer = answer.map_err(|why| match why {
                CallError::Undeliverable { .. } => Ungreeted::OtherKind,
                why => Ungreeted::Lost(why.to_string()),
            })?;
            let (proof, answer) = match Answer::from_bytes(&answer).ok_or_else(refused)? {
                Answer::Greets(answer) => (Proof(answer.rail.joins), Some(answer)),
                Answer::Yields(proof) => (proof, None),
            };
            if let Some(other) = self.lock().proved(source, proof, rail.joins) {
                return Ok(Some(other));
            }
            match answer {
                Some(answer) => break answer,
                None if began.elapsed() > PATIENCE => {
                    return Err(Ungreeted::Lost(format!(
                        "it says that it connects to this endpoint, too, and has not within \
                         {PATIENCE:?}"
                    )));
                }
                None => tokio::time::sleep(PAUSE).await,
            }
        };
        let near = self.near(link, rail, &answer).map_err(|why| why.to_string())?;
        let no_device = || "there is no such device here".to_owned();
        let domain = self.puller.domains().get(usize::from(rail.place)).ok_or_else(no_device)?;
        let address = name.rsplit_once('#').map_or(name, |(address, _)| address);
        let pulls = PullConnection::to(domain.clone(), address, answer.pulls);
        self.hears(source, &answer, rail, pulls, near);
        Ok(None)
    }

    /// Takes in the greeting of a peer that has connected by a device, and returns the answer, or
    /// `None` if the greeting is refused.
    pub fn greeted_by(
        self: &Arc<Self>,
        device: usize,
        link: &am::Peer,
        greeting: &Greeting,
    ) -> Option<Answer> {
        let rail @ Rail { place, count, joins } = greeting.rail;
        let own = self.rails.get(device)?;
        if usize::from(place) != device || usize::from(count) > self.rails.len() {
            return None;
        }
        let near = self.near(link, rail, greeting).inspect_err(|why| {
            tracing::warn!(peer = greeting.name, %why, "a peer is refused");
        });
        let near = near.ok()?;
        let (source, proof, token) = {
            let mut state = self.lock();
            let (source, proof) = match place {
                0 => match self.finds(&mut state, link, greeting) {
                    Ok(found) => found,
                    Err(yields) => return Some(yields),
                },
                _ => {
                    let same = |known: &Known| joins != 0 && known.joins == joins;
                    (state.peers.iter().find(|(_, known)| same(known))?.0, 0)
                }
            };
            state.adds_rail(source, link, rail);
            let known = state.peers.get_mut(source)?;
            known.joins = joins;
            (source, proof, known.token(device, || self.service.admit()))
        };
        let pulls = PullConnection::of(self.service.clone(), token);
        self.hears(source, greeting, rail, pulls, near);
        if link.ending().is_some() {
            // The end may have been told before the peer was known.
            self.gone(link);
            return None;
        }
        let pulls = Pulls { service: own.service, token };
        Some(Answer::Greets(self.greeting(Rail { joins: proof, ..rail }, pulls)))
    }

    /// Finds the peer that greets by its first device, or makes it known. With it, returns the
    /// proof for the peer if this endpoint has connected to it, or is connecting to it; zero if not.
    ///
    /// # Errors
    /// Of two endpoints that connect to each other at once, the connection of the one with the
    /// lesser name goes on. If that is this endpoint's, the answer says so, and the peer does not
    /// become known: it may not be the one that this endpoint connects to.
    fn finds(
        &self,
        state: &mut State,
        link: &am::Peer,
        greeting: &Greeting,
    ) -> Result<(Source, u64), Answer> {
        let name = Some(greeting.name.as_str()).filter(|name| !name.is_empty());
        let joins = greeting.rail.joins;
        if let Some(source) = state.told(joins).filter(|_| !state.has_link(link)) {
            // The endpoint connects to itself: both ends of the connection are the same peer.
            state.add_link(link, source, 0);
            return Ok((source, 0));
        }
        let mut proof = 0;
        if let Some((_, connected)) = name.and_then(|name| state.connected_by(name)) {
            let of_this = Proof::new(connected.told, joins);
            let own = self.rails.first().and_then(|rail| rail.name.get());
            let goes_on = own.is_some_and(|own| *own < greeting.name);
            if !connected.is_greeted && goes_on && !state.has_link(link) {
                return Err(Answer::Yields(of_this));
            }
            proof = of_this.0;
        }
        Ok((state.meet(link, name, LEAST_EAGER), proof))
    }

    /// Returns the process of a peer, if this process may read its memory.
    ///
    /// # Errors
    /// When the peer tells of memory that is not its own.
    fn near(
        &self,
        link: &am::Peer,
        rail: Rail,
        greeting: &Greeting,
    ) -> Result<Option<NearProcess>, NotItsMemory> {
        let own = self.rails.get(usize::from(rail.place));
        // Of a peer elsewhere, the words may be copied from this very endpoint's greeting.
        let told = greeting.whereabouts.filter(|_| own.is_some_and(OwnRail::stays_here));
        told.map_or(Ok(None), |told| NearProcess::of(link.process(), &told))
    }

    /// Notes what a peer has told.
    fn hears(
        &self,
        source: Source,
        greeting: &Greeting,
        rail: Rail,
        pulls: PullConnection,
        near: Option<NearProcess>,
    ) {
        let (mut effects, place) = (Effects::default(), usize::from(rail.place));
        let stays_here = self.rails.get(place).is_some_and(OwnRail::stays_here);
        let mut state = self.lock();
        let own = self.limits.eager;
        let Some(known) = state.peers.get_mut(source) else { return };
        // A peer is heard of once for each connection, and twice if both sides connect at once.
        if !std::mem::replace(&mut known.is_greeted, true) {
            known.outgoing.widen(usize::try_from(greeting.window).unwrap_or(usize::MAX));
            let theirs = usize::try_from(greeting.eager).unwrap_or(usize::MAX);
            known.eager = own.min(theirs).max(LEAST_EAGER);
        }
        known.near = known.near.take().or(near);
        known.is_here |= stays_here;
        known.pulls.resize_with(known.pulls.len().max(place + 1), || None);
        // The side that has connected makes the connection for long bodies, too.
        if let Some(there) = known.pulls.get_mut(place)
            && (there.is_none() || pulls.is_made_here())
        {
            *there = Some(Arc::new(pulls));
        }
        let pulls = known.pulls.clone();
        let awaits_pull = awaits_pull(&state, source);
        state.releases(source, &mut effects);
        drop(state);
        effects.finish();
        if awaits_pull {
            self.connect_for_pulls(&pulls);
        }
    }

    fn greeting(&self, rail: Rail, pulls: Pulls) -> Greeting {
        let Limits { window, eager, .. } = self.limits;
        let (window, eager) = (window as u64, eager as u64);
        // A peer that is quicker than the endpoint's opening is told no name.
        let name = self.rails[0].name.get().cloned().unwrap_or_default();
        let stays_here = self.rails[usize::from(rail.place)].stays_here();
        let secret = self.secret.as_ref().filter(|_| stays_here);
        let whereabouts = secret.map(Secret::whereabouts);
        Greeting { window, eager, pulls, rail, whereabouts, name }
    }
}

impl State {
    /// Adds a connection to a peer.
    fn adds_rail(&mut self, source: Source, link: &am::Peer, Rail { place, count, .. }: Rail) {
        self.add_link(link, source, place.into());
        let Some(known) = self.peers.get_mut(source) else { return };
        if count > 1 {
            known.lane.add_rail(place.into(), count.into(), link);
        }
    }
}

/// Returns whether a peer is to pull a body that was sent before the peer was heard of.
fn awaits_pull(state: &State, source: Source) -> bool {
    state.awaited.values().any(|awaited| awaited.to == source && awaited.lending.is_some())
}
