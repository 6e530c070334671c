//! What was sent arrives although its sender ends at once, in order.
//!
//! Of eight tagged messages of 50 bytes, none to all eight arrived: the sender dropped what its NIC
//! had not sent, and the receiver took the end for news that came before the last messages.

use doorbell_am::Name;
use doorbell_kit::child::{self, Child};
use doorbell_messages::collectives::Group;
use doorbell_messages::streams::{Incoming, StreamId};
use doorbell_messages::{Endpoint, Match, ReceiveError, SendError, streams};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;

const STREAM: StreamId = StreamId::new("counted");

/// The numbers and lengths of messages: few and short ones, such as fill several packets, more than
/// the sender has credits for, and such as the receiver pulls.
const AMOUNTS: [(usize, usize); 6] =
    [(1, 8), (8, 50), (8, 5000), (300, 100), (5, 30_000), (3, 300_000)];

/// The ways in which a process ends in order.
const WAYS: [&str; 3] = ["closes", "drops", "returns"];

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// The body of a message, which is its number again and again.
fn body(number: usize, len: usize) -> Vec<u8> {
    vec![number as u8; len]
}

async fn sends_tagged(device: &str, name: &str, (count, len): (usize, usize)) -> Endpoint {
    let near = Endpoint::open(device).await.expect("the device is there");
    let peer = near.connect(name).await.expect("the peer is there");
    for number in 0..count {
        peer.send(7, body(number, len)).await.expect("the peer is there");
    }
    near
}

async fn sends_streams(
    device: &str,
    name: &str,
    (count, len): (usize, usize),
) -> streams::Endpoint {
    let near = streams::Endpoint::open(device).await.expect("the device is there");
    let peer = near.connect(name).await.expect("the peer is there");
    for number in 0..count {
        let mut message = peer.begin(STREAM).await.expect("the peer is there");
        message.send(body(number, len)).await.expect("the peer is there");
        message.end().await.expect("the peer is there");
    }
    near
}

/// Sends messages to an endpoint, and ends the process at once: in the way that is given.
fn sends(part: &str) -> ! {
    let words: Vec<_> = part.split(' ').collect();
    let [kind, way, device, name, count, len] = words[..] else { panic!("{part} is no part") };
    let [count, len] = [count, len].map(|number| number.parse().expect("a number"));
    let runtime = runtime();
    let (mut tagged, mut streams) = (None, None);
    runtime.block_on(async {
        match kind {
            "tagged" => tagged = Some(sends_tagged(device, name, (count, len)).await),
            _ => streams = Some(sends_streams(device, name, (count, len)).await),
        }
        match way {
            "closes" => {
                if let Some(near) = &tagged {
                    near.close().await.expect("the peer takes all");
                }
                if let Some(near) = &streams {
                    near.close().await.expect("the peer takes all");
                }
            }
            "drops" => (tagged, streams) = (None, None),
            _ => {}
        }
    });
    drop(runtime);
    drop((tagged, streams));
    std::process::exit(0)
}

/// Has a process send messages in every amount and end in every way. `receives` opens an endpoint,
/// starts the process with the endpoint's name, and receives so many messages of a length.
fn all_arrive(
    test: &'static str,
    kind: &str,
    device: &str,
    receives: impl AsyncFn(&dyn Fn(String) -> Child, (usize, usize)) -> Child,
) {
    if let Some(part) = child::part() {
        sends(&part);
    }
    for (count, len) in AMOUNTS {
        for way in WAYS {
            let starts = |name: String| {
                Child::start(test, &format!("{kind} {way} {device} {name} {count} {len}"), None)
            };
            runtime().block_on(async {
                let receiving = receives(&starts, (count, len));
                let received = tokio::time::timeout(doorbell_kit::PATIENCE, receiving).await;
                let hangs = format!("{kind} {way}: {count} messages of {len} bytes arrive");
                let child = received.expect(&hangs);
                // The receiver has gone, which the runtime tells the sender.
                let ended = tokio::task::spawn_blocking(|| child.end());
                ended.await.expect("the sender ends well");
            });
        }
    }
}

fn tagged_messages_arrive(test: &'static str, device: &str) {
    all_arrive(test, "tagged", device, async |starts, (count, len)| {
        let far = Endpoint::open(device).await.expect("the device is there");
        let child = starts(far.name().to_string());
        for number in 0..count {
            let message = far.receive(Match::exactly(7)).await.expect("it has come");
            assert_eq!(message.body, body(number, len), "message {number} of {count}");
        }
        child
    });
}

fn streamed_messages_arrive(test: &'static str, device: &str) {
    all_arrive(test, "streams", device, async |starts, (count, len)| {
        let (comes, mut came) = mpsc::unbounded_channel();
        let handler = move |mut message: Incoming| {
            let comes = comes.clone();
            async move {
                comes.send(message.receive_rest(1 << 20).await).expect("it is awaited");
                Ok(())
            }
        };
        let far = streams::Endpoint::builder().handler(STREAM, handler).open(device);
        let far = far.await.expect("the device is there");
        let child = starts(far.name().to_string());
        for number in 0..count {
            let message = came.recv().await.expect("the handler is there").expect("it has come");
            assert_eq!(message, body(number, len), "message {number} of {count}");
        }
        child
    });
}

/// Runs barriers as a member of a group, whose names the parent tells, and ends the process at once.
fn meets(part: &str) -> ! {
    let (device, rank) = part.split_once(' ').expect("a device and a rank");
    let runtime = runtime();
    runtime.block_on(async {
        let endpoint = Endpoint::open(device).await.expect("the device is there");
        child::tell(endpoint.name());
        let names = child::listen().expect("the parent tells them");
        let names: Vec<Name> = names.split(' ').map(|name| name.parse().expect("a name")).collect();
        let rank = rank.parse().expect("a rank");
        let group = Group::join(endpoint, rank, &names).await.expect("all are there");
        for _ in 0..3 {
            group.barrier().await.expect("all are there");
        }
    });
    drop(runtime);
    std::process::exit(0)
}

/// Of four members whose last act is a barrier, some were told that another had died before they
/// had heard of all others in the barrier.
fn members_end_with_a_barrier(test: &'static str, device: &str) {
    if let Some(part) = child::part() {
        meets(&part);
    }
    for _ in 0..10 {
        let start = |rank| Child::start(test, &format!("{device} {rank}"), None);
        let mut members: Vec<_> = (0..4).map(start).collect();
        let names: Vec<_> = members.iter_mut().map(Child::hear).collect();
        members.iter_mut().for_each(|member| member.say(names.join(" ")));
        members.into_iter().for_each(Child::end);
    }
}

#[test]
fn members_over_shared_memory_end_with_a_barrier_and_none_takes_another_for_dead() {
    let test =
        "ending::members_over_shared_memory_end_with_a_barrier_and_none_takes_another_for_dead";
    members_end_with_a_barrier(test, "shm");
}

#[test]
fn members_over_udp_end_with_a_barrier_and_none_takes_another_for_dead() {
    let test = "ending::members_over_udp_end_with_a_barrier_and_none_takes_another_for_dead";
    members_end_with_a_barrier(test, "udp:127.0.0.1:0");
}

#[test]
fn tagged_messages_over_shared_memory_arrive_although_their_sender_ends() {
    let test = "ending::tagged_messages_over_shared_memory_arrive_although_their_sender_ends";
    tagged_messages_arrive(test, "shm");
}

#[test]
fn tagged_messages_over_udp_arrive_although_their_sender_ends() {
    let test = "ending::tagged_messages_over_udp_arrive_although_their_sender_ends";
    tagged_messages_arrive(test, "udp:127.0.0.1:0");
}

#[test]
fn streamed_messages_over_shared_memory_arrive_although_their_sender_ends() {
    let test = "ending::streamed_messages_over_shared_memory_arrive_although_their_sender_ends";
    streamed_messages_arrive(test, "shm");
}

#[test]
fn streamed_messages_over_udp_arrive_although_their_sender_ends() {
    let test = "ending::streamed_messages_over_udp_arrive_although_their_sender_ends";
    streamed_messages_arrive(test, "udp:127.0.0.1:0");
}

// A receive that waited, and the send of a long message, waited for ever; a send said that the peer
// had broken the rules.
#[test]
fn what_waits_at_an_endpoint_whose_runtime_has_ended_ends() {
    for device in ["shm", "udp:127.0.0.1:0"] {
        let (own, other) = (runtime(), runtime());
        let (near, far, peer) = own.block_on(async {
            let open = || async { Endpoint::open(device).await.expect("the device is there") };
            let (near, far) = (open().await, open().await);
            let peer = near.connect(far.name()).await.expect("the peer is there");
            (near, far, peer)
        });
        let (receive, long) = (far.receive(Match::exactly(5)), peer.send(9, body(1, 1 << 20)));
        drop(own);
        other.block_on(async {
            let in_time = std::time::Duration::from_secs(30);
            let received = tokio::time::timeout(in_time, receive).await.expect("it ends");
            assert_eq!(received.expect_err("nobody receives"), ReceiveError::Closed);
            let sent = tokio::time::timeout(in_time, long).await.expect("it ends");
            sent.expect_err("nobody pulls it");
            let later = tokio::time::timeout(in_time, peer.send(5, "after")).await;
            let why = later.expect("it ends").expect_err("nobody sends it");
            assert!(matches!(why, SendError::Closed { .. }), "{why}");
            let later = tokio::time::timeout(in_time, far.receive(Match::any())).await;
            assert_eq!(later.expect("it ends").expect_err("it is over"), ReceiveError::Closed);
        });
        drop((near, far));
    }
}
