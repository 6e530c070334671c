//! Short messages, which the handler of Active Messages collects as they come. Those of one look
//! meet their receives under one lock.

use std::sync::Arc;

use doorbell_am::{Collect, Request};

use super::arrived::Arrived;
use super::effects::Effects;
use super::shared::Shared;
use super::state::{State, react};
use crate::matching::Envelope;
use crate::tagged::pacing::Arrival;
use crate::tagged::wire::{OVERHEAD, Short};

/// The short messages that have come in a look.
pub struct Collecting {
    shared: Arc<Shared>,
    /// The messages in the order in which they came.
    messages: Box<[(Envelope, Short); MOST]>,
    count: usize,
}

/// The most messages that are collected.
const MOST: usize = 64;

impl Collecting {
    pub fn new(shared: &Arc<Shared>) -> Self {
        let nothing = (Envelope { source: 0, bits: 0 }, Short::default());
        Self { shared: shared.clone(), messages: Box::new([nothing; MOST]), count: 0 }
    }
}

impl Collect for Collecting {
    #[inline]
    fn collect(&mut self, request: &Request<'_>, words: &[u64]) -> bool {
        let source = request.noted();
        if source == 0 {
            self.shared.unknown(&request.peer());
            return false;
        }
        if self.count == MOST && self.finish() {
            request.note_woken();
        }
        let Some((envelope, short)) = self.messages.get_mut(self.count) else { return true };
        let Some(bits) = short.read(words) else {
            self.shared.malformed();
            return self.count > 0;
        };
        (envelope.source, envelope.bits) = (source, bits);
        self.count += 1;
        true
    }

    fn finish(&mut self) -> bool {
        let mut effects = Effects::default();
        let mut state = self.shared.lock();
        let mut malformed = 0;
        let count = std::mem::take(&mut self.count);
        for (envelope, short) in self.messages.iter().take(count) {
            malformed += usize::from(!state.comes(*envelope, short, &mut effects));
        }
        drop(state);
        (0..malformed).for_each(|_| {
            self.shared.malformed();
        });
        self.shared.finish(effects)
    }
}

impl State {
    /// Takes in a short message. Returns whether its sender keeps the rules.
    #[inline]
    fn comes(&mut self, envelope: Envelope, short: &Short, effects: &mut Effects) -> bool {
        let Self { incoming, peers, receives, .. } = self;
        let mut reacts = |what| react(peers, effects, what);
        match incoming.arrives(envelope, OVERHEAD + short.len(), &mut reacts) {
            Ok(Arrival::Meets(receive, turn)) => {
                effects.wake(receives.put_short(receive, (turn, envelope), short));
                true
            }
            Ok(Arrival::Waits(unmet)) => {
                incoming.waits(unmet, Arrived::short(short.to_bytes()));
                true
            }
            // Of a peer that has gone meanwhile nothing is taken.
            Err(_) => !peers.contains(envelope.source),
        }
    }
}
