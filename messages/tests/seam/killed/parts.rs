//! What the other process does before it is killed.

use std::future::pending;

use bytes::Bytes;
use doorbell_am::{self as am, Handlers};
use doorbell_kit::child;
use doorbell_messages::{Endpoint, Match};
use futures_util::future::join_all;
use tokio::sync::mpsc;

use crate::wire::{EAGER, GREET, HOLDS, OFFER, SEARCH, SHORT, TAKE, greeting, id, kinds};

/// The window of all endpoints.
pub const WINDOW: usize = 4096;

/// The bits that are looked for among messages that are held.
pub const WANTED: u64 = 50;

/// The length of a long message.
pub const LONG_BODY: usize = 4 << 20;

/// What the other process does. It tells when it has come to where it is to be killed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// It says hello, and nothing more.
    IsSilent,
    /// It sends messages beyond the window.
    Holds,
    /// It offers a message that the other endpoint takes, and does not send it.
    Offers,
    /// It searches among the other endpoint's held messages, and does not answer what is offered.
    Searches,
    /// It sends and receives long messages without end.
    SendsLong,
}

/// Opens an endpoint, tells its name, and plays a part towards whoever says hello to it, until the
/// process is killed.
pub async fn play(part: Part, device: &str) {
    match part {
        Part::Offers | Part::Searches => play_below(part, device).await,
        _ => play_as_endpoint(part, device).await,
    }
    pending::<()>().await;
}

async fn play_as_endpoint(part: Part, device: &str) {
    let own = Endpoint::builder().window(WINDOW).open(device).await.expect("it opens");
    child::tell(own.name());
    let peer = own.receive(Match::exactly(0)).await.expect("it was sent").from;
    match part {
        Part::Holds => {
            let sends = (1..1000).map(|bits| peer.send(bits, vec![7; 1000]));
            let sends: Vec<_> = sends.collect();
            child::tell("ready");
            join_all(sends).await;
        }
        Part::SendsLong => {
            let sends = async {
                let body = Bytes::from(vec![7; LONG_BODY]);
                loop {
                    peer.send(1, body.clone()).await.expect("it is sent");
                }
            };
            let receives = async {
                for count in 0.. {
                    let message = own.receive(Match::exactly(2)).await.expect("it was sent");
                    assert_eq!(message.body.len(), LONG_BODY);
                    if count == 3 {
                        child::tell("ready");
                    }
                }
            };
            tokio::join!(sends, receives);
        }
        _ => child::tell("ready"),
    }
    pending::<()>().await;
}

/// What has come to a part that is played below an endpoint of tagged messages.
enum Noted {
    Hello(am::Peer),
    Holds,
    Search(u64),
    Offered,
    Taken,
}

/// Speaks the protocol of tagged messages without an endpoint of them.
async fn play_below(part: Part, device: &str) {
    let (notes, mut noted) = mpsc::unbounded_channel();
    let hello = notes.clone();
    let greets = Handlers::new().on(GREET, |_, _| greeting(WINDOW as u64, "")).request(
        SHORT,
        move |request, words| {
            if words.first() == Some(&0) {
                let _ = hello.send(Noted::Hello(request.peer()));
            }
        },
    );
    let handlers = kinds().fold(greets, |handlers, (kind, id)| {
        let notes = notes.clone();
        handlers.request(id, move |request, [one, two, _]| {
            let what = match kind {
                EAGER if one == 0 => Noted::Hello(request.peer()),
                HOLDS => Noted::Holds,
                SEARCH if two == WANTED => Noted::Search(one),
                OFFER => Noted::Offered,
                TAKE => Noted::Taken,
                _ => return,
            };
            notes.send(what).unwrap_or_else(|_| panic!("it is awaited as long as this lives"));
        })
    });
    let own = am::Endpoint::builder().open(device, handlers).await.expect("it opens");
    child::tell(own.name());
    let mut peer = None;
    while let Some(noted) = noted.recv().await {
        match (noted, &peer) {
            (Noted::Hello(hello), _) => {
                if part == Part::Offers {
                    hello.request(id(HOLDS), [1, 0, 0]).await.expect("it is sent");
                }
                peer = Some(hello);
            }
            (Noted::Holds, Some(peer)) if part == Part::Searches => {
                peer.request(id(SEARCH), [0, WANTED, u64::MAX]).await.expect("it is sent");
            }
            (Noted::Search(number), Some(peer)) => {
                peer.request_with(id(OFFER), [number, 5, WANTED], 1000_u64.to_be_bytes())
                    .await
                    .expect("it is sent");
            }
            (Noted::Offered | Noted::Taken, _) => child::tell("ready"),
            _ => {}
        }
    }
}
