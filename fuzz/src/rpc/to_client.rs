//! Messages to a client, from an endpoint that is no server.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use doorbell_am::{Endpoint, Handlers, Kept, Peer};
use doorbell_rpc::{Channel, Client, Method, Raw};
use futures_util::future::{Either, join_all, select};
use futures_util::{StreamExt, stream};

use super::holds_nothing;
use super::input::Input;
use super::script::{
    ANSWER, CALL, CANCEL, GRANT, GRANTED, HELLO, LEAVE, LEND, MOST, PIECE, RESPONSE, VERSION,
    WELCOME, WRITTEN, flags, payload, word,
};

const ECHO: Method<Bytes, Bytes, Raw> = Method::new("echo");
const COUNT: Method<u64, u64> = Method::new("count");
const SUM: Method<u64, u64> = Method::new("sum");
const MIRROR: Method<Bytes, Bytes, Raw> = Method::new("mirror");

/// The session of every client.
const SESSION: u64 = 77;

/// The flags of a message: the body of a request is a stream; an answer says only that the call was
/// accepted.
const STREAMS: u64 = 1 << 24;
const ACCEPTED: u64 = 1 << 25;

/// The number of calls of each kind that a client has under way.
const CALLS: u64 = 2;

/// The calls that came, which the script answers: those whose requests are streams by `RESPONSE`, for
/// they were accepted, and the others by a reply or by `RESPONSE`.
type Came = Arc<Mutex<Vec<(Option<Kept>, Peer, u64)>>>;

/// An endpoint that greets clients as a server does, and answers as an input says.
pub struct ToClient {
    endpoint: Endpoint,
    came: Came,
}

impl ToClient {
    pub async fn open() -> Self {
        let came = Came::default();
        let comes = came.clone();
        let handlers = Handlers::new()
            .request(HELLO, |request, _| {
                request.reply(WELCOME, [VERSION, SESSION, 5, 1 << 18, 5]);
            })
            .request(CALL, move |request, [_, call, .., shape]| {
                let (peer, streams) = (request.peer(), shape & STREAMS != 0);
                let mut kept = None;
                match streams {
                    true => request.reply(ANSWER, [call, ACCEPTED]),
                    false => kept = Some(request.keep()),
                }
                comes.lock().expect("nobody panics").push((kept, peer, call));
            })
            .request(CANCEL, |_, _| ())
            .request(PIECE, |_, _| ())
            .request(GRANT, |_, _| ())
            .request(LEND, |_, _| ())
            .request(WRITTEN, |_, _| ());
        let endpoint = Endpoint::open("shm", handlers).await.expect("shared memory");
        Self { endpoint, came }
    }

    /// Has a client call, and answers with the messages of an input.
    pub async fn hears(&self, input: &mut Input<'_>) {
        let channel = Channel::builder().longest_body(1 << 18).body_memory(1 << 20);
        let channel = channel.connect(self.endpoint.name()).await.expect("it is greeted");
        let calls = Box::pin(join_all((0..CALLS).map(|_| call_all(channel.clone()))));
        let answers = Box::pin(self.answer(&channel, input));
        // Whatever the calls come to, they end or are given up when the script is over.
        match select(calls, answers).await {
            Either::Left((_, answers)) => answers.await,
            Either::Right(((), calls)) => drop(calls),
        }
        self.came.lock().expect("nobody panics").clear();
        holds_nothing(|| channel.usage()).await;
    }

    async fn answer(&self, channel: &Channel, input: &mut Input<'_>) {
        // All calls are there, or their connection has ended.
        let all = CALLS as usize * 4;
        let mut came = Vec::new();
        while came.len() < all && channel.is_connected() {
            came.append(&mut *self.came.lock().expect("nobody panics"));
            tokio::task::yield_now().await;
        }
        let Some(peer) = came.first().map(|(_, peer, _)| peer.clone()) else { return };
        let numbers: Vec<_> = came.iter().map(|&(_, _, call)| call).collect();
        let mut kept: Vec<_> = came.into_iter().map(|(kept, ..)| kept).collect();
        for _ in 0..MOST {
            if input.is_empty() || peer.ending().is_some() {
                break;
            }
            let kind = input.u8();
            let at = usize::from(input.u8()) % numbers.len();
            let call = if kind >= 32 { numbers[at] } else { word(input, &[u64::MAX]) };
            let session = if kind >= 16 { SESSION } else { word(input, &[u64::MAX]) };
            // What can't be sent is refused by the peer, or too long.
            let _ = match (kind % 9, kept[at].take_if(|_| kind % 9 < 3)) {
                (0, Some(kept)) => {
                    kept.reply(GRANTED, [session, call, word(input, &[1 << 16])]);
                    Ok(())
                }
                (0..3, Some(kept)) => kept.reply_with(ANSWER, [call, flags(input)], payload(input)),
                (3, _) => {
                    peer.request_with(GRANT, [session, call, word(input, &[1 << 16])], []).await
                }
                (4, _) => peer.request_with(LEND, [session, call], payload(input)).await,
                (5, _) => peer.request_with(WRITTEN, [session, call, word(input, &[1])], []).await,
                (6, _) => {
                    let shape = flags(input);
                    peer.request_with(RESPONSE, [session, call, shape], payload(input)).await
                }
                (7, _) => peer.request(LEAVE, [session]).await,
                _ => {
                    let piece = word(input, &[0, 1, 2, 3, 0x803]);
                    peer.request_with(PIECE, [session, call, piece], payload(input)).await
                }
            };
            let usage = channel.usage();
            assert!(
                usage.calls <= all && usage.streams <= all && usage.bodies <= 2 * all,
                "{usage:?}"
            );
            assert!(usage.body_memory <= 1 << 20, "{usage:?}");
            tokio::task::yield_now().await;
        }
    }
}

/// Calls of each kind, which may come to anything.
async fn call_all(channel: Channel) {
    let client = Client::new(channel);
    let numbers = || stream::iter(0..).map(|number: u64| number % 9);
    let pieces = stream::iter(0..20).map(|number: u8| Bytes::from(vec![number; 500]));
    let counts = async {
        if let Ok(counted) = client.server_streaming(COUNT, 100).await {
            let _all: Vec<_> = counted.into_inner().collect().await;
        }
    };
    let mirrors = async {
        if let Ok(mirrored) = client.streaming(MIRROR, pieces).await {
            let _all: Vec<_> = mirrored.into_inner().collect().await;
        }
    };
    let echoes = client.unary(ECHO, Bytes::from_static(b"short"));
    let sums = client.client_streaming(SUM, numbers());
    let _ = tokio::join!(echoes, counts, sums, mirrors);
}
