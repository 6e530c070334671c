//! A process that is killed in the middle of messages: the other's sends and receives end with an
//! error within the configured time.

use std::time::Duration;

use doorbell_kit::child::{self, Child};
use doorbell_messages::frames::{
    Endpoint, EndpointBuilder, Match, Policy, ReceiveError, SendError, WhyGone,
};

use crate::frames::common::{
    body, both_offloaded, emp, in_time, receive_offloaded, received, rmpp, sent,
};
use crate::frames::everywhere::run;

/// Room for anything here.
const ROOM: usize = 1 << 24;

fn builder(policy: Policy) -> EndpointBuilder {
    Endpoint::builder().policy(policy).patience(Duration::from_millis(700))
}

/// Sends and receives without an end, until the process is killed.
async fn exchanges(policy: Policy, device: &str, name: &str) {
    let endpoint = builder(policy).open(device).await.expect("it opens");
    let peer = endpoint.connect(name).await.expect("there is a way");
    sent(peer.send(1, body(1, 10))).await;
    loop {
        let receiving = endpoint.receive_at_most(ROOM, Match::exactly(2));
        let sending = peer.send(3, body(3, 3_000_000));
        let _ = (receiving.await, sending.await);
    }
}

fn what_is_under_way_ends(test: &str, policy: Policy, device: &str) {
    if child::part().is_some() {
        let name = child::listen().expect("the parent says its name");
        return run(exchanges(policy, device, &name));
    }
    run(async {
        let endpoint = builder(policy).open(device).await.expect("it opens");
        let first = endpoint.receive_at_most(100, Match::exactly(1));
        let mut other = Child::start(test, "other", None);
        other.say(endpoint.name());
        let peer = received(first).await.from;
        for _ in 0..3 {
            let receiving = endpoint.receive_at_most(ROOM, Match::exactly(3));
            sent(peer.send(2, body(2, 2_000_000))).await;
            received(receiving).await;
        }
        let mut receiving = endpoint.receive_at_most(ROOM, Match::exactly(3));
        let before = endpoint.statistics().frames_received;
        let sending = peer.send(2, body(2, 2_000_000));
        let is_under_way = async {
            while endpoint.statistics().frames_received < before + 5 {
                tokio::task::yield_now().await;
            }
        };
        in_time(is_under_way).await;
        other.kill();
        // If everything has come by now, the next message is the one that is not answered.
        let mut outcome = in_time(sending).await;
        if outcome.is_ok() {
            outcome = in_time(peer.send(2, body(2, 10))).await;
        }
        let error = outcome.expect_err("nobody confirms it");
        assert!(matches!(error, SendError::Gone { why: WhyGone::Unconfirmed(_), .. }), "{error}");
        if !receiving.cancel()
            && let Err(error) = in_time(receiving).await
        {
            assert!(matches!(error, ReceiveError::Lost { bits: 3, .. }), "{error}");
        }
    });
}

macro_rules! killed {
    ($($name:ident: $policy:ident on $device:literal;)+) => {$(
        #[test]
        fn $name() {
            let test = concat!("frames::killed::", stringify!($name));
            what_is_under_way_ends(test, $policy(), $device);
        }
    )+};
}

killed! {
    a_killed_peer_is_an_error_with_emp_over_shared_memory: emp on "shm";
    a_killed_peer_is_an_error_with_rmpp_over_shared_memory: rmpp on "shm";
    a_killed_peer_is_an_error_with_receives_offloaded_over_shared_memory: receive_offloaded on "shm";
    a_killed_peer_is_an_error_with_both_offloaded_over_shared_memory: both_offloaded on "shm";
    a_killed_peer_is_an_error_with_emp_over_sockets: emp on "udp:127.0.0.1:0";
    a_killed_peer_is_an_error_with_rmpp_over_sockets: rmpp on "udp:127.0.0.1:0";
    a_killed_peer_is_an_error_with_receives_offloaded_over_sockets: receive_offloaded on "udp:127.0.0.1:0";
    a_killed_peer_is_an_error_with_both_offloaded_over_sockets: both_offloaded on "udp:127.0.0.1:0";
}
