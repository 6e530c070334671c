//! How endpoints meet: each tells the other its limits.

use std::sync::Arc;

use bytes::Bytes;
use doorbell_am as am;

use super::arrived::Sender;
use super::shared::Shared;
use super::state::{State, Touched};
use crate::error::ConnectError;
use crate::limits::Limits;
use crate::matching::Source;
use crate::pull::{NearProcess, PullConnection, Secret};
use crate::wire::{GREET, Greeting, OVERHEAD, Pulls};

/// The longest body that any endpoint takes before its receive is known.
const LEAST_EAGER: usize = Limits::LEAST_WINDOW - OVERHEAD;

impl Shared {
    /// Greets a peer to which a connection was made, and waits for its answer.
    pub async fn greet(
        self: &Arc<Self>,
        link: &am::Peer,
        name: &str,
    ) -> Result<Sender, ConnectError> {
        let source = {
            let mut state = self.lock();
            let source = state.meet(link, Some(name), LEAST_EAGER);
            if state.peers.get(&source).is_some_and(|peer| peer.pulls.is_some()) {
                return Ok(Sender { source, link: link.clone() });
            }
            source
        };
        let no_endpoint = |why| ConnectError::Greeting { name: name.to_owned(), why };
        let greeting = self.greeting(Pulls::default()).to_bytes();
        let answer = link.call(GREET, Bytes::from(greeting)).await;
        let answer = answer.map_err(|why| why.to_string()).and_then(|answer| {
            let other = || "it speaks another version of this protocol".to_owned();
            Greeting::from_bytes(&answer).ok_or_else(other)
        });
        match answer {
            Ok(answer) => {
                let domain = self.puller.domain().clone();
                let address = name.rsplit_once('#').map_or(name, |(address, _)| address);
                let pulls = PullConnection::to(domain, address, answer.pulls);
                self.hears(source, &answer, pulls, None);
                Ok(Sender { source, link: link.clone() })
            }
            Err(why) => {
                self.gone(link);
                Err(no_endpoint(why))
            }
        }
    }

    /// Takes in the greeting of a peer that has connected, and returns the answer.
    pub fn greeted_by(&self, link: &am::Peer, greeting: &Greeting) -> Greeting {
        let token = self.service.admit();
        let name = Some(greeting.name.as_str()).filter(|name| !name.is_empty());
        let source = self.lock().meet(link, name, LEAST_EAGER);
        let pulls = PullConnection::of(self.service.clone(), token);
        self.hears(source, greeting, pulls, Some(token));
        self.greeting(Pulls { service: self.service_number, token })
    }

    /// Notes what a peer has told.
    fn hears(
        &self,
        source: Source,
        greeting: &Greeting,
        pulls: PullConnection,
        token: Option<u64>,
    ) {
        let mut touched = Touched::new();
        let near = greeting.whereabouts.filter(|_| self.secret.is_some());
        let near = near.and_then(|whereabouts| NearProcess::at(&whereabouts));
        let mut state = self.lock();
        let own = self.limits.eager;
        let Some(known) = state.peers.get_mut(&source) else { return };
        // A peer may be heard of twice, if both sides have connected at once.
        if known.pulls.is_none() {
            known.outgoing.freed(usize::try_from(greeting.window).unwrap_or(usize::MAX));
            let theirs = usize::try_from(greeting.eager).unwrap_or(usize::MAX);
            known.eager = own.min(theirs).max(LEAST_EAGER);
            known.near = near;
        }
        // The side that has connected makes the connection for long bodies, too.
        if known.pulls.is_none() || pulls.is_made_here() {
            known.pulls = Some(Arc::new(pulls));
        }
        let replaced = token.and_then(|token| known.token.replace(token));
        let pulls = known.pulls.clone();
        let awaits_pull = awaits_pull(&state, source);
        state.releases(source, &mut touched);
        drop(state);
        touched.iter().for_each(|lane| lane.flush());
        replaced.into_iter().for_each(|token| self.service.forget(token));
        if awaits_pull {
            self.connect_for_pulls(pulls);
        }
    }

    fn greeting(&self, pulls: Pulls) -> Greeting {
        let Limits { window, eager, .. } = self.limits;
        let name = self.name().to_owned();
        let whereabouts = self.secret.as_ref().map(Secret::whereabouts);
        Greeting { window: window as u64, eager: eager as u64, pulls, whereabouts, name }
    }
}

/// Returns whether a peer is to pull a body that was sent before the peer was heard of.
fn awaits_pull(state: &State, source: Source) -> bool {
    state.awaited.values().any(|awaited| awaited.to == source && awaited.lending.is_some())
}
