//! A peer in another process that says that its memory is this process's, or a third one's.

use doorbell_am::{self as am, Handlers};
use doorbell_kit::child::{self, Child};
use doorbell_messages::{ConnectError, Endpoint, Match};
use doorbell_verbs::{Name, QueuePairConfig};
use futures_util::FutureExt;

use crate::alone;
use crate::hostile::stage::Stranger;
use crate::wire::{EAGER, GREET, greeting, heading, pulls, tells_as_its_own, whereabouts};

const MINE: &str = "hostile::elsewhere::memory_of_this_process_does_not_arrive_as_a_peers_message";
const THIRD: &str =
    "hostile::elsewhere::memory_of_a_third_process_does_not_arrive_as_a_peers_message";
const CONNECTS: &str = "hostile::elsewhere::a_peer_that_tells_of_others_memory_is_not_connected_to";

/// The bits of the message that the stranger sends.
const BITS: u64 = 1;

fn run(test: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().expect("a runtime").block_on(test);
}

/// Learns what an endpoint tells those of its machine about its memory.
async fn told_by(name: &str) -> Vec<u8> {
    let stranger = am::Endpoint::open("shm", Handlers::new()).await.expect("it opens");
    let peer = stranger.connect(name).await.expect("the endpoint is there");
    peer.call(GREET, greeting(4096, "shm:asks#1")).await.expect("it is answered").to_vec()
}

/// The part of the stranger: greets an endpoint with what another one has told of its memory, and
/// sends a message which is said to be there.
async fn names_memory_of(victim: &str, of: &str) {
    let told = told_by(of).await;
    let stranger = am::Endpoint::open("shm", Handlers::new()).await.expect("it opens");
    let to_victim = stranger.connect(victim).await.expect("the victim is there");
    let stranger = Stranger::new(stranger, to_victim);
    let answer = stranger.greet(tells_as_its_own(&told, "shm:stranger#1")).await;
    let (address, secret) = whereabouts(&told);
    let memory = [1 << 40, secret.len() as u64].map(u64::to_be_bytes).concat();
    let description = [&[8, 1][..], &memory, &[0, 0, 0, 7], &address.to_be_bytes()].concat();
    let heading = heading(secret.len(), false, true);
    stranger.say(EAGER, &[BITS, heading, 9], &description).await;
    stranger.is_heard().await;
    child::tell(if answer.is_empty() { "refused" } else { "answered" });
    child::listen();
}

/// Has a stranger in another process say that its memory is that of the process that `of` chooses,
/// and returns what became of the greeting.
async fn is_told_of_memory(test: &str, of: impl FnOnce(&Endpoint) -> String) {
    let victim = Endpoint::open("shm").await.expect("it opens");
    let mut receive = victim.receive(Match::exactly(BITS));
    let part = format!("{} {}", victim.name(), of(&victim));
    let mut stranger = Child::start(test, &part, None);
    let heard = tokio::task::spawn_blocking(move || (stranger.hear(), stranger));
    let (greeted, stranger) = heard.await.expect("it tells");
    let received = match &greeted[..] {
        "refused" => receive.test(),
        // The message is known, then, and its body is being read.
        _ => Some(receive.await),
    };
    match received {
        Some(Ok(message)) => panic!("memory has arrived as a message: {:x?}", message.body),
        // If the kernel lets no process read another, nothing is known of the peer's memory.
        Some(Err(why)) => eprintln!("SKIPPED in part, processes are not read here: {why}"),
        None => {}
    }
    drop(stranger);
}

// The peer named the process whose memory was read, and this one's was read as the peer's message.
#[test]
fn memory_of_this_process_does_not_arrive_as_a_peers_message() {
    if let Some(part) = child::part() {
        let (victim, of) = part.split_once(' ').expect("two names");
        return run(names_memory_of(victim, of));
    }
    let _alone = alone();
    run(is_told_of_memory(MINE, |victim| victim.name().to_string()));
}

// As above, with an endpoint of a third process, whose memory the stranger itself might not read.
#[test]
fn memory_of_a_third_process_does_not_arrive_as_a_peers_message() {
    match child::part().as_deref() {
        Some("third") => run(async {
            let third = Endpoint::open("shm").await.expect("it opens");
            child::tell(third.name());
            tokio::task::spawn_blocking(child::listen).await.expect("it listens");
        }),
        Some(part) => {
            let (victim, of) = part.split_once(' ').expect("two names");
            run(names_memory_of(victim, of));
        }
        None => {
            let _alone = alone();
            let mut third = Child::start(THIRD, "third", None);
            let of = third.hear();
            run(is_told_of_memory(THIRD, |_| of));
        }
    }
}

// The side that connects believed the answer to its greeting likewise.
#[test]
fn a_peer_that_tells_of_others_memory_is_not_connected_to() {
    if let Some(victim) = child::part() {
        return run(async {
            let told = told_by(&victim).await;
            let answer = tells_as_its_own(&told, "shm:stranger#1");
            let handlers = Handlers::new().on(GREET, move |_, _| answer.clone());
            let stranger = am::Endpoint::open("shm", handlers).await.expect("it opens");
            child::tell(stranger.name());
            tokio::task::spawn_blocking(child::listen).await.expect("it listens");
        });
    }
    let _alone = alone();
    run(async {
        let victim = Endpoint::open("shm").await.expect("it opens");
        let mut stranger = Child::start(CONNECTS, &victim.name().to_string(), None);
        let heard = tokio::task::spawn_blocking(move || (stranger.hear(), stranger));
        let (name, stranger) = heard.await.expect("it tells");
        match victim.connect(name).await {
            Err(ConnectError::Lost { why, .. }) => {
                let why = why.to_string();
                assert!(why.contains("its process") && why.contains("has not the number"), "{why}");
            }
            other => panic!("the stranger tells of memory that is not its own: {other:?}"),
        }
        drop(stranger);
    });
}

const HALF_MADE: &str =
    "hostile::elsewhere::connections_that_a_peer_does_not_confirm_hold_up_no_others";

/// More connections than an endpoint accepts at a time.
const MANY: usize = 80;

/// The part of a stranger that asks for many connections for long messages, and is stopped before
/// it confirms any.
async fn asks_for_many(victim: &str) {
    let stranger = am::Endpoint::open("udp:127.0.0.1:0", Handlers::new()).await;
    let stranger = stranger.expect("it opens");
    let to_victim = stranger.connect(victim).await.expect("the victim is there");
    let answer = to_victim.call(GREET, greeting(4096, "udp:127.0.0.1:1#2")).await;
    let (service, token) = pulls(&answer.expect("it is answered"));
    child::tell("greeted");
    child::listen();
    let (address, _) = victim.rsplit_once('#').expect("a name");
    let domain = stranger.nic().domain();
    let mut asked: Vec<_> = (0..MANY)
        .map(|_| {
            let pair = domain.queue_pair(&QueuePairConfig::default()).expect("there is room");
            Box::pin(async move { pair.connect(Name::at(address, service), &token).await })
        })
        .collect();
    for asks in &mut asked {
        assert!(asks.as_mut().now_or_never().is_none(), "nobody answers yet");
    }
    // The requests leave when the NIC has its turn.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    child::tell("asked");
    child::listen();
}

// The peer's connections took all places of those that are accepted at a time, and those of others
// waited until the peer's were given up.
#[test]
fn connections_that_a_peer_does_not_confirm_hold_up_no_others() {
    if let Some(victim) = child::part() {
        return run(asks_for_many(&victim));
    }
    let _alone = alone();
    run(async {
        let open = || Endpoint::open("udp:127.0.0.1:0");
        let (victim, good) = (open().await.expect("it opens"), open().await.expect("it opens"));
        let peer = good.connect(victim.name()).await.expect("the victim is there");
        let mut stranger = Child::start(HALF_MADE, &victim.name().to_string(), None);
        let heard = tokio::task::spawn_blocking(move || (stranger.hear(), stranger));
        let (_, mut stranger) = heard.await.expect("it tells");
        // From here on this thread runs no NIC, until the stranger is stopped.
        stranger.say("go on");
        stranger.hear();
        stranger.stop();
        let receive = victim.receive(Match::exactly(BITS));
        let (sent, received) = tokio::join!(peer.send(BITS, vec![7; 200_000]), receive);
        assert_eq!(received.expect("it was sent").body.len(), 200_000);
        sent.expect("it was received");
        let given_up = victim.nic().statistics().connections.timed_out;
        assert!(given_up <= 1, "{given_up} connections of the stranger were waited for before");
        stranger.resume();
    });
}
