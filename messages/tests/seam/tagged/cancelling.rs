//! Receives that are cancelled before, after and while their messages come.

use doorbell_messages::{Match, ReceiveError};
use doorbell_simulation::Luck;
use futures_util::future::join_all;

use crate::ends::{Ends, Pair};

pub async fn receives_that_are_cancelled_take_no_messages(ends: Ends) {
    let Pair { near: _near, far, peer } = ends.pair(1 << 20).await;
    let mut cancelled = far.receive(Match::any());
    assert!(cancelled.cancel() && !cancelled.cancel());
    drop(far.receive(Match::any()));
    let last = far.receive(Match::any());
    peer.send(1, "one").await.expect("it is sent");
    assert_eq!(last.await.expect("it was sent").bits, 1);
    assert_eq!(cancelled.await.expect_err("it is cancelled"), ReceiveError::Cancelled);
}

pub async fn a_receive_that_has_met_its_message_is_not_cancelled(ends: Ends) {
    let Pair { near: _near, far, peer } = ends.pair(1 << 20).await;
    let (mut met, behind) = (far.receive(Match::any()), far.receive(Match::exactly(2)));
    peer.send(1, "one").await.expect("it is sent");
    peer.send(2, "two").await.expect("it is sent");
    behind.await.expect("it was sent");
    assert!(!met.cancel(), "the message before has come");
    assert_eq!(met.test().expect("it has come").expect("it was sent").body, "one");
    // A receive that meets its message when it is posted.
    peer.send(3, "three").await.expect("it is sent");
    peer.send(4, "four").await.expect("it is sent");
    far.receive(Match::exactly(4)).await.expect("it was sent");
    let mut met = far.receive(Match::exactly(3));
    assert!(!met.cancel());
    assert_eq!(met.await.expect("it was sent").body, "three");
}

pub async fn messages_of_dropped_receives_wait_again_where_they_were(ends: Ends) {
    let Pair { near: _near, far, peer } = ends.pair(1 << 20).await;
    let send = async |bits, body: &'static str| peer.send(bits, body).await.expect("it is sent");
    let [one, two] = [1, 2].map(|bits| far.receive(Match::exactly(bits)));
    for (bits, body) in [(1, "first"), (1, "second"), (2, "third"), (3, "behind")] {
        send(bits, body).await;
    }
    far.receive(Match::exactly(3)).await.expect("it was sent");
    drop((two, one));
    for body in ["first", "second", "third"] {
        assert_eq!(far.receive(Match::any()).await.expect("it was sent").body, body);
    }
    // Another receive waits for such a message already.
    let [dropped, waits] = [4, 4].map(|bits| far.receive(Match::exactly(bits)));
    send(4, "fourth").await;
    send(3, "behind").await;
    far.receive(Match::exactly(3)).await.expect("it was sent");
    drop(dropped);
    assert_eq!(waits.await.expect("it was sent").body, "fourth");
    // A receive that meets its message when it is posted.
    send(5, "fifth").await;
    send(3, "behind").await;
    far.receive(Match::exactly(3)).await.expect("it was sent");
    drop(far.receive(Match::exactly(5)));
    assert_eq!(far.receive(Match::any()).await.expect("it was sent").body, "fifth");
}

pub async fn long_messages_of_dropped_receives_are_not_lost(ends: Ends) {
    let Pair { near: _near, far, peer } = ends.pair(1 << 20).await;
    let mut luck = Luck::new(7);
    for round in 0..20_u8 {
        let body = vec![round; 100_000];
        let (dropped, sent) = (far.receive(Match::any()), peer.send(round.into(), body.clone()));
        for _ in 0..luck.below(40) {
            tokio::task::yield_now().await;
        }
        drop(dropped);
        let message = far.receive(Match::any()).await.expect("it was sent");
        assert_eq!((message.bits, message.body == body), (round.into(), true));
        sent.await.expect("it is sent");
    }
}

pub async fn cancels_that_race_with_messages_lose_none(ends: Ends) {
    cancels_race(ends, 1 << 20).await;
}

pub async fn cancels_that_race_with_held_messages_lose_none(ends: Ends) {
    cancels_race(ends, 4096).await;
}

/// Has a task send numbers while receives are posted, and cancelled or dropped at any moment: each
/// number is received once, in order, by a receive whose cancel came too late or that was left
/// alone.
async fn cancels_race(ends: Ends, window: usize) {
    const COUNT: u64 = 500;
    let Pair { near: _near, far, peer } = ends.pair(window).await;
    let sends = tokio::spawn(async move {
        for chunk in 0..COUNT / 100 {
            let numbers = 100 * chunk..100 * (chunk + 1);
            let sends = numbers.map(|number| peer.send(number, number.to_be_bytes().to_vec()));
            let sends: Vec<_> = sends.collect();
            join_all(sends).await.into_iter().for_each(|sent| sent.expect("it is sent"));
        }
        peer
    });
    let (mut luck, mut next, mut cancelled) = (Luck::new(window as u64), 0, 0);
    while next < COUNT {
        let mut receive = far.receive(Match::any());
        for _ in 0..luck.below(4) {
            tokio::task::yield_now().await;
        }
        if luck.below(2) == 0 && receive.cancel() {
            assert_eq!(receive.await.expect_err("it is cancelled"), ReceiveError::Cancelled);
            cancelled += 1;
            continue;
        }
        if luck.below(3) == 0 {
            drop(receive);
            cancelled += 1;
            continue;
        }
        let message = receive.await.expect("it was sent");
        assert_eq!((message.bits, &message.body[..]), (next, &next.to_be_bytes()[..]));
        next += 1;
    }
    let peer = sends.await.expect("no panic");
    // Nothing is left, neither of the messages nor of cancelled receives.
    peer.send(COUNT, "").await.expect("it is sent");
    let last = far.receive(Match::any()).await.expect("it was sent");
    assert_eq!(last.bits, COUNT, "after {cancelled} receives that were cancelled or dropped");
}
