//! What comes from peers, as Active Messages.

use std::sync::Arc;

use doorbell_am::Handlers;

use super::lane::Frame;
use super::state::Shared;
use crate::matching::{Envelope, Pattern};
use crate::pacing::Offer;
use crate::wire::{
    EAGER, FREED, Flags, GIVEN_UP, HOLDS, LEAVE, MATCHED, OFFER, SEARCH, TAKE, TAKEN,
};

/// Makes the handlers of an endpoint.
pub fn handlers(shared: &Arc<Shared>) -> Handlers {
    let handlers = [0; 10].map(|_| shared.clone());
    let [eager, taken, holds, offer, freed, search, given_up, take, leave, matched] = handlers;
    Handlers::new()
        .request(EAGER, move |mut request, [bits, flags, synchronous]| {
            let (peer, body) = (request.peer(), request.take_payload());
            eager.arrived(&peer, bits, Flags::from_word(flags), synchronous, body);
            request.note_woken();
        })
        .request(TAKEN, move |mut request, [order, flags, synchronous]| {
            let (peer, body) = (request.peer(), request.take_payload());
            taken.came(&peer, order, Flags::from_word(flags), synchronous, body);
            request.note_woken();
        })
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
                    let outbound = release.held.message;
                    let synchronous = outbound.synchronous != 0;
                    let flags = Flags { last: release.last, synchronous };
                    Some(Frame::Taken { order, flags, outbound })
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
        .request(MATCHED, move |request, number: u64| {
            matched.told(&request.peer(), |told| told.matched(number));
            request.note_woken();
        })
}
