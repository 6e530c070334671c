//! Endpoints that a thread of their own drives.

use doorbell::messages::frames::{Endpoint, Match};

use crate::common::{body, both_offloaded, emp, in_time, received, rmpp, sent};
use crate::everywhere::run;

#[test]
fn a_program_that_never_awaits_receives_what_a_thread_of_the_endpoint_takes() {
    for policy in [emp(), rmpp(), both_offloaded()] {
        run(async {
            let open = || Endpoint::builder().policy(policy).apart(None);
            let near = open().open("udp:127.0.0.1:0").await.expect("it opens");
            let far = open().open("udp:127.0.0.1:0").await.expect("it opens");
            let peer = near.peer(far.name()).await.expect("there is a way");
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
        let peer = near.peer(far.name()).await.expect("there is a way");
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
