//! How endpoints meet: each tells the other its limits, once for each device that both have.

use std::sync::Arc;

use bytes::Bytes;
use doorbell_am as am;

use super::arrived::Sender;
use super::effects::Effects;
use super::shared::{OwnRail, Shared};
use super::state::{Known, State};
use crate::error::ConnectError;
use crate::limits::Limits;
use crate::matching::Source;
use crate::pull::{NearProcess, PullConnection, Secret};
use crate::wire::{GREET, Greeting, OVERHEAD, Pulls, Rail};

/// The longest body that any endpoint takes before its receive is known.
const LEAST_EAGER: usize = Limits::LEAST_WINDOW - OVERHEAD;

impl Shared {
    /// Greets a peer over connections that were made to it, each with the name that was connected
    /// to, and waits for the answers.
    pub async fn greet(
        self: &Arc<Self>,
        links: &[(am::Peer, String)],
    ) -> Result<Sender, ConnectError> {
        let count = links.len() as u16;
        let joins = getrandom::u64().expect("Linux has random numbers once it has started").max(1);
        let (first, name) = &links[0];
        let source = {
            let mut state = self.lock();
            let source = state.meet(first, Some(name), LEAST_EAGER, |_| true);
            if state.peers.get(&source).is_some_and(|peer| peer.is_greeted) {
                return Ok(Sender { source, name: Some(name.as_str().into()) });
            }
            source
        };
        for (place, (link, name)) in (0..).zip(links) {
            let rail = Rail { place, count, joins };
            {
                let mut state = self.lock();
                state.adds_rail(source, link, rail);
                state.peers.entry(source).and_modify(|known| known.told = joins);
            }
            let greeted = self.greet_one(source, link, name, rail).await;
            if let Err(why) = greeted {
                links.iter().for_each(|(link, _)| self.gone(link));
                return Err(ConnectError::Greeting { name: name.clone(), why });
            }
        }
        Ok(Sender { source, name: Some(name.as_str().into()) })
    }

    /// Greets a peer over one connection.
    async fn greet_one(
        &self,
        source: Source,
        link: &am::Peer,
        name: &str,
        rail: Rail,
    ) -> Result<(), String> {
        let greeting = self.greeting(rail, Pulls::default()).to_bytes();
        let answer = link.call(GREET, Bytes::from(greeting)).await;
        let answer = answer.map_err(|why| why.to_string())?;
        let refused = || {
            "it refuses: it speaks another version of this protocol, or has fewer devices"
                .to_owned()
        };
        let answer = Greeting::from_bytes(&answer).ok_or_else(refused)?;
        let domain = self.puller.domains()[usize::from(rail.place)].clone();
        let address = name.rsplit_once('#').map_or(name, |(address, _)| address);
        let pulls = PullConnection::to(domain, address, answer.pulls);
        let proof = answer.rail.joins;
        self.lock().peers.entry(source).and_modify(|known| known.proof = proof);
        self.hears(source, &answer, pulls, None);
        Ok(())
    }

    /// Takes in the greeting of a peer that has connected by a device, and returns the answer, or
    /// `None` if the greeting is refused.
    pub fn greeted_by(
        &self,
        device: usize,
        link: &am::Peer,
        greeting: &Greeting,
    ) -> Option<Greeting> {
        let rail @ Rail { place, count, joins } = greeting.rail;
        if usize::from(place) != device || usize::from(count) > self.rails.len() {
            return None;
        }
        let (source, told) = {
            let mut state = self.lock();
            let name = Some(greeting.name.as_str()).filter(|name| !name.is_empty());
            let source = match place {
                // Whoever connects by the name of a peer that is known already is another, unless
                // both sides connect at once, and the peer has told its number.
                0 => state.meet(link, name, LEAST_EAGER, |known| {
                    !known.is_greeted || known.proof == joins && joins != 0
                }),
                _ => {
                    let same = |known: &Known| joins != 0 && known.joins == joins;
                    *state.peers.iter().find(|(_, known)| same(known))?.0
                }
            };
            state.adds_rail(source, link, rail);
            let known = state.peers.get_mut(&source)?;
            known.joins = joins;
            (source, known.told)
        };
        let token = self.service.admit();
        let pulls = PullConnection::of(self.service.clone(), token);
        self.hears(source, greeting, pulls, Some(token));
        let pulls = Pulls { service: self.rails[device].service, token };
        Some(self.greeting(Rail { joins: told, ..rail }, pulls))
    }

    /// Notes what a peer has told.
    fn hears(
        &self,
        source: Source,
        greeting: &Greeting,
        pulls: PullConnection,
        token: Option<u64>,
    ) {
        let (mut effects, place) = (Effects::default(), usize::from(greeting.rail.place));
        // Of a peer elsewhere, the words may be copied from this very endpoint's greeting.
        let stays_here = self.rails.get(place).is_some_and(OwnRail::stays_here);
        let near = greeting.whereabouts.filter(|_| stays_here);
        let near = near.and_then(|whereabouts| NearProcess::at(&whereabouts));
        let mut state = self.lock();
        let own = self.limits.eager;
        let Some(known) = state.peers.get_mut(&source) else { return };
        // A peer is heard of once for each connection, and twice if both sides connect at once.
        if !std::mem::replace(&mut known.is_greeted, true) {
            known.outgoing.widen(usize::try_from(greeting.window).unwrap_or(usize::MAX));
            let theirs = usize::try_from(greeting.eager).unwrap_or(usize::MAX);
            known.eager = own.min(theirs).max(LEAST_EAGER);
        }
        known.near = known.near.or(near);
        known.is_here |= stays_here;
        known.tokens.extend(token);
        known.pulls.resize_with(known.pulls.len().max(place + 1), || None);
        // The side that has connected makes the connection for long bodies, too.
        if known.pulls[place].is_none() || pulls.is_made_here() {
            known.pulls[place] = Some(Arc::new(pulls));
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
        self.links.insert(link.clone(), (source, place.into()));
        let Some(known) = self.peers.get_mut(&source) else { return };
        if count > 1 {
            known.lane.add_rail(place.into(), count.into(), link);
        }
    }
}

/// Returns whether a peer is to pull a body that was sent before the peer was heard of.
fn awaits_pull(state: &State, source: Source) -> bool {
    state.awaited.values().any(|awaited| awaited.to == source && awaited.lending.is_some())
}
