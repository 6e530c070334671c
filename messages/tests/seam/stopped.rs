//! Senders of long messages whose processes are stopped for a while, and go on.

use std::time::Duration;

use bytes::Bytes;
use doorbell_kit::child::{self, Child};
use doorbell_messages::{Endpoint, EndpointBuilder, Match};
use tokio::runtime::Runtime;
use tokio::task::block_in_place;
use tokio::time::{sleep, timeout};

/// The length of a long message.
const LONG_BODY: usize = 4 << 20;

/// How many processes send one.
const SENDERS: u64 = 16;

/// How long the sender is stopped, which its peers have the patience for.
const STOPPED: Duration = Duration::from_secs(6);

const KEEP_ALIVE: Duration = Duration::from_secs(20);

fn builder() -> EndpointBuilder {
    Endpoint::builder().endpoint(|below| below.keep_alive(KEEP_ALIVE))
}

fn runtime() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().expect("threads can be started")
}

/// Connects to the endpoint of a name, and sends it a long message when it says so.
async fn sends(name: &str) {
    let own = builder().open("udp:127.0.0.1:0").await.expect("it opens");
    let peer = own.connect(name).await.expect("it is there");
    child::tell("connected");
    let number = block_in_place(child::listen).expect("it says which");
    let number = number.parse().expect("it says a number");
    let body = Bytes::from(vec![7; LONG_BODY]);
    peer.send(number, body).await.expect("it was received");
}

// The connection over which bodies are pulled was given up by the receiver, which had not heard from
// the sender meanwhile. The sender took it for established, and the message was lost.
#[test]
fn long_messages_come_although_their_senders_were_stopped_for_a_while() {
    let test = "stopped::long_messages_come_although_their_senders_were_stopped_for_a_while";
    if let Some(name) = child::part() {
        return runtime().block_on(sends(&name));
    }
    runtime().block_on(async {
        let far = builder().open("udp:127.0.0.1:0").await.expect("it opens");
        let name = far.name().to_string();
        let mut children: Vec<_> = (0..SENDERS).map(|_| Child::start(test, &name, None)).collect();
        block_in_place(|| {
            for child in &mut children {
                assert_eq!(child.hear(), "connected");
            }
        });
        let receives: Vec<_> = (0..SENDERS).map(|of| far.receive(Match::exactly(of))).collect();
        // Each sender is stopped at another moment of its message's way.
        for (number, child) in (0..).zip(&mut children) {
            child.say(number);
            sleep(Duration::from_micros(150 * number)).await;
            child.stop();
        }
        // That is what the senders are put through, and not what is hoped for.
        sleep(STOPPED).await;
        children.iter_mut().for_each(Child::resume);
        for (number, receive) in receives.into_iter().enumerate() {
            let message = timeout(Duration::from_secs(60), receive).await.expect("it ends in time");
            let message = message.unwrap_or_else(|why| panic!("message {number}: {why}"));
            assert!(message.body.len() == LONG_BODY && message.body.iter().all(|byte| *byte == 7));
        }
        block_in_place(|| children.into_iter().for_each(Child::end));
    });
}
