//! Sends that are done when their messages are received.

use doorbell_messages::{Match, ReceiveError};
use doorbell_simulation::Luck;

use crate::ends::{Ends, Pair, body};

pub async fn a_synchronous_send_is_done_when_its_message_is_received(ends: Ends) {
    let Pair { near: _near, far, peer } = ends.pair(1 << 20).await;
    let mut send = peer.send_synchronously(7, "seven");
    peer.send(8, "behind").await.expect("it is sent");
    far.receive(Match::exactly(8)).await.expect("it was sent");
    assert!(send.test().is_none(), "nobody has received it");
    far.receive(Match::exactly(7)).await.expect("it was sent");
    send.await.expect("it was received");
    let posted = far.receive(Match::any());
    peer.send_synchronously(9, "nine").await.expect("a receive waits for it");
    assert_eq!(posted.await.expect("it was sent").body, "nine");
}

pub async fn a_synchronous_send_of_a_held_message_is_done_when_its_message_is_received(ends: Ends) {
    let Pair { near: _near, far, peer } = ends.pair(4096).await;
    let sends: Vec<_> = (0..20).map(|bits| peer.send(bits, body(bits, 500))).collect();
    let mut held = peer.send_synchronously(20, "held");
    let mut behind = peer.send_synchronously(21, "behind");
    // The window is full, and the message that a receive asks for comes in spite of that.
    far.receive(Match::exactly(21)).await.expect("it was sent");
    (&mut behind).await.expect("it was received");
    for bits in 0..20 {
        assert!(held.test().is_none(), "nobody has received it");
        assert_eq!(far.receive(Match::any()).await.expect("it was sent").bits, bits);
    }
    assert_eq!(far.receive(Match::any()).await.expect("it was sent").bits, 20);
    held.await.expect("it was received");
    for send in sends {
        send.await.expect("it was received");
    }
}

pub async fn a_synchronous_send_into_too_little_room_is_done(ends: Ends) {
    let Pair { near: _near, far, peer } = ends.pair(1 << 20).await;
    let send = peer.send_synchronously(7, "seven");
    let truncated = far.receive_at_most(2, Match::any()).await.expect_err("it is longer");
    assert_eq!(truncated, ReceiveError::Truncated { bits: 7, len: 5, room: 2 });
    send.await.expect("a receive has taken it");
}

pub async fn each_synchronous_send_is_done_by_its_own_receive(ends: Ends) {
    let Pair { near: _near, far, peer } = ends.pair(4096).await;
    let mut luck = Luck::new(5);
    let sends = (0..200).map(|bits| (bits, peer.send_synchronously(bits, body(bits, 100))));
    let mut sends: Vec<_> = sends.collect();
    while !sends.is_empty() {
        let (bits, send) = sends.swap_remove(luck.below(sends.len() as u64) as usize);
        far.receive(Match::exactly(bits)).await.expect("it was sent");
        send.await.expect("it was received");
        let done = sends.iter_mut().find_map(|(bits, send)| send.test().map(|_| *bits));
        assert_eq!(done, None, "nobody has received it");
    }
}
