//! A stranger that greets as no endpoint of tagged messages would.

use bytes::Bytes;
use doorbell_am::{self as am, Handlers};
use doorbell_kit::effort;
use doorbell_messages::{Endpoint, Match};
use doorbell_simulation::Luck;

use crate::hostile::stage::{Bounded, Requests, Stage, Stranger};
use crate::wire::{EAGER, FREED, GREETING, greeting, heading};

pub async fn bytes_that_are_no_greeting_are_answered_by_none(device: &str) {
    let stage = Stage::open(device, Requests::Handled).await;
    let (mut luck, whole) = (Luck::new(1), greeting(4096, "udp:127.0.0.1:1#2"));
    for len in 0..whole.len() {
        let answer = stage.stranger.greet(whole.slice(..len)).await;
        assert_eq!(answer.is_empty(), len < GREETING, "a greeting cut off at {len}");
        let random: Bytes = (0..len).map(|_| luck.draw() as u8).collect();
        assert!(stage.stranger.greet(random).await.is_empty(), "{len} random bytes");
    }
    for (len, is_refused) in [(400, false), (401, true), (3000, true)] {
        let answer = stage.stranger.greet(greeting(4096, &"n".repeat(len))).await;
        assert_eq!(answer.is_empty(), is_refused, "a name of {len} bytes");
    }
    let mut other_version = whole.to_vec();
    other_version[7] = 99;
    assert!(stage.stranger.greet(other_version.into()).await.is_empty());
    stage.is_well().await;
}

pub async fn a_window_without_bounds_grows_no_further(device: &str) {
    let stage = Stage::open(device, Requests::Handled).await;
    stage.stranger.greet(greeting(u64::MAX, "a stranger")).await;
    for cost in [1, u64::MAX] {
        stage.stranger.say(FREED, &[cost], &[]).await;
    }
    stage.stranger.is_heard().await;
    let send = stage.to_stranger.send(1, vec![7; 1000]);
    send.await.expect("there is room");
    stage.is_well().await;
}

pub async fn a_stranger_that_has_not_greeted_is_not_heard(device: &str) {
    let stage = Stage::open(device, Requests::Handled).await;
    let stranger = am::Endpoint::open(device, Handlers::new()).await.expect("the device opens");
    let to_victim = stranger.connect(stage.victim.name()).await.expect("it is there");
    let stranger = Stranger::new(stranger, to_victim);
    let (before, mut receive) =
        (stage.victim.statistics().malformed, stage.victim.receive(Match::any()));
    for bits in 0..10 {
        stranger.say(EAGER, &[bits, heading(0, false, false), 0], &[]).await;
    }
    stranger.is_heard().await;
    assert_eq!(stage.victim.statistics().malformed - before, 10);
    assert!(receive.test().is_none() && receive.cancel());
    stage.is_well().await;
}

// The stranger's messages were taken for the other peer's, and with the stranger the peer had gone.
pub async fn a_stranger_by_another_peers_name_is_not_that_peer(device: &str) {
    let stage = Stage::open(device, Requests::Handled).await;
    let stranger = am::Endpoint::open(device, Handlers::new()).await.expect("the device opens");
    let to_victim = stranger.connect(stage.victim.name()).await.expect("it is there");
    let stranger = Stranger::new(stranger, to_victim);
    stranger.greet(greeting(4096, &stage.good_name())).await;
    let mut receive = stage.victim.receive(Match::exactly(1 << 40).from(&stage.victim_to_good));
    stranger.say(EAGER, &[1 << 40, heading(0, false, false), 0], &[]).await;
    stranger.is_heard().await;
    assert!(receive.test().is_none(), "the good peer has sent nothing");
    drop(stranger);
    stage.is_well().await;
}

// Each greeting was given a token of its own, which was kept for as long as the peer was there.
pub async fn greetings_without_end_take_the_memory_of_one(device: &str) {
    let stage = Stage::open(device, Requests::Handled).await;
    let whole = greeting(4096, "udp:127.0.0.1:1#2");
    let greets = async || assert!(!stage.stranger.greet(whole.clone()).await.is_empty());
    for _ in 0..500 {
        greets().await;
    }
    let bounded = Bounded::to(128 << 10);
    for number in 0..effort(8_000, 500_000) {
        greets().await;
        bounded.check(format_args!("after greeting {number}"));
    }
    stage.is_well().await;
}

// Whoever greeted by the name first was taken for the endpoint, and got the messages to it.
pub async fn an_endpoint_is_connected_to_although_a_stranger_has_its_name(device: &str) {
    let stage = Stage::open(device, Requests::Handled).await;
    let open = || Endpoint::builder().endpoint(|below| below.service(77));
    let named = open().open(device).await.expect("it opens");
    let stranger = am::Endpoint::open(device, Handlers::new()).await.expect("the device opens");
    let to_victim = stranger.connect(stage.victim.name()).await.expect("it is there");
    let stranger = Stranger::new(stranger, to_victim);
    stranger.greet(greeting(4096, &named.name().to_string())).await;
    let peer = stage.victim.connect(named.name()).await.expect("it is there");
    let (sent, received) = tokio::join!(
        peer.send_synchronously(5, "for the endpoint"),
        named.receive(Match::exactly(5)),
    );
    sent.expect("the endpoint has received it");
    assert_eq!(received.expect("it was sent").body, "for the endpoint");
    drop(stranger);
    stage.is_well().await;
}
