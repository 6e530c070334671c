//! What comes from peers, as Active Messages.

use std::sync::Arc;

use bytes::Bytes;
use doorbell_am::Handlers;

use super::arrived::Begins;
use super::lane::Frame;
use super::shared::Shared;
use crate::matching::{Envelope, Pattern};
use crate::pacing::Offer;
use crate::wire::{
    DONE, EAGER, FREED, GIVEN_UP, GREET, Greeting, HOLDS, Heading, LEAVE, MORE, OFFER, SEARCH,
    TAKE, TAKEN,
};

/// Makes the handlers of an endpoint.
pub fn handlers(shared: &Arc<Shared>) -> Handlers {
    window_handlers(search_handlers(message_handlers(Handlers::new(), shared), shared), shared)
}

/// Adds the handlers of messages and their ends.
fn message_handlers(handlers: Handlers, shared: &Arc<Shared>) -> Handlers {
    let [greeted, eager, taken, more, done] = [0; 5].map(|_| shared.clone());
    handlers
        .on(GREET, move |request, greeting: Bytes| {
            let answer = Greeting::from_bytes(&greeting)
                .map(|greeting| greeted.greeted_by(&request.peer(), &greeting).to_bytes());
            Bytes::from(answer.unwrap_or_default())
        })
        .request(EAGER, move |mut request, [bits, heading, number]| {
            let (peer, payload) = (request.peer(), request.take_payload());
            eager.begins(
                &peer,
                Begins::Sent { bits },
                Heading::from_word(heading),
                number,
                payload,
            );
            request.note_woken();
        })
        .request(TAKEN, move |mut request, [order, heading, number]| {
            let (peer, payload) = (request.peer(), request.take_payload());
            let heading = Heading::from_word(heading);
            taken.begins(&peer, Begins::Taken { order }, heading, number, payload);
            request.note_woken();
        })
        .request(MORE, move |request, ()| {
            more.continues(&request.peer(), request.payload());
            request.note_woken();
        })
        .request(DONE, move |request, [number, received]| {
            done.done(&request.peer(), number, received == 1);
            request.note_woken();
        })
}

/// Adds the handlers of what senders are told.
fn search_handlers(handlers: Handlers, shared: &Arc<Shared>) -> Handlers {
    let [search, given_up, take, leave] = [0; 4].map(|_| shared.clone());
    handlers
        .request(SEARCH, move |request, [number, bits, mask]| {
            let pattern = Pattern::new(None, bits, mask);
            search.told(&request.peer(), |told| {
                told.outgoing(|outgoing| outgoing.search(number, pattern).map(Frame::Offer));
            });
            request.note_woken();
        })
        .request(GIVEN_UP, move |request, search: u64| {
            given_up.told(&request.peer(), |told| {
                told.outgoing(|outgoing| {
                    outgoing.give_up(search);
                    None
                });
            });
        })
        .request(TAKE, move |request, order: u64| {
            take.told(&request.peer(), |told| {
                told.outgoing(|outgoing| {
                    let release = outgoing.take(order)?;
                    Some(Frame::taken(order, release))
                });
            });
            request.note_woken();
        })
        .request(LEAVE, move |request, order: u64| {
            leave.told(&request.peer(), |told| {
                told.outgoing(|outgoing| {
                    outgoing.leave(order);
                    None
                });
            });
            request.note_woken();
        })
}

/// Adds the handlers of what is said about windows.
fn window_handlers(handlers: Handlers, shared: &Arc<Shared>) -> Handlers {
    let [holds, offer, freed] = [0; 3].map(|_| shared.clone());
    handlers
        .request(HOLDS, move |request, ()| {
            holds.told(&request.peer(), |told| {
                let source = told.source;
                told.incoming(|incoming, mut react| incoming.holds(source, &mut react));
            });
            request.note_woken();
        })
        .request(OFFER, move |request, [search, order, bits]| {
            offer.told(&request.peer(), |told| {
                let offer =
                    Offer { search, order, envelope: Envelope { source: told.source, bits } };
                told.incoming(|incoming, mut react| incoming.offered(offer, &mut react));
            });
            request.note_woken();
        })
        .request(FREED, move |request, cost: u64| {
            let cost = usize::try_from(cost).unwrap_or(usize::MAX);
            freed.told(&request.peer(), |told| {
                told.outgoing(|outgoing| {
                    outgoing.freed(cost);
                    None
                });
            });
            request.note_woken();
        })
}
