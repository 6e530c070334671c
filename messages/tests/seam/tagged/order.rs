//! The order in which messages and receives meet.

use doorbell_messages::Match;
use futures_util::future::join_all;

use crate::ends::{Ends, Pair, body, check, shuffled};

/// A window that holds all messages of a test.
const WIDE: usize = 16 << 20;

pub async fn messages_of_one_sender_are_received_in_the_order_of_sending(ends: Ends) {
    let Pair { near: _near, far, peer } = ends.pair(WIDE).await;
    // Lengths that go by different ways, of which the longest ones are pulled.
    let len = |number: u64| [40_000, 0, 20_000, 700, 60, 4096][number as usize % 6];
    let sends: Vec<_> = (0..240).map(|number| peer.send(5, body(number, len(number)))).collect();
    for number in 0..240 {
        let message = far.receive(Match::exactly(5)).await.expect("it was sent");
        check(&message, number, len(number));
    }
    for sent in join_all(sends).await {
        sent.expect("it is sent");
    }
}

pub async fn receives_that_were_posted_first_get_the_first_messages(ends: Ends) {
    let Pair { near: _near, far, peer } = ends.pair(WIDE).await;
    let receives: Vec<_> = (0..100).map(|_| far.receive(Match::any())).collect();
    for bits in 0..100 {
        peer.send(bits, "").await.expect("it is sent");
    }
    for (bits, receive) in (0..).zip(receives) {
        assert_eq!(receive.await.expect("it was sent").bits, bits);
    }
}

pub async fn receives_of_different_masks_share_messages_in_the_order_of_posting(ends: Ends) {
    let Pair { near: _near, far, peer } = ends.pair(WIDE).await;
    let low = |bits| Match::bits(bits).mask(0xF);
    let patterns = [low(2), Match::any(), Match::exactly(0x12), low(2), Match::any(), low(3)];
    let receives = patterns.map(|pattern| far.receive(pattern));
    for bits in [0x33, 0x12, 0x12, 0x12, 0x44, 0x43] {
        peer.send(bits, "").await.expect("it is sent");
    }
    // The first message has the second receive, since the first does not take it, and so on.
    let expected = [0x12, 0x33, 0x12, 0x12, 0x44, 0x43];
    for (receive, expected) in receives.into_iter().zip(expected) {
        assert_eq!(receive.await.expect("it was sent").bits, expected);
    }
}

// The first messages take all of the window, and the program receives the last one first.
pub async fn a_message_behind_those_that_fill_the_window_is_received_first(ends: Ends) {
    let Pair { near: _near, far, peer } = ends.pair(4096).await;
    let sends: Vec<_> = (0..300).map(|bits| peer.send(bits, body(bits, 1000))).collect();
    for bits in (0..300).rev() {
        let message = far.receive(Match::exactly(bits)).await.expect("it was sent");
        check(&message, bits, 1000);
    }
    for send in sends {
        send.await.expect("it was received");
    }
}

// Each other receive reaches over held messages, so that those before are still to be had in order.
pub async fn held_messages_are_received_in_order_by_receives_of_any(ends: Ends) {
    let Pair { near: _near, far, peer } = ends.pair(4096).await;
    let sends: Vec<_> = (0..300).map(|bits| peer.send(bits, body(bits, 300))).collect();
    let (mut next, mut last) = (0, 299);
    while next <= last {
        let any = far.receive(Match::any()).await.expect("it was sent");
        assert_eq!(any.bits, next);
        check(&any, next, 300);
        next += 1;
        if next <= last {
            let exactly = far.receive(Match::exactly(last)).await.expect("it was sent");
            check(&exactly, last, 300);
            last -= 1;
        }
    }
    join_all(sends).await.into_iter().for_each(|sent| sent.expect("it was received"));
}

// Each message was compared with each receive, and each receive with all messages that were held.
pub async fn receives_that_wait_do_not_hold_up_messages_that_they_do_not_take(ends: Ends) {
    const COUNT: u64 = 3000;
    let Pair { near: _near, far, peer } = ends.pair(4096).await;
    let others: Vec<_> =
        (0..COUNT).map(|bits| far.receive(Match::exactly(1 << 40 | bits))).collect();
    let sends: Vec<_> = (0..COUNT).map(|bits| peer.send(bits, body(bits, 9))).collect();
    for bits in 0..COUNT {
        check(&far.receive(Match::exactly(bits)).await.expect("it was sent"), bits, 9);
    }
    join_all(sends).await.into_iter().for_each(|sent| sent.expect("it was received"));
    drop(others);
}

/// How many receives, or messages, wait at a time.
const MANY: u64 = 10_000;

pub async fn posted_receives_are_met_in_any_order(ends: Ends) {
    let Pair { near: _near, far, peer } = ends.pair(WIDE).await;
    let receives: Vec<_> = (0..MANY).map(|bits| far.receive(Match::exactly(bits))).collect();
    let sends: Vec<_> =
        shuffled(0..MANY, 1).into_iter().map(|bits| peer.send(bits, body(bits, 9))).collect();
    for (bits, receive) in (0..).zip(receives) {
        check(&receive.await.expect("it was sent"), bits, 9);
    }
    join_all(sends).await.into_iter().for_each(|sent| sent.expect("it is sent"));
}

pub async fn unexpected_messages_are_received_in_any_order(ends: Ends) {
    let Pair { near: _near, far, peer } = ends.pair(WIDE).await;
    let sends: Vec<_> = (0..MANY).map(|bits| peer.send(bits, body(bits, 9))).collect();
    join_all(sends).await.into_iter().for_each(|sent| sent.expect("it is sent"));
    for bits in shuffled(0..MANY, 2) {
        check(&far.receive(Match::exactly(bits)).await.expect("it was sent"), bits, 9);
    }
}
