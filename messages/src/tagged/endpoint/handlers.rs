//! The handlers of Active Messages by which packets of peers come.

use std::sync::Arc;

use bytes::Bytes;
use doorbell_am::{Handlers, Request};

use super::collecting::Collecting;
use super::shared::Shared;
use crate::matching::Source;
use crate::tagged::wire::{ACKNOWLEDGED, GREET, Greeting, Kind, Packet, SHORT, STRIPED};

/// Makes the handlers of an endpoint for one of its devices.
pub fn handlers(shared: &Arc<Shared>, device: usize) -> Handlers {
    let [greeted, striped, acknowledged] = [0; 3].map(|_| shared.clone());
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
            let payload = request.take_payload();
            let packet = Packet { kind, words: [one, two, three], payload };
            by_peer(&striped, &request, |peer| striped.takes_in_order(peer, sequence, packet));
        })
        .request_collected(SHORT, Collecting::new(shared))
        .request(ACKNOWLEDGED, move |request, next: u64| {
            by_peer(&acknowledged, &request, |peer| acknowledged.acknowledged(peer, next));
        });
    Kind::ALL.into_iter().fold(handlers, |handlers, kind| {
        let shared = shared.clone();
        handlers.request(kind.id(), move |mut request, words| {
            let packet = Packet { kind, words, payload: request.take_payload() };
            by_peer(&shared, &request, |peer| shared.takes(peer, packet));
        })
    })
}

/// Takes in a request by the number of its peer. `takes` returns whether a task was woken, or `None`
/// if there is no such peer.
#[inline]
fn by_peer(shared: &Shared, request: &Request<'_>, takes: impl FnOnce(Source) -> Option<bool>) {
    match takes(request.noted()) {
        Some(true) => request.note_woken(),
        Some(false) => {}
        None => shared.unknown(&request.peer()),
    }
}
