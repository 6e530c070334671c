//! The promises.

use doorbell_messages::frames::{Endpoint, Match, ReceiveError, SendError, Unsent, WhyGone};

use crate::frames::common::{
    Ends, Pair, body, both_offloaded, emp, in_time, receive_offloaded, received, sent,
};

/// Room for anything here.
const ROOM: usize = 1 << 24;

pub async fn messages_of_all_lengths_arrive_as_they_were_sent(ends: Ends) {
    let Pair { near: _near, far, peer, .. } = ends.pair().await;
    for len in [0, 1, 16, 17, 1000, 3700, 3800, 4096, 10_000, 65_537, 1_000_000] {
        let receiving = far.receive_at_most(ROOM, Match::exactly(len as u64));
        let sending = peer.send(len as u64, body(7, len));
        let message = received(receiving).await;
        assert_eq!(message.bits, len as u64);
        assert!(message.body == body(7, len), "{len} bytes");
        sent(sending).await;
    }
    assert_eq!(far.statistics().malformed, 0);
}

pub async fn messages_are_received_by_what_they_match(ends: Ends) {
    let Pair { near: _near, far, peer, .. } = ends.pair().await;
    let sends = [3, 5, 4].map(|bits| peer.send(bits, body(bits, 9000)));
    let four = received(far.receive_at_most(ROOM, Match::exactly(4))).await;
    assert_eq!((four.bits, four.body.len()), (4, 9000));
    let odd = far.receive_at_most(ROOM, Match::bits(1).mask(1).from(&four.from));
    assert_eq!(received(odd).await.bits, 3);
    assert_eq!(received(far.receive_at_most(ROOM, Match::any())).await.bits, 5);
    for send in sends {
        sent(send).await;
    }
}

pub async fn receives_that_were_posted_first_get_the_first_messages(ends: Ends) {
    let Pair { near: _near, far, peer, .. } = ends.pair().await;
    let receives: Vec<_> = (0..100).map(|_| far.receive_at_most(ROOM, Match::any())).collect();
    let sends: Vec<_> = (0..100).map(|bits| peer.send(bits, body(bits, 5000))).collect();
    for (bits, receive) in (0..).zip(receives) {
        let message = received(receive).await;
        assert_eq!(message.bits, bits);
        assert!(message.body == body(bits, 5000));
    }
    for send in sends {
        sent(send).await;
    }
}

pub async fn messages_sent_at_once_arrive_at_receives_posted_one_after_another(ends: Ends) {
    let Pair { near: _near, far, peer, .. } = ends.pair().await;
    let sends: Vec<_> = (0..20).map(|bits| peer.send(bits, body(bits, 50_000))).collect();
    for bits in 0..20 {
        let message = received(far.receive_at_most(ROOM, Match::any())).await;
        assert_eq!(message.bits, bits);
        assert!(message.body == body(bits, 50_000));
    }
    for send in sends {
        sent(send).await;
    }
}

pub async fn a_message_without_a_receive_arrives_once_a_receive_is_posted(ends: Ends) {
    let Pair { near: _near, far, peer, .. } = ends.pair().await;
    let mut sending = peer.send(7, body(7, 20_000));
    let dropped = async {
        while far.statistics().dropped == 0 {
            tokio::task::yield_now().await;
        }
    };
    in_time(dropped).await;
    assert!(sending.test().is_none(), "nobody has received it");
    assert_eq!(far.statistics().messages_received, 0);
    let (bits, len, _) = far.probe(Match::any()).expect("it is noted");
    assert_eq!((bits, len), (7, 20_000));
    assert!(received(far.receive_at_most(ROOM, Match::any())).await.body == body(7, 20_000));
    sent(sending).await;
    assert_eq!(far.statistics().messages_received, 1);
}

pub async fn a_message_longer_than_its_receive_is_an_error_with_both_lengths(ends: Ends) {
    let Pair { near, far, peer, .. } = ends.pair().await;
    for is_posted_first in [true, false] {
        let early = is_posted_first.then(|| far.receive_at_most(300, Match::any()));
        let sending = peer.send(7, body(7, 50_000));
        let receiving = early.unwrap_or_else(|| far.receive_at_most(300, Match::any()));
        let error = in_time(receiving).await.expect_err("it is longer");
        let name = near.name().clone();
        let truncated = ReceiveError::Truncated { peer: name, bits: 7, len: 50_000, room: 300 };
        assert_eq!(error, truncated);
        let text = error.to_string();
        assert!(text.contains("300") && text.contains("50000"), "{text}");
        sent(sending).await;
    }
    let receiving = far.receive_at_most(300, Match::any());
    sent(peer.send(8, body(8, 300))).await;
    assert!(received(receiving).await.body == body(8, 300));
}

pub async fn receives_that_are_cancelled_take_no_messages(ends: Ends) {
    let Pair { near: _near, far, peer, .. } = ends.pair().await;
    let mut cancelled = far.receive_at_most(ROOM, Match::any());
    assert!(cancelled.cancel() && !cancelled.cancel());
    drop(far.receive_at_most(ROOM, Match::any()));
    let last = far.receive_at_most(ROOM, Match::any());
    sent(peer.send(1, body(1, 100))).await;
    assert_eq!(received(last).await.bits, 1);
    assert_eq!(in_time(cancelled).await.expect_err("it is cancelled"), ReceiveError::Cancelled);
}

pub async fn messages_go_both_ways_at_once(ends: Ends) {
    let Pair { near, far, peer, back } = ends.pair().await;
    let mut waiting = Vec::new();
    for number in 0..60_u64 {
        let len = number as usize * 700;
        for (at, to) in [(&near, &back), (&far, &peer)] {
            waiting.push((number, at.receive_at_most(ROOM, Match::exactly(number))));
            drop(to.send(number, body(number, len)));
        }
    }
    for (number, receiving) in waiting {
        let message = received(receiving).await;
        assert!(message.body == body(number, number as usize * 700), "message {number}");
    }
}

pub async fn an_endpoint_that_was_never_named_is_answered(ends: Ends) {
    let open = |at: usize| Endpoint::builder().policy(ends.policy).open(ends.devices[at]);
    let near = open(0).await.expect("the near endpoint opens");
    let far = open(1).await.expect("the far endpoint opens");
    let peer = near.connect(far.name().to_string()).await.expect("there is a way");
    let (asked, answered) =
        (far.receive_at_most(ROOM, Match::any()), near.receive_at_most(ROOM, Match::any()));
    drop(peer.send(1, body(1, 30_000)));
    let asked = received(asked).await;
    assert_eq!(asked.from.name(), near.name());
    sent(asked.from.send(2, asked.body.clone())).await;
    assert!(received(answered).await.body == asked.body);
}

pub async fn what_is_under_way_when_a_peer_closes_ends_with_an_error(ends: Ends) {
    let Pair { near, far, peer, back } = ends.pair().await;
    // The far endpoint has to know of the near one, to tell it.
    let receiving = near.receive_at_most(ROOM, Match::any());
    sent(back.send(1, body(1, 10))).await;
    received(receiving).await;
    let never = peer.send(2, body(2, 10_000));
    drop(far);
    let error = in_time(never).await.expect_err("nobody has received it");
    let (name, what) = (peer.name().to_string().into(), Unsent::Bytes(10_000));
    assert_eq!(error, SendError::Gone { peer: name, what, why: WhyGone::Closed });
    let waits = near.receive_at_most(ROOM, Match::any());
    drop(near);
    assert_eq!(in_time(waits).await.expect_err("it is over"), ReceiveError::Closed);
    let late = in_time(peer.send(3, body(3, 5))).await.expect_err("it is over");
    assert!(matches!(late, SendError::Closed { what: Unsent::Bytes(5), .. }), "{late}");
}

pub async fn receives_from_one_peer_end_with_an_error_when_that_peer_closes(ends: Ends) {
    let Pair { near, far, peer, .. } = ends.pair().await;
    let from_far = near.receive_at_most(ROOM, Match::any().from(&peer));
    let from_any = near.receive_at_most(ROOM, Match::any());
    let gone = ReceiveError::PeerGone { peer: far.name().clone(), why: WhyGone::Closed };
    drop(far);
    assert_eq!(in_time(from_far).await.expect_err("the peer has closed"), gone);
    let late = near.receive_at_most(ROOM, Match::exactly(7).from(&peer));
    assert_eq!(in_time(late).await.expect_err("the peer has closed"), gone);
    // A receive from any peer takes the message of another.
    let other = Endpoint::builder().policy(ends.policy).open(ends.devices[1]).await;
    let other = other.expect("another endpoint opens");
    let back = other.connect(near.name()).await.expect("there is a way");
    sent(back.send(3, body(3, 10_000))).await;
    assert!(received(from_any).await.body == body(3, 10_000));
}

pub async fn frames_are_placed_where_that_is_offloaded(ends: Ends) {
    let Pair { near, far, peer, .. } = ends.pair().await;
    let is_offloaded = ends.policy == receive_offloaded() || ends.policy == both_offloaded();
    let receiving = far.receive_at_most(ROOM, Match::any());
    sent(peer.send(7, body(7, 500_000))).await;
    assert!(received(receiving).await.body == body(7, 500_000));
    let (here, there) = (near.statistics(), far.statistics());
    assert_eq!(there.placed > 0, is_offloaded, "{there:?}");
    if is_offloaded {
        // All but the first frame, which comes with the request to send.
        let frames = 500_000_u64.div_ceil(3792);
        assert!(there.placed + 2 > frames, "{there:?}");
    }
    assert_eq!(here.acknowledgements, 0);
    // A frame that is repeated, because the acknowledgement was late, is acknowledged again.
    let all = 1..=1 + there.repeated;
    assert!(all.contains(&there.acknowledgements) || ends.policy == emp(), "{there:?}");
}
