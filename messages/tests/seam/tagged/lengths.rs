//! Bodies of every length, and receives with less room.

use doorbell_messages::{Endpoint, Match, ReceiveError};

use crate::ends::{Ends, Pair, body, check};

/// The longest body that is tried, which is pulled in several blocks.
const LONGEST: usize = (2 << 20) + 3;

/// Returns lengths around each power of two, and around those of packets, payloads and blocks.
fn lengths() -> Vec<usize> {
    let powers = (0..=20).map(|power| 1 << power).chain([1500, 3000, 4200, 9000, 3 << 18]);
    let around = powers.flat_map(|len| [len - 1, len, len + 1]);
    let mut lengths: Vec<_> = around.chain([LONGEST]).collect();
    lengths.sort_unstable();
    lengths.dedup();
    lengths
}

pub async fn bodies_of_each_length_come_as_they_were_sent(ends: Ends) {
    let Pair { near: _near, far, peer } = ends.pair(1 << 20).await;
    for (number, len) in (0..).zip(lengths()) {
        // Posted before the message comes, and after.
        let expected = far.receive(Match::exactly(number));
        let sends = [0, 1].map(|_| peer.send(number, body(number, len)));
        check(&expected.await.expect("it was sent"), number, len);
        let unexpected = far.receive(Match::exactly(number)).await.expect("it was sent");
        check(&unexpected, number, len);
        for send in sends {
            send.await.expect("it was received");
        }
    }
}

pub async fn a_message_longer_than_messages_may_be_is_an_error_with_both_lengths(ends: Ends) {
    let far = ends.open(1, Endpoint::builder().longest(100_000)).await;
    let near = ends.open(0, Endpoint::builder()).await;
    let peer = near.connect(far.name()).await.expect("it is there");
    for len in [100_000, 100_001, 200_000] {
        let (receive, sent) = (far.receive(Match::exactly(1)), peer.send(1, body(1, len)));
        if len == 100_000 {
            check(&receive.await.expect("it is no longer"), 1, len);
        } else {
            let truncated = receive.await.expect_err("it is longer");
            assert_eq!(truncated, ReceiveError::Truncated { bits: 1, len, room: 100_000 });
        }
        sent.await.expect("a receive has taken it");
    }
    peer.send(2, "after").await.expect("it is sent");
    assert_eq!(far.receive(Match::exactly(2)).await.expect("it was sent").body, "after");
}

pub async fn a_message_longer_than_its_receive_is_an_error_with_both_lengths(ends: Ends) {
    let Pair { near: _near, far, peer } = ends.pair(1 << 20).await;
    for is_posted_first in [true, false] {
        let posted = is_posted_first.then(|| far.receive_at_most(3, Match::exactly(7)));
        peer.send(7, "seven").await.expect("it is sent");
        peer.send(7, "then").await.expect("it is sent");
        peer.send(8, "behind").await.expect("it is sent");
        assert_eq!(far.receive(Match::exactly(8)).await.expect("it was sent").body, "behind");
        let receive = posted.unwrap_or_else(|| far.receive_at_most(3, Match::any()));
        let truncated = receive.await.expect_err("it is longer");
        assert_eq!(truncated, ReceiveError::Truncated { bits: 7, len: 5, room: 3 });
        assert!(truncated.to_string().contains("3 bytes") && truncated.to_string().contains('5'));
        // The message is lost, and the one behind it is the next.
        assert_eq!(far.receive(Match::any()).await.expect("it was sent").body, "then");
    }
    assert!(far.probe(Match::any()).is_none());
}

pub async fn a_message_as_long_as_its_receive_has_room_is_received(ends: Ends) {
    let Pair { near: _near, far, peer } = ends.pair(1 << 20).await;
    for len in [0, 1, 64, 1000, 10_000, 100_000] {
        let (exactly, less) = (far.receive_at_most(len, Match::any()), len.checked_sub(1));
        let less = less.map(|room| far.receive_at_most(room, Match::any()));
        let sends = [0, 1].map(|_| peer.send(1, body(1, len)));
        check(&exactly.await.expect("it has room"), 1, len);
        match less {
            Some(less) => assert!(matches!(less.await, Err(ReceiveError::Truncated { .. }))),
            None => check(&far.receive_at_most(0, Match::any()).await.expect("room"), 1, 0),
        }
        for send in sends {
            send.await.expect("it was received");
        }
    }
}
