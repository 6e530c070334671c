//! A client that stops in the midst of long bodies, for which a server has lent it memory.

use std::time::Duration;

use bytes::Bytes;
use doorbell_am::{Endpoint, Handlers, ReplyId, RequestId};
use doorbell_rpc::{Channel, Client, Server};
use doorbell_simulation::{Faults, passing};
use doorbell_verbs::{Name, QueuePairConfig};

use crate::fabric::{ECHO, Handled, router};
use crate::virtual_time::ends;

const HELLO: RequestId<[u64; 3]> = RequestId::new(0, "rpc hello");
const CALL: RequestId<[u64; 6]> = RequestId::new(1, "rpc call");
const WELCOME: ReplyId<[u64; 5]> = ReplyId::new(0, "rpc welcome");

/// The version that the server speaks.
const VERSION: u64 = 4;

/// The length of a body, and of all memory for bodies.
const LEN: usize = 1 << 20;

/// Longer than memory is lent for.
const TWO_MINUTES: Duration = Duration::from_secs(120);

/// The number that stands for a path on the wire.
fn number_of(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

// The memory was lent for as long as the client was connected, and all other bodies waited.
#[tokio::test(start_paused = true)]
async fn memory_that_a_client_does_not_write_into_is_lent_for_a_bounded_time() {
    let (ether, _, [far, near]) = ends(1, Faults::NONE);
    let server = Server::builder().add_service(router(&Handled::default()));
    let server =
        server.longest_body(LEN).body_memory(LEN).patience_for_bodies(TWO_MINUTES).on_bundle(&far);
    let server = passing(&ether, server).await.expect("there is room");
    let stopped = async {
        let endpoint =
            Endpoint::builder().on_bundle(&near, Handlers::new()).await.expect("there is room");
        let peer = endpoint.connect(server.name()).await.expect("the server is there");
        let welcome = peer.call(HELLO, [VERSION, 1, 0]).await.expect("it answers");
        let [_, session, _, _, lines] = welcome.arguments(WELCOME).expect("it is welcomed");
        let pair = endpoint.nic().domain().queue_pair(&QueuePairConfig::default()).expect("room");
        let (address, session_name) = (server.name().address(), session.to_be_bytes());
        let line = pair.connect(Name::at(address, lines), &session_name).await;
        let line = line.expect("the server takes lines").0;
        let (head, len) = ([session, 0, number_of("echo"), 0, 0, 1 << 26], LEN as u64);
        peer.request_with(CALL, head, len.to_be_bytes()).await.expect("it is sent");
        while server.usage().body_memory < LEN {
            tokio::task::yield_now().await;
        }
        (endpoint, peer, line)
    };
    let stopped = passing(&ether, stopped).await;
    let channel = Channel::builder().on_bundle(&near).connect_lazily(server.name());
    let client = Client::new(passing(&ether, channel).await.expect("there is room"));
    let body = Bytes::from(vec![7; LEN]);
    let echoes = tokio::spawn({
        let (client, body) = (client.clone(), body.clone());
        async move { client.unary(ECHO, body).await }
    });
    let passes = passing(&ether, async {
        // Time goes by a second at a time, and all that follows from a second happens in it.
        for _ in 0..120 {
            tokio::time::advance(Duration::from_secs(1)).await;
            for _ in 0..1000 {
                tokio::task::yield_now().await;
            }
        }
    });
    passes.await;
    assert!(echoes.is_finished(), "the memory is still lent after two minutes");
    let echoed = echoes.await.expect("no panic").expect("there is memory").into_inner();
    assert!(echoed == body, "another body came back");
    drop(stopped);
}
