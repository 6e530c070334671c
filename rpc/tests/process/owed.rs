//! Clients that give a server no credits: the words that the server owes them are bounded.

use std::sync::Mutex;

use doorbell_am::{Endpoint, Handlers, Kept, ReplyId, RequestId};
use doorbell_kit::child;
use doorbell_kit::effort;
use doorbell_rpc::{Method, Router, Server, Status, Streaming};
use tokio::runtime::Builder;

use crate::ALLOCATED;

const HELLO: RequestId<[u64; 3]> = RequestId::new(0, "rpc hello");
const CALL: RequestId<[u64; 6]> = RequestId::new(1, "rpc call");
const PIECE: RequestId<[u64; 3]> = RequestId::new(4, "rpc piece");
const GRANT: RequestId<[u64; 3]> = RequestId::new(5, "rpc grant");
const LEND: RequestId<[u64; 2]> = RequestId::new(6, "rpc lend");
const WRITTEN: RequestId<[u64; 3]> = RequestId::new(7, "rpc written");
const RESPONSE: RequestId<[u64; 3]> = RequestId::new(3, "rpc response");
const WELCOME: ReplyId<[u64; 5]> = ReplyId::new(0, "rpc welcome");
const ANSWER: ReplyId<[u64; 2]> = ReplyId::new(1, "rpc answer");

const NEVER: Method<u64, u64> = Method::new("never");

/// How much a client that gives no credits may have the server hold more, some of its words later.
const MOST: isize = 4 << 20;

/// The number that stands for a path on the wire.
fn number_of(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Keeps all requests of the server, and its credits with them.
fn keeps() -> Handlers {
    static KEPT: Mutex<Vec<Kept>> = Mutex::new(Vec::new());
    let keep = |kept: Kept| KEPT.lock().expect("nobody panics").push(kept);
    let handlers = Handlers::new().reply(ANSWER, |_, _| ());
    [PIECE, GRANT, WRITTEN, RESPONSE]
        .into_iter()
        .fold(handlers, |handlers, id| handlers.request(id, move |request, _| keep(request.keep())))
}

/// Has a stranger send a server `count` messages, each of which the server answers by a message of
/// its own, and checks the memory of the server.
async fn owes_little(count: u64, says: impl AsyncFn(&doorbell_am::Peer, u64, u64) -> bool) {
    let router = Router::new().client_streaming(NEVER, |request| async move {
        let _numbers: Streaming<u64> = request.into_inner();
        std::future::pending::<Result<u64, Status>>().await
    });
    let server = Server::builder().add_service(router).most_running(256);
    let server = server.open("shm").await.expect("it opens");
    let stranger = Endpoint::open("shm", keeps()).await.expect("it opens");
    let peer = stranger.connect(server.name()).await.expect("the server is there");
    let welcome = peer.call(HELLO, [4, 77, 0]).await.expect("it answers");
    let [_, session, ..] = welcome.arguments(WELCOME).expect("it is welcomed");
    let mut before = 0;
    for number in 0..count {
        if number == 1000 {
            before = ALLOCATED.bytes(); // Memory that is taken once is there from here on.
        }
        if !says(&peer, session, number).await {
            break; // The stranger was cut off.
        }
        let holds = if number < 1000 { 0 } else { ALLOCATED.bytes() - before };
        assert!(holds <= MOST, "{holds} bytes are held after {number}");
    }
}

// A task waited for a credit for each loan of memory that no body was for.
#[test]
fn loans_that_nobody_has_asked_for_take_bounded_memory() {
    child::alone(|| {
        Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(async {
            let lends = async |peer: &doorbell_am::Peer, session, call| {
                peer.request_with(LEND, [session, call], [7; 20]).await.is_ok()
            };
            owes_little(effort(100_000, 1_000_000), lends).await;
        });
    });
}

// A task waited for a credit for each stream that ended here before its sender had ended it.
#[test]
fn streams_of_calls_whose_time_is_over_take_bounded_memory() {
    child::alone(|| {
        Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(async {
            let (streams, timeout) = (1 << 24, 10_000); // microseconds
            let calls = async |peer: &doorbell_am::Peer, session, call| {
                let head = [session, call, number_of("never"), 0, timeout, streams];
                peer.request(CALL, head).await.is_ok()
            };
            owes_little(effort(200_000, 2_000_000), calls).await;
        });
    });
}
