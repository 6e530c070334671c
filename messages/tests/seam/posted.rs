//! More posted receives than a sender of held messages is asked about at a time.

use std::time::Duration;

use doorbell_messages::{Endpoint, Match, Receiving};
use futures_util::future::join_all;
use tokio::time::timeout;

/// More receives than searches that a sender keeps.
const RECEIVES: u64 = 70_000;

/// The bits of messages that fill the window, for which there is no receive at first.
const FILL: u64 = 1 << 40;

async fn in_time<F: Future>(future: F) -> F::Output {
    timeout(Duration::from_secs(60), future).await.expect("it ends in time")
}

// The sender was asked about each receive, had more searches than it keeps, and ended the
// connection. A receive from anybody had an error about the connection to one peer.
async fn any_number_of_receives_searches_among_held_messages(device: &str) {
    let open = || Endpoint::builder().window(8192).open(device);
    let (near, far) = (open().await.expect("it opens"), open().await.expect("it opens"));
    let peer = near.connect(far.name()).await.expect("the other endpoint is there");
    let post = |bits: u64| far.receive(Match::exactly(bits));
    let mut receives: Vec<Receiving> = (0..RECEIVES / 2).map(post).collect();
    let fill: Vec<_> = (0..20).map(|_| peer.send(FILL, vec![7; 1000])).collect();
    // One that searches, and others that are too many for that, posted before and after the
    // messages are held.
    let tags = [3, RECEIVES - 1, RECEIVES / 2 - 1, RECEIVES / 2 + 1, RECEIVES - 2];
    let sends = tags.map(|tag| peer.send(tag, tag.to_be_bytes().to_vec()));
    let first = in_time(&mut receives[tags[0] as usize]).await.expect("it was sent");
    assert_eq!(first.bits, tags[0]);
    receives.extend((RECEIVES / 2..RECEIVES).map(post));
    for tag in tags.into_iter().skip(1) {
        let message = in_time(&mut receives[tag as usize]).await.expect("it was sent");
        assert_eq!((message.bits, &message.body[..]), (tag, &tag.to_be_bytes()[..]));
    }
    in_time(join_all(sends)).await.into_iter().for_each(|sent| sent.expect("it is sent"));
    // Receives that are not needed any more make room for others.
    let of_any = far.receive(Match::any());
    receives.drain(1..).for_each(drop);
    assert_eq!(in_time(of_any).await.expect("it was sent").bits, FILL);
    for _ in 1..20 {
        assert_eq!(in_time(far.receive(Match::any())).await.expect("it was sent").bits, FILL);
    }
    in_time(join_all(fill)).await.into_iter().for_each(|sent| sent.expect("it is sent"));
    in_time(peer.send(0, "last")).await.expect("it is sent");
    let last = receives.pop().expect("one is left");
    assert_eq!(in_time(last).await.expect("it was sent").body, "last");
}

#[tokio::test]
async fn over_shared_memory_any_number_of_receives_searches_among_held_messages() {
    any_number_of_receives_searches_among_held_messages("shm").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_sockets_any_number_of_receives_searches_among_held_messages() {
    any_number_of_receives_searches_among_held_messages("udp:127.0.0.1:0").await;
}

// A receive from anybody, whose message was on its way from a peer that died, failed with an error
// about receiving from one peer.
#[tokio::test]
async fn a_receive_from_anybody_waits_on_when_the_sender_of_its_message_has_gone() {
    let far = Endpoint::open("udp:127.0.0.1:0").await.expect("it opens");
    let other = Endpoint::open("udp:127.0.0.1:0").await.expect("it opens");
    let to_far = other.connect(far.name()).await.expect("it is there");
    let receive = far.receive(Match::exactly(7));
    let later = far.receive(Match::exactly(7));
    stranger::offers_and_leaves(far.name(), 7).await;
    // What comes before the loss is noticed goes to the second receive.
    for body in ["one", "other"] {
        in_time(to_far.send(7, body)).await.expect("it is sent");
    }
    let mut got = in_time(join_all([receive, later])).await;
    got.sort_by_key(|got| got.as_ref().map(|message| message.body.clone()).ok());
    let got = got.into_iter().map(|got| got.expect("it was sent").body);
    assert_eq!(got.collect::<Vec<_>>(), ["one", "other"]);
}

/// A peer that offers a message which it never sends.
mod stranger {
    use doorbell_am::{Endpoint, Handlers, Name};
    use tokio::sync::mpsc;

    use crate::wire::{GREET, HOLDS, OFFER, SEARCH, SHORT, TAKE, greeting, id, kinds};

    /// Connects to an endpoint, offers a message with these bits to the first receive that searches
    /// for them, and leaves when the offer was taken.
    pub async fn offers_and_leaves(name: &Name, bits: u64) {
        let (says, mut said) = mpsc::unbounded_channel();
        let short = Handlers::new().request(SHORT, |_, _| ());
        let handlers = kinds().fold(short, |handlers, (kind, id)| {
            let says = says.clone();
            handlers.request(id, move |_, [one, two, _]| {
                let _ = says.send((kind, one, two));
            })
        });
        let own = Endpoint::builder().open("udp:127.0.0.1:0", handlers).await.expect("it opens");
        let peer = own.connect(name.clone()).await.expect("it is there");
        peer.call(GREET, greeting(4096, "")).await.expect("it is greeted");
        peer.request(id(HOLDS), [1, 0, 0]).await.expect("it is sent");
        while let Some((kind, one, two)) = said.recv().await {
            match kind {
                SEARCH if two == bits => {
                    let offer = peer.request_with(id(OFFER), [one, 5, bits], 9_u64.to_be_bytes());
                    offer.await.expect("it is sent");
                }
                TAKE => return,
                _ => {}
            }
        }
    }
}
