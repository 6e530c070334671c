//! Messages over a simulated network that loses, repeats, damages and reorders, by seeds.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use doorbell_kit::effort;
use doorbell_messages::streams::{Endpoint, StreamId};
use doorbell_simulation::{Faults, passing};
use futures_util::future::join_all;

use crate::streams::common::body;
use crate::streams::pieces::{ANY, receives, sends};
use crate::streams::virtual_time::ends;

const FAULTS: Faults =
    Faults { loss: 0.02, duplication: 0.02, corruption: 0.01, reordering: 0.05, ..Faults::NONE };

fn all_come_as_they_were_sent(faults: Faults) {
    for seed in 0..effort(4, 40) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let (ether, _, [far, near]) = ends(seed, faults);
            let all = async {
                let server =
                    Endpoint::builder().handler(ANY, receives).window(20 << 10).messages(5);
                let server = server.on_bundle(&far).await.expect("there is room");
                let client = Endpoint::builder().on_bundle(&near).await.expect("there is room");
                let peer = client.connect(server.name()).await.expect("the server is there");
                let numbers = (0..30).map(|number| number + seed * 17);
                join_all(numbers.map(|number| sends(&peer, number))).await;
                let statistics = server.statistics();
                let counts = (statistics.begun, statistics.failed, statistics.rejected);
                assert_eq!(counts, (30, 0, 0), "seed {seed}");
                assert_eq!(statistics.held, 0, "seed {seed}");
            };
            passing(&ether, all).await;
        });
    }
}

#[test]
fn messages_come_as_they_were_sent_over_a_perfect_cable() {
    all_come_as_they_were_sent(Faults::NONE);
}

#[test]
fn messages_come_as_they_were_sent_whatever_a_cable_loses_repeats_damages_and_reorders() {
    all_come_as_they_were_sent(FAULTS);
}

#[test]
fn a_paced_receiver_loses_nothing_on_a_cable_with_faults() {
    const PACED: StreamId = StreamId::new("paced");
    const LEN: usize = 100_000;
    for seed in 0..effort(3, 20) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let (ether, _, [far, near]) = ends(seed, FAULTS);
            let received = Arc::new(AtomicUsize::new(0));
            let counts = received.clone();
            let server =
                Endpoint::builder().paced().window(16 << 10).handler(PACED, move |mut message| {
                    let received = counts.clone();
                    async move {
                        let all = message.receive(LEN).await?;
                        assert!(all == body(5, LEN), "another body has come");
                        received.fetch_add(1, Ordering::Relaxed);
                        Ok(())
                    }
                });
            let all = async {
                let server = server.on_bundle(&far).await.expect("there is room");
                let client = Endpoint::builder().on_bundle(&near).await.expect("there is room");
                let peer = client.connect(server.name()).await.expect("the server is there");
                let sends = (0..3).map(|_| async {
                    let mut message = peer.begin(PACED).await.expect("the peer is there");
                    message.send_bytes(body(5, LEN)).await.expect("it is taken");
                    message.end_handled().await.expect("it is received");
                });
                let extracts = async {
                    loop {
                        server.extract(3000).await;
                        let held = server.statistics().held;
                        assert!(held <= 3 * (16 << 10), "seed {seed}: {held} bytes are held");
                    }
                };
                tokio::select! {
                    _ = join_all(sends) => {}
                    () = extracts => unreachable!("it goes on"),
                }
                assert_eq!(received.load(Ordering::Relaxed), 3, "seed {seed}");
            };
            passing(&ether, all).await;
        });
    }
}
