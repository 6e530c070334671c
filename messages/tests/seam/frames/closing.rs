//! Endpoints that are closed in order.

use std::time::Duration;

use doorbell_messages::WhyGivenUp;
use doorbell_messages::frames::{Endpoint, Match, SendError};
use futures_util::FutureExt;

use crate::frames::common::{body, emp, in_time, received, rmpp};
use crate::frames::everywhere::run;

/// A program that was to end had to keep all its sends and await each.
#[test]
fn an_endpoint_that_is_closed_has_sent_all_and_sends_no_more() {
    for (device, policy) in [("udp:127.0.0.1:0", emp()), ("shm", rmpp())] {
        run(async {
            let open = || Endpoint::builder().policy(policy).open(device);
            let near = open().await.expect("it opens");
            let far = open().await.expect("it opens");
            let peer = near.connect(far.name()).await.expect("there is a way");
            for bits in 0..20 {
                drop(peer.send(bits, body(bits, 30_000)));
            }
            let closing = near.clone();
            let mut closed = tokio::spawn(async move { closing.close().await });
            for bits in 0..20 {
                assert!((&mut closed).now_or_never().is_none(), "{bits} were received");
                let message = received(far.receive_at_most(1 << 20, Match::exactly(bits))).await;
                assert!(message.body == body(bits, 30_000));
            }
            in_time(closed).await.expect("no panic").expect("the peer has all");
            let late = in_time(peer.send(99, "late")).await.expect_err("it is closed");
            assert!(matches!(late, SendError::Closed { .. }), "{late}");
            near.close().await.expect("there is nothing left to do");
        });
    }
}

#[test]
fn a_peer_that_does_not_take_all_is_named_by_the_error_of_closing() {
    run(async {
        let builder = Endpoint::builder().patience(Duration::from_millis(200));
        let near = builder.open("udp:127.0.0.1:0").await.expect("it opens");
        let far = Endpoint::open("udp:127.0.0.1:0").await.expect("it opens");
        let other = Endpoint::open("udp:127.0.0.1:0").await.expect("it opens");
        let receiving = other.receive_at_most(1 << 20, Match::any());
        let peers = [&far, &other].map(|end| near.connect(end.name()));
        for peer in futures_util::future::join_all(peers).await {
            drop(peer.expect("there is a way").send(7, body(7, 30_000)));
        }
        received(receiving).await;
        let why = in_time(near.close()).await.expect_err("one has not received");
        assert_eq!((why.peers, why.given_up.len()), (2, 1), "{why}");
        assert_eq!(why.given_up[0].peer, far.name().to_string());
        assert!(matches!(why.given_up[0].why, WhyGivenUp::Late(_)), "{why}");
    });
}

// Whoever asked first took the losses with it, and the others heard of none.
#[test]
fn all_who_close_an_endpoint_hear_of_the_same_losses_although_one_gives_up() {
    run(async {
        let near = Endpoint::open("udp:127.0.0.1:0").await.expect("it opens");
        let far = Endpoint::open("udp:127.0.0.1:0").await.expect("it opens");
        let other = Endpoint::open("udp:127.0.0.1:0").await.expect("it opens");
        let name = far.name().to_string();
        let [to_far, to_other] = [&far, &other].map(|end| near.connect(end.name()));
        let [to_far, to_other] =
            [to_far.await, to_other.await].map(|peer| peer.expect("there is a way"));
        let never = to_far.send(7, body(7, 30_000));
        drop(to_other.send(7, body(7, 30_000)));
        let mut closes: Vec<_> = (0..3).map(|_| Box::pin(near.close())).collect();
        assert!(closes.iter_mut().all(|close| close.now_or_never().is_none()));
        while far.probe(Match::any()).is_none() {
            tokio::task::yield_now().await;
        }
        drop(far);
        in_time(never).await.expect_err("nobody has received it");
        assert!(closes.iter_mut().all(|close| close.now_or_never().is_none()));
        drop(closes.remove(0));
        received(other.receive_at_most(1 << 20, Match::any())).await;
        for close in closes.into_iter().chain([Box::pin(near.close())]) {
            let why = in_time(close).await.expect_err("one has not received");
            assert_eq!((why.peers, why.given_up.len()), (2, 1), "{why}");
            assert_eq!(why.given_up[0].peer, name);
            assert!(matches!(why.given_up[0].why, WhyGivenUp::Gone(_)), "{why}");
        }
    });
}
