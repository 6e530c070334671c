//! Receives that are dropped with a message in hand, or with one on its way: the message keeps its
//! place among those of its sender.

use bytes::BytesMut;
use doorbell_messages::{Endpoint, Match, Message, ReceiveError};
use doorbell_simulation::Luck;
use futures_util::future::join_all;

use crate::ends::{Ends, Pair, body, check};

/// The tags of messages that the window has no room for, which share this bit.
const HELD: u64 = 0x10;

async fn next(far: &Endpoint, of: Match) -> Message {
    far.receive(of).await.expect("it was sent")
}

/// Waits until all messages before this one have come.
async fn is_past(far: &Endpoint, bits: u64) {
    next(far, Match::exactly(bits)).await;
}

// A message whose body was being pulled was nowhere when its receive was dropped, and the next
// message of the same tag was received first.
pub async fn a_long_message_keeps_its_place_when_its_receive_is_dropped(ends: Ends) {
    let Pair { near: _near, far, peer } = ends.pair(1 << 20).await;
    const LONG: usize = 4 << 20;
    for round in 0..4 {
        let mut receives = vec![far.receive(Match::exactly(1))];
        let long = peer.send(1, body(round, LONG));
        let small = [peer.send(1, "small"), peer.send(2, "behind")];
        is_past(&far, 2).await;
        // The receive that is posted next takes the message that is being pulled, and is dropped.
        for _ in 0..round {
            receives.clear();
            receives.push(far.receive(Match::any()));
        }
        receives.clear();
        check(&next(&far, Match::any()).await, round, LONG);
        assert_eq!(next(&far, Match::any()).await.body, "small");
        long.await.expect("it was pulled");
        join_all(small).await.into_iter().for_each(|sent| sent.expect("it is sent"));
    }
}

// A message that had come by an offer waited at the receiver when its receive was dropped, and the
// next receive took it although an earlier one was still held at the sender.
pub async fn a_message_that_came_ahead_goes_back_behind_those_that_are_held(ends: Ends) {
    let Pair { near: _near, far, peer } = ends.pair(4096).await;
    let fill = [0; 4].map(|bits| peer.send(bits, vec![0; 1000]));
    let held = [1, 2, 3, 4].map(|tag| peer.send(HELD | tag, vec![tag as u8; 1000]));
    let [two, three] = [2, 3].map(|tag| far.receive(Match::exactly(HELD | tag)));
    is_past(&far, HELD | 4).await;
    drop((three, two));
    for tag in 1..4 {
        let message = next(&far, Match::bits(HELD).mask(HELD)).await;
        assert_eq!((message.bits, message.body.len()), (HELD | tag, 1000));
    }
    for _ in &fill {
        next(&far, Match::exactly(0)).await;
    }
    join_all(fill.into_iter().chain(held)).await.into_iter().for_each(|sent| sent.expect("sent"));
}

pub async fn a_long_message_that_came_ahead_goes_back_behind_those_that_are_held(ends: Ends) {
    let Pair { near: _near, far, peer } = ends.pair(4096).await;
    let fill = [0; 4].map(|bits| peer.send(bits, vec![0; 1000]));
    let lens = [1000, 1 << 20, 1000, 100_000, 10];
    let held: Vec<_> = (0..).zip(lens).map(|(n, len)| peer.send(HELD | n, body(n, len))).collect();
    let dropped = [1, 2, 3].map(|tag| far.receive(Match::exactly(HELD | tag)));
    is_past(&far, HELD | 4).await;
    drop(dropped);
    for tag in 0..4 {
        let message = next(&far, Match::bits(HELD).mask(HELD)).await;
        assert_eq!(message.bits, HELD | tag);
        check(&message, tag, lens[tag as usize]);
    }
    for _ in &fill {
        next(&far, Match::exactly(0)).await;
    }
    join_all(fill.into_iter().chain(held)).await.into_iter().for_each(|sent| sent.expect("sent"));
}

pub async fn receives_that_are_dropped_at_any_moment_keep_the_order_of_each_tag(ends: Ends) {
    drops_race(ends, 1 << 20).await;
}

pub async fn receives_that_are_dropped_at_any_moment_keep_the_order_of_held_messages(ends: Ends) {
    drops_race(ends, 4096).await;
}

/// Posts receives of one tag or of any, of which many are dropped at any moment: each takes the
/// first message that is left of those that it matches.
async fn drops_race(ends: Ends, window: usize) {
    const COUNT: u64 = 300;
    let Pair { near: _near, far, peer } = ends.pair(window).await;
    let len = |number: u64| [8, 700, 3000, 40_000][number as usize * 7 % 4];
    let sends = tokio::spawn(async move {
        for chunk in 0..COUNT / 50 {
            let numbers = 50 * chunk..50 * (chunk + 1);
            let sends = numbers.map(|number| {
                peer.send((number << 8) | (number * 5 % 3), body(number, len(number)))
            });
            let sends: Vec<_> = sends.collect();
            join_all(sends).await.into_iter().for_each(|sent| sent.expect("it is sent"));
        }
        peer
    });
    let mut luck = Luck::new(window as u64);
    let mut left: Vec<_> = (0..COUNT).collect();
    while !left.is_empty() {
        let tag = (luck.below(3) > 0).then(|| luck.below(3));
        let of = tag.map_or(Match::any(), |tag| Match::bits(tag).mask(0xff));
        let Some(at) = left.iter().position(|number| tag.is_none_or(|tag| number * 5 % 3 == tag))
        else {
            continue;
        };
        let mut receive = far.receive(of);
        for _ in 0..luck.below(12) {
            tokio::task::yield_now().await;
        }
        if luck.below(3) > 0 {
            drop(receive);
            continue;
        }
        // A sender of few messages at a time may have to wait for other receives first.
        let message = match receive.test() {
            Some(message) => message,
            None if left[at] / 50 > left[0] / 50 => continue,
            None => receive.await,
        };
        let message = message.expect("it was sent");
        assert_eq!(message.bits >> 8, left[at], "for the tag {tag:?}");
        check(&message, left[at], len(left[at]));
        left.remove(at);
    }
    sends.await.expect("no panic");
    assert!(far.probe(Match::any()).is_none());
}

// A receive with too little room threw the message away as soon as the two met, and the error with
// the receive when that was dropped.
pub async fn a_message_too_long_for_a_dropped_receive_is_left_for_another(ends: Ends) {
    for len in [100, 3000, 1 << 20] {
        let Pair { near: _near, far, peer } = ends.pair(1 << 20).await;
        let short = far.receive_at_most(10, Match::exactly(1));
        let pieces = far.receive_into([BytesMut::with_capacity(20)], Match::exactly(2));
        let sends = [1, 2].map(|bits| peer.send(bits, body(bits, len)));
        let behind = peer.send(3, "behind");
        is_past(&far, 3).await;
        drop((short, pieces));
        let mut met = far.receive_at_most(10, Match::exactly(1));
        assert!(!met.cancel(), "the message is here");
        drop(met);
        for bits in [1, 2] {
            check(&next(&far, Match::any()).await, bits, len);
        }
        // Once the program has seen the error, the message is lost, as it is by MPI.
        let last = peer.send(4, body(4, len));
        let why = far.receive_at_most(10, Match::exactly(4)).await.expect_err("it is too long");
        assert_eq!(why, ReceiveError::Truncated { bits: 4, len, room: 10 });
        assert!(far.probe(Match::any()).is_none());
        for sent in join_all(sends.into_iter().chain([behind, last])).await {
            sent.expect("it is sent");
        }
    }
}

pub async fn a_held_message_too_long_for_a_dropped_receive_is_left_for_another(ends: Ends) {
    let Pair { near: _near, far, peer } = ends.pair(4096).await;
    let fill = [0; 4].map(|bits| peer.send(bits, vec![0; 1000]));
    let held = [1, 2, 3].map(|tag| peer.send(HELD | tag, body(tag, 1000)));
    let short = far.receive_at_most(10, Match::exactly(HELD | 2));
    is_past(&far, HELD | 3).await;
    drop(short);
    for tag in [1, 2] {
        check(&next(&far, Match::bits(HELD).mask(HELD)).await, tag, 1000);
    }
    for _ in &fill {
        next(&far, Match::exactly(0)).await;
    }
    join_all(fill.into_iter().chain(held)).await.into_iter().for_each(|sent| sent.expect("sent"));
}
