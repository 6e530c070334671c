//! Probes: what waits, without receiving it.

use doorbell_messages::{Endpoint, Match};
use doorbell_simulation::Luck;
use futures_util::future::join_all;

use crate::ends::{Ends, Pair, body};

pub async fn a_message_that_waits_is_seen_by_a_probe(ends: Ends) {
    let Pair { near: _near, far, peer } = ends.pair(1 << 20).await;
    assert!(far.probe(Match::any()).is_none());
    peer.send(5, "five").await.expect("it is sent");
    peer.send(6, "behind").await.expect("it is sent");
    far.receive(Match::exactly(6)).await.expect("it was sent");
    for _ in 0..2 {
        let probed = far.probe(Match::any()).expect("it has come before the other");
        assert_eq!((probed.bits, probed.len), (5, 4));
    }
    let probed = far.probe(Match::any()).expect("it waits");
    probed.from.send(9, "answer").await.expect("it is sent");
    assert_eq!(far.receive(Match::exactly(5)).await.expect("it was sent").body, "five");
    assert!(far.probe(Match::any()).is_none());
}

pub async fn a_probe_sees_what_a_receive_of_the_same_pattern_would_take(ends: Ends) {
    let Pair { near: _near, far, peer } = ends.pair(1 << 20).await;
    let other = ends.open(0, Endpoint::builder()).await;
    let of_other = other.connect(far.name()).await.expect("it is there");
    let mut luck = Luck::new(4);
    for number in 0..200 {
        let sender = [&peer, &of_other][luck.below(2) as usize];
        sender.send(luck.below(8), body(number, luck.below(50) as usize)).await.expect("sent");
    }
    for sender in [&peer, &of_other] {
        sender.send(99, "last").await.expect("it is sent");
    }
    let lasts = [0, 1].map(|_| far.receive(Match::exactly(99)));
    let mut senders = Vec::new();
    for last in lasts {
        senders.push(last.await.expect("it was sent").from);
    }
    let mut left = 200;
    while left > 0 {
        let pattern = Match::bits(luck.below(8)).mask(luck.below(8));
        let pattern = match luck.below(3) {
            0 => pattern,
            of => pattern.from(&senders[of as usize - 1]),
        };
        let Some(probed) = far.probe(pattern) else { continue };
        let received = far.receive(pattern).test().expect("it waits").expect("it was sent");
        let (bits, len, from) = (received.bits, received.body.len(), received.from);
        assert_eq!((probed.bits, probed.len, probed.from), (bits, len, from));
        left -= 1;
    }
    assert!(far.probe(Match::any()).is_none());
}

// MPI promises that a program which probes again and again sees a message that was sent.
pub async fn a_message_behind_those_that_fill_the_window_is_seen_in_the_end(ends: Ends) {
    let Pair { near: _near, far, peer } = ends.pair(4096).await;
    let sends: Vec<_> = (0..20).map(|bits| peer.send(bits, body(bits, 1000))).collect();
    while far.probe(Match::exactly(19)).is_none() {
        tokio::task::yield_now().await;
    }
    for bits in (0..20).rev() {
        far.receive(Match::exactly(bits)).await.expect("it was sent");
    }
    join_all(sends).await.into_iter().for_each(|sent| sent.expect("it was received"));
}
