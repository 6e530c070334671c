//! Peers that connect and leave: what they took is given back.

use doorbell_messages::{Endpoint, Match};

use crate::ends::{Ends, Over, Runs, body, check, inline, run};
use crate::{ALLOCATED, alone};

async fn peers_that_come_and_go_leave_nothing_behind(ends: Ends) {
    const TURNS: isize = 400;
    let far = ends.open(1, Endpoint::builder()).await;
    let mut after_some = 0;
    for turn in 0..TURNS {
        let near = ends.open(0, Endpoint::builder()).await;
        let peer = near.connect(far.name()).await.expect("it is there");
        let receive = far.receive(Match::any());
        let (sent, received) = tokio::join!(peer.send(1, body(1, 50_000)), receive);
        sent.expect("it was received");
        let message = received.expect("it was sent");
        check(&message, 1, 50_000);
        let last = far.receive(Match::any().from(&message.from));
        drop((near, peer, message));
        last.await.expect_err("the peer has gone");
        if turn == TURNS / 4 {
            after_some = ALLOCATED.bytes();
        }
    }
    // Tables that were enlarged are among them, and endpoints that are just being closed.
    let since = std::time::Instant::now();
    loop {
        let more = ALLOCATED.bytes() - after_some;
        if more < TURNS * 1024 {
            return;
        }
        let is_soon = since.elapsed() < doorbell_kit::PATIENCE;
        assert!(is_soon, "{more} bytes are held of {TURNS} peers that have gone");
        tokio::task::yield_now().await;
    }
}

#[test]
fn over_shared_memory_peers_that_come_and_go_leave_nothing_behind() {
    let _alone = alone();
    let test = peers_that_come_and_go_leave_nothing_behind;
    run(Runs::CurrentThread, Over::Shm, inline(), test);
}

#[test]
fn memory_of_long_messages_that_programs_have_dropped_is_kept_to_64_mebibytes() {
    const LEN: usize = 4 << 20;
    let _alone = alone();
    run(Runs::CurrentThread, Over::Shm, inline(), |ends: Ends| async move {
        let pair = ends.pair(1 << 20).await;
        let body = body(1, LEN);
        let before = ALLOCATED.bytes();
        let mut held = Vec::new();
        for _ in 0..30 {
            let (sent, received) =
                tokio::join!(pair.peer.send(1, body.clone()), pair.far.receive(Match::any()));
            sent.expect("it was received");
            held.push(received.expect("it was sent"));
        }
        drop(held);
        let kept = ALLOCATED.bytes() - before;
        assert!((32 << 20..66 << 20).contains(&kept), "{kept} bytes are kept");
    });
}
