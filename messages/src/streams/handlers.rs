//! What comes from peers, as Active Messages.

use std::sync::Arc;

use doorbell_am::{Handlers, Request};

use super::link::Link;
use super::sending::Forged;
use super::state::Shared;
use super::wire::{
    BEGIN, DONE, FAILED, HELLO, PIECE, TAKEN, VERSION, WELCOME, limits_of, limits_word,
};

/// Makes the handlers of an endpoint.
pub fn handlers(shared: &Arc<Shared>) -> Handlers {
    let [hello, begin, piece, taken, done, failed] = [0; 6].map(|_| shared.clone());
    Handlers::new()
        .request(HELLO, move |request, [version, limits]| {
            if version == VERSION
                && let Some(link) = hello.link(&request.peer())
            {
                link.learn(limits_of(limits));
            }
            request.reply(WELCOME, [VERSION, limits_word(hello.limits)]);
        })
        .request(BEGIN, move |mut request, [packet, stream]| {
            let (peer, bytes) = (request.peer(), request.take_payload());
            begin.begins(&peer, packet, stream, bytes);
            request.note_woken();
        })
        .request(PIECE, move |mut request, packet: u64| {
            let (peer, bytes) = (request.peer(), request.take_payload());
            piece.goes_on(&peer, packet, bytes);
            request.note_woken();
        })
        .request(TAKEN, move |request, [slot, cost]| {
            told(&taken, &request, |link| link.taken(slot, cost));
        })
        .request(DONE, move |request, slots: u64| told(&done, &request, |link| link.done(slots)))
        .request(FAILED, move |request, [slot, reason]| {
            told(&failed, &request, |link| link.failed(slot, reason, request.payload()));
        })
}

/// Takes in what a peer says of messages to it.
fn told(shared: &Shared, request: &Request<'_>, tells: impl FnOnce(&Link) -> Result<(), Forged>) {
    let peer = request.peer();
    if let Some(link) = shared.link(&peer)
        && let Err(Forged(what)) = tells(&link)
    {
        shared.hub.reject(&peer, what);
    }
    request.note_woken();
}
