//! The handlers of Active Messages by which packets of peers come.

use std::sync::Arc;

use bytes::Bytes;
use doorbell_am::Handlers;

use super::shared::Shared;
use crate::tagged::wire::{ACKNOWLEDGED, GREET, Greeting, Kind, Packet, SHORT, STRIPED};

/// Makes the handlers of an endpoint for one of its devices.
pub fn handlers(shared: &Arc<Shared>, device: usize) -> Handlers {
    let [greeted, short, striped, acknowledged] = [0; 4].map(|_| shared.clone());
    let handlers = Handlers::new()
        // By a task, since the NIC is asked which process the peer is.
        .on_async(GREET, move |request, greeting: Bytes| {
            let greeted = greeted.clone();
            async move {
                let greeting = Greeting::from_bytes(&greeting);
                let answer =
                    greeting.and_then(|of| greeted.greeted_by(device, &request.peer(), &of));
                if answer.is_none() {
                    greeted.malformed();
                }
                Bytes::from(answer.map(|answer| answer.to_bytes()).unwrap_or_default())
            }
        })
        .request(STRIPED, move |mut request, [sequence, kind, one, two, three]| {
            let Some(kind) = Kind::at(kind) else {
                striped.malformed();
                return;
            };
            let (link, payload) = (request.peer(), request.take_payload());
            let packet = Packet { kind, words: [one, two, three], payload };
            if striped.takes_in_order(&link, sequence, packet) {
                request.note_woken();
            }
        })
        .request_words(SHORT, move |request, words| {
            match short.takes_short(request.noted(), words) {
                Some(true) => request.note_woken(),
                Some(false) => {}
                None => drop(short.unknown(&request.peer())),
            }
        })
        .request(ACKNOWLEDGED, move |request, next: u64| {
            acknowledged.acknowledged(&request.peer(), next);
        });
    Kind::ALL.into_iter().fold(handlers, |handlers, kind| {
        let shared = shared.clone();
        handlers.request(kind.id(), move |mut request, words| {
            let (link, payload) = (request.peer(), request.take_payload());
            if shared.takes(&link, Packet { kind, words, payload }) {
                request.note_woken();
            }
        })
    })
}
