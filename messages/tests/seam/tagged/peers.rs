//! Many peers, and peers that go.

use doorbell_messages::{Endpoint, Match, ReceiveError, SendError, Unsent, WhyGone};
use doorbell_verbs::{Ending, Private};
use futures_util::future::join_all;

use crate::ends::{Ends, Over, Pair, Runs, body, check, inline, run};

pub async fn messages_of_many_senders_interleave_and_each_keeps_its_order(ends: Ends) {
    const SENDERS: u64 = 8;
    const COUNT: u64 = 100;
    let far = ends.open(1, Endpoint::builder().window(4096)).await;
    let mut senders = Vec::new();
    for _ in 0..SENDERS {
        let sender = ends.open(0, Endpoint::builder().window(4096)).await;
        let peer = sender.connect(far.name()).await.expect("it is there");
        senders.push((sender, peer));
    }
    let sends = (0..).zip(&senders).map(|(sender, (_, peer))| {
        let peer = peer.clone();
        tokio::spawn(async move {
            let len = |number: u64| (number * (sender + 3) % 400) as usize;
            let sends = (0..COUNT)
                .map(|number| peer.send(sender << 32 | number, body(number, len(number))));
            let sends: Vec<_> = sends.collect();
            join_all(sends).await.into_iter().for_each(|sent| sent.expect("it is sent"));
        })
    });
    let sends: Vec<_> = sends.collect();
    let mut next = [0; SENDERS as usize];
    for turn in 0..SENDERS * COUNT {
        // Half of the receives take any sender's message, and half the next of one sender.
        let one = turn % SENDERS;
        let of_one = Match::bits(one << 32).mask(!0 << 32);
        let is_any = turn % 2 == 0 || next[one as usize] == COUNT;
        let message = far.receive(if is_any { Match::any() } else { of_one }).await;
        let message = message.expect("it was sent");
        let (sender, number) = (message.bits >> 32, message.bits & 0xFFFF_FFFF);
        assert!(is_any || sender == one);
        assert_eq!(number, next[sender as usize], "of sender {sender}");
        check(&message, number, (number * (sender + 3) % 400) as usize);
        next[sender as usize] += 1;
    }
    for send in sends {
        send.await.expect("no panic");
    }
}

pub async fn endpoints_that_connect_to_each_other_send_both_ways(ends: Ends) {
    let builder = || Endpoint::builder().window(4096);
    let (near, far) = (ends.open(0, builder()).await, ends.open(1, builder()).await);
    let (far_of_near, near_of_far) =
        tokio::join!(near.connect(far.name()), far.connect(near.name()));
    let far_of_near = far_of_near.expect("it is there");
    let near_of_far = near_of_far.expect("it is there");
    let sends: Vec<_> = (0..100)
        .flat_map(|bits| [far_of_near.send(bits, "to far"), near_of_far.send(bits, "to near")])
        .collect();
    for bits in 0..100 {
        let (at_near, at_far) = tokio::join!(near.receive(Match::any()), far.receive(Match::any()));
        let (at_near, at_far) = (at_near.expect("it was sent"), at_far.expect("it was sent"));
        assert_eq!((at_near.bits, at_near.body), (bits, "to near".into()));
        assert_eq!((at_far.bits, at_far.body), (bits, "to far".into()));
    }
    join_all(sends).await.into_iter().for_each(|sent| sent.expect("it is sent"));
}

pub async fn what_waits_for_a_peer_that_has_gone_ends_with_an_error(ends: Ends) {
    let Pair { near, far, peer } = ends.pair(4096).await;
    let receive = near.receive(Match::any().from(&peer));
    let sends: Vec<_> = (0..100).map(|bits| peer.send_synchronously(bits, vec![7; 1000])).collect();
    drop(far);
    let gone = receive.await.expect_err("the only sender has gone");
    assert!(matches!(gone, ReceiveError::PeerGone { .. }), "{gone}");
    for send in sends {
        let gone = send.await.expect_err("nobody has received it");
        assert!(matches!(gone, SendError::Gone { what: Unsent::Bytes(1000), .. }), "{gone}");
    }
    let late = peer.send(1, "late").await.expect_err("the peer has gone");
    assert!(matches!(late, SendError::Gone { what: Unsent::Bytes(4), .. }), "{late}");
    let late = near.receive(Match::any().from(&peer)).await.expect_err("the peer has gone");
    assert!(matches!(late, ReceiveError::PeerGone { .. }), "{late}");
}

/// The peer is one that has connected here, whose name only its greeting has told.
pub async fn errors_name_a_peer_that_has_connected_here(ends: Ends) {
    let Pair { near, far, peer } = ends.pair(4096).await;
    peer.send(0, "hello").await.expect("it is sent");
    let hello = far.receive(Match::any()).await.expect("it was sent");
    let receive = far.receive(Match::any().from(&hello.from));
    let sends: Vec<_> = (0..100).map(|bits| hello.from.send(bits, vec![7; 1000])).collect();
    let synchronous = hello.from.send_synchronously(1, "few");
    let name: Box<str> = near.name().to_string().into();
    drop(near);
    let gone = receive.await.expect_err("the only sender has gone");
    let why = WhyGone::Ended(Ending::PeerLeft { private: Private::default() });
    assert_eq!(gone, ReceiveError::PeerGone { peer: name.clone(), why: why.clone() });
    let mut lost = 0;
    for send in sends {
        if let Err(gone) = send.await {
            let (peer, what, why) = (name.clone(), Unsent::Bytes(1000), why.clone());
            assert_eq!(gone, SendError::Gone { peer, what, why });
            lost += 1;
        }
    }
    assert!(lost > 90, "the window has no room for more");
    let gone = synchronous.await.expect_err("nobody has received it");
    assert_eq!(gone, SendError::Gone { peer: name, what: Unsent::Bytes(3), why });
    let gone = hello.from.send(1, "late").await.expect_err("the peer has gone");
    assert!(matches!(gone, SendError::Gone { what: Unsent::Bytes(4), .. }), "{gone}");
}

// The receive waited for ever, because other messages of the peer were there.
pub async fn a_receive_from_a_peer_that_has_gone_takes_what_has_come_or_ends(ends: Ends) {
    let Pair { near, far, peer } = ends.pair(1 << 20).await;
    peer.send(0, "hello").await.expect("it is sent");
    let from = far.receive(Match::any()).await.expect("it was sent").from;
    peer.send(5, "five").await.expect("it is sent");
    peer.send(6, "six").await.expect("it is sent");
    far.receive(Match::exactly(6)).await.expect("it was sent");
    let last = far.receive(Match::exactly(7).from(&from));
    drop(near);
    let gone = last.await.expect_err("the only sender has gone");
    assert!(matches!(gone, ReceiveError::PeerGone { .. }), "{gone}");
    let gone = far.receive(Match::exactly(6).from(&from)).await.expect_err("no such message");
    assert!(matches!(gone, ReceiveError::PeerGone { .. }), "{gone}");
    assert_eq!(far.receive(Match::any().from(&from)).await.expect("it has come").body, "five");
    let gone = far.receive(Match::any().from(&from)).await.expect_err("the peer has gone");
    assert!(matches!(gone, ReceiveError::PeerGone { .. }), "{gone}");
}

async fn sends_to_itself(ends: Ends) {
    let own = ends.open(0, Endpoint::builder().window(4096)).await;
    let itself = own.connect(own.name()).await.expect("the device reaches itself");
    let sends: Vec<_> = (0..100).map(|bits| itself.send(bits, body(bits, 100))).collect();
    let synchronous = itself.send_synchronously(100, "last");
    for bits in (0..100).rev() {
        check(&own.receive(Match::exactly(bits)).await.expect("it was sent"), bits, 100);
    }
    let last = own.receive(Match::any()).await.expect("it was sent");
    assert_eq!(last.bits, 100);
    join_all(sends).await.into_iter().for_each(|sent| sent.expect("it was received"));
    synchronous.await.expect("it was received");
}

#[test]
fn over_shared_memory_an_endpoint_sends_to_itself() {
    run(Runs::CurrentThread, Over::Shm, inline(), sends_to_itself);
}

#[test]
fn over_sockets_an_endpoint_sends_to_itself() {
    run(Runs::MultiThread, Over::Udp, inline(), sends_to_itself);
}
