//! Both ends of a call, given messages that no peer of theirs would send.
//!
//! The input is a list of messages, with words and payloads that are often nearly right: greetings,
//! calls, answers, pieces of streams, grants, memory that is lent, and words that calls are given up,
//! in any order. They go to a server from an endpoint that is no client, and to a client, which is in
//! the middle of calls of all kinds, from an endpoint that is no server.
//!
//! What is checked: nothing panics, the end that was told nonsense still works, and when the other end
//! has gone, nothing is held for it. What a peer may have an end hold meanwhile is bounded by the limits
//! with which the end was opened.
//!
//! Messages go over shared memory between endpoints of one thread, so that the code that receives is
//! all that a peer meets. A server is there for all inputs; each has a connection of its own.

#[path = "../input.rs"]
mod input;
mod script;
mod to_client;
mod to_server;

use std::cell::RefCell;
use std::time::Duration;

use doorbell_rpc::Usage;
use tokio::runtime::Runtime;

use input::Input;
use to_client::ToClient;
use to_server::ToServer;

/// The time that a server or a client may take for a step. A test that hung would fail after it.
const LONG: Duration = Duration::from_secs(60);

/// The server and the client that all inputs are tried on, with their runtime.
struct World {
    runtime: Runtime,
    server: ToServer,
    client: ToClient,
}

impl World {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        let (server, client) =
            runtime.block_on(async { (ToServer::open().await, ToClient::open().await) });
        Self { runtime, server, client }
    }
}

thread_local! {
    static WORLD: RefCell<Option<World>> = const { RefCell::new(None) };
}

/// Gives the messages of an input to a server, or to a client, as its first byte says.
pub fn rpc(data: &[u8]) {
    WORLD.with_borrow_mut(|world| {
        let World { runtime, server, client } = world.get_or_insert_with(World::new);
        let mut input = Input(data);
        let to_client = input.u8() % 2 == 1;
        runtime.block_on(async {
            let all = async {
                match to_client {
                    false => server.hears(&mut input).await,
                    true => client.hears(&mut input).await,
                }
            };
            tokio::time::timeout(LONG, all).await.expect("each end goes on");
        });
    });
}

/// Waits until an end holds nothing any more.
async fn holds_nothing(usage: impl Fn() -> Usage) {
    while usage() != Usage::default() {
        tokio::task::yield_now().await;
    }
}
