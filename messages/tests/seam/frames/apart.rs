//! Endpoints that a thread of their own drives.

use std::time::Instant;

use doorbell_kit::lab;
use doorbell_messages::frames::{Endpoint, Match};

use crate::frames::common::{
    CABLE, Ends, LONG, Pair, body, both_offloaded, emp, in_time, receive_offloaded, received, rmpp,
    sent,
};
use crate::frames::everywhere::run;

#[test]
fn a_program_that_never_awaits_receives_what_a_thread_of_the_endpoint_takes() {
    for policy in [emp(), rmpp(), both_offloaded()] {
        run(async {
            let open = || Endpoint::builder().policy(policy).apart(None);
            let near = open().open("udp:127.0.0.1:0").await.expect("it opens");
            let far = open().open("udp:127.0.0.1:0").await.expect("it opens");
            let peer = near.connect(far.name()).await.expect("there is a way");
            let mut receiving = far.receive_at_most(1 << 20, Match::any());
            let mut sending = peer.send(7, body(7, 100_000));
            let message = loop {
                if let Some(outcome) = receiving.test() {
                    break outcome.expect("it is received");
                }
                std::hint::spin_loop();
            };
            assert!(message.body == body(7, 100_000));
            while sending.test().is_none() {
                std::hint::spin_loop();
            }
        });
    }
}

#[test]
fn a_program_that_only_polls_receives_without_other_tasks() {
    run(async {
        let open = || Endpoint::builder().policy(emp()).open("udp:127.0.0.1:0");
        let near = open().await.expect("it opens");
        let far = open().await.expect("it opens");
        let peer = near.connect(far.name()).await.expect("there is a way");
        let mut receiving = far.receive_at_most(1 << 20, Match::any());
        let sending = peer.send(7, body(7, 100_000));
        let message = loop {
            near.poll();
            far.poll();
            if let Some(outcome) = receiving.test() {
                break outcome.expect("it is received");
            }
        };
        assert!(message.body == body(7, 100_000));
        sent(sending).await;
        let again = far.receive_at_most(100, Match::any());
        in_time(peer.send(8, body(8, 10))).await.expect("it is sent");
        assert_eq!(received(again).await.bits, 8);
    });
}

/// A peer's notices of placed frames were given new receives only once a task of the endpoint had
/// run. A program that polls lets no task run, and the 129th notice found no receive.
#[test]
fn placed_frames_go_both_ways_for_as_long_as_programs_only_poll() {
    lab::test(|lab| {
        let [a, b] = CABLE;
        lab.loopback(a, b, 9000).expect("a lab has cables");
        for devices in [["shm", "shm"], ["packet:a0", "packet:b0"]] {
            for policy in [receive_offloaded(), both_offloaded()] {
                run(async {
                    let ends = Ends { devices, policy };
                    only_polls(&ends.pair_with(|builder| builder.frame(1000)).await, 500);
                });
            }
        }
    });
}

/// Sends messages there and back, each of four frames, without an await.
fn only_polls(Pair { near, far, peer, back }: &Pair, rounds: u64) {
    let began = Instant::now();
    for round in 0..rounds {
        for (at, to) in [(far, peer), (near, back)] {
            let mut receiving = at.receive_at_most(4000, Match::exactly(round));
            let mut sending = to.send(round, body(round, 4000));
            let message = loop {
                near.poll();
                far.poll();
                if let Some(outcome) = receiving.test() {
                    break outcome.expect("it is received");
                }
                assert!(
                    began.elapsed() < LONG,
                    "{round}: {:?} {:?}",
                    near.statistics(),
                    far.statistics()
                );
            };
            assert!(message.body == body(round, 4000));
            while sending.test().map(|outcome| outcome.expect("it is sent")).is_none() {
                near.poll();
                far.poll();
            }
        }
    }
    let (here, there) = (near.statistics(), far.statistics());
    assert!(here.placed > rounds && there.placed > rounds, "{here:?} {there:?}");
}
