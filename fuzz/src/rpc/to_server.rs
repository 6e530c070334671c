//! Messages to a server, from an endpoint that is no client.

use std::time::Duration;

use bytes::Bytes;
use doorbell_am::{Endpoint, Handlers};
use doorbell_rpc::{Channel, Client, Method, Raw, Router, Server, Status, Streaming};
use futures_util::{StreamExt, stream};

use super::holds_nothing;
use super::input::Input;
use super::script::{
    CALL, CANCEL, GRANT, HELLO, LEFT, LEND, MOST, PIECE, VERSION, WELCOME, WRITTEN, flags,
    number_of, payload, word, words,
};

const ECHO: Method<Bytes, Bytes, Raw> = Method::new("echo").idempotent();
const ECHO_INLINE: Method<Bytes, Bytes, Raw> = Method::new("echo inline");
const ADD: Method<(u64, u64), u64> = Method::new("add").schema("(u64, u64) -> u64");
const MIRROR: Method<Bytes, Bytes, Raw> = Method::new("mirror");
const ENDLESS: Method<(), u64> = Method::new("endless");
const FOREVER: Method<Bytes, Bytes, Raw> = Method::new("forever").idempotent();

/// The most calls that the server runs, and the most clients that it knows.
const RUNNING: usize = 32;
const SESSIONS: usize = 16;

fn router() -> Router {
    Router::new()
        .unary(ECHO, async |request| Ok(request.into_inner()))
        .unary(ECHO_INLINE, async |request| Ok(request.into_inner()))
        .inline(ECHO_INLINE)
        .unary(ADD, async |request| {
            let (a, b) = request.into_inner();
            Ok(a.wrapping_add(b))
        })
        .streaming(MIRROR, async |request| {
            let pieces: Streaming<Bytes> = request.into_inner();
            Ok(pieces)
        })
        .server_streaming(ENDLESS, async |_| {
            Ok(Streaming::new(stream::iter(0..).map(Ok::<u64, Status>)))
        })
        .unary(FOREVER, |_| std::future::pending::<Result<Bytes, Status>>())
}

/// A server that is told nonsense, and a client of it that is not.
pub struct ToServer {
    server: Server,
    client: Client<Channel>,
}

impl ToServer {
    pub async fn open() -> Self {
        let server = Server::builder()
            .add_service(router())
            .most_running(RUNNING)
            .body_memory(1 << 20)
            .longest_body(1 << 18)
            .sessions(SESSIONS, Duration::ZERO);
        let server = server.open("shm").await.expect("shared memory");
        let channel = Channel::connect(server.name()).await.expect("the server is there");
        Self { server, client: Client::new(channel) }
    }

    /// Sends the messages of an input, over a connection of their own.
    pub async fn hears(&self, input: &mut Input<'_>) {
        let stranger = Endpoint::open("shm", Handlers::new()).await.expect("shared memory");
        let peer = stranger.connect(self.server.name()).await.expect("the server is there");
        let welcome = peer.call(HELLO, [VERSION, 7, 0]).await.expect("it answers");
        let [version, session, ..] = welcome.arguments(WELCOME).expect("a welcome");
        assert_eq!(version, VERSION);
        let paths =
            [ECHO.id(), ECHO_INLINE.id(), ADD.id(), MIRROR.id(), ENDLESS.id(), FOREVER.id()];
        let methods = paths.map(|method| number_of(method.path()));
        let schema = number_of(ADD.id().schema_text());
        let some = [session, session, session, u64::MAX, schema, 1 << 26, 1000];
        for call in 0..MOST as u64 {
            if input.is_empty() {
                break;
            }
            let kind = input.u8();
            // A call that is the next one, or any.
            let number = if kind >= 128 { call } else { word(input, &some) };
            let key = [if kind.is_multiple_of(16) { word(input, &some) } else { session }, number];
            // What can't be sent is refused by the peer, or too long.
            let _ = match kind % 8 {
                0 => peer.request_with(HELLO, words(input, &some), payload(input)).await,
                1 => peer.request_with(CANCEL, key, payload(input)).await,
                2 => {
                    let piece = [key[0], key[1], word(input, &[0, 1, 2, 3, 0x803])];
                    peer.request_with(PIECE, piece, payload(input)).await
                }
                3 => {
                    let grant = [key[0], key[1], word(input, &some)];
                    peer.request_with(GRANT, grant, payload(input)).await
                }
                4 => peer.request_with(LEND, key, payload(input)).await,
                5 => peer.request_with(WRITTEN, [key[0], key[1], word(input, &[1])], []).await,
                6 => peer.request(LEFT, [key[0]]).await,
                _ => {
                    let method = input.choose(&methods);
                    let (fits, timeout) =
                        (word(input, &[0, 0, schema]), word(input, &[0, 0, 5000]));
                    let head = [key[0], key[1], method, fits, timeout, flags(input)];
                    peer.request_with(CALL, head, payload(input)).await
                }
            };
            let usage = self.server.usage();
            assert!(usage.calls <= RUNNING && usage.streams <= RUNNING, "{usage:?}");
            assert!(usage.body_memory <= 1 << 20, "{usage:?}");
            assert!(self.server.sessions() <= SESSIONS);
        }
        drop((peer, stranger));
        holds_nothing(|| self.server.usage()).await;
        let echoed = self.client.unary(ECHO, Bytes::from_static(b"whole")).await;
        assert_eq!(echoed.expect("it echoes").into_inner(), b"whole"[..]);
    }
}
