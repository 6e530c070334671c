//! Messages over a simulated network with faults, by seeds, in virtual time: each arrives once, and
//! whole, with both policies and each offload.

use std::future::Future;
use std::time::Duration;

use doorbell_core::encap::Version;
use doorbell_kit::effort;
use doorbell_messages::frames::{
    Emp, Endpoint, Match, Policy, ReceiveError, SendError, Unsent, WhyGone,
};
use doorbell_simulation::{Ether, Faults, LinkConfig, LinkId, passing_in_steps};
use doorbell_verbs::{Config, Nic};

use crate::frames::common::{body, both_offloaded, emp, receive_offloaded, rmpp};

/// The time between two looks at the timers of the programs.
const TICK: Duration = Duration::from_micros(100);

/// Two endpoints at the ends of a cable with faults.
async fn ends(seed: u64, policy: Policy, faults: Faults) -> (Ether, LinkId, [Endpoint; 2]) {
    let link =
        LinkConfig { mtu: 4200, latency: Duration::from_micros(20), ..LinkConfig::default() };
    let (ether, cable, stations) =
        Ether::cabled(seed, link.with_faults(faults), Version::V2Ipv4, false);
    let mut endpoints = Vec::new();
    for (end, station) in (0..).zip(stations) {
        let seed = Some(2 * seed + end);
        let config = Config { seed, spin: Duration::ZERO, ..Config::default() };
        let nic = Nic::builder()
            .config(config)
            .on(ether.station(station).expect("descriptors"))
            .expect("a NIC");
        let endpoint = Endpoint::builder().policy(policy).key(7 + end as u32);
        endpoints.push(endpoint.on(&nic).await.expect("there is room"));
    }
    let endpoints = endpoints.try_into().expect("there are two");
    (ether, cable, endpoints)
}

/// Lets the time of the network and of the programs pass together, until the future is done.
async fn passing<F: Future>(ether: &Ether, future: F) -> F::Output {
    let mut now = ether.now();
    let stepped = async |_| {
        let passed = ether.now().since(now);
        now = ether.now();
        tokio::time::advance(passed).await;
    };
    passing_in_steps(ether, TICK, stepped, future).await
}

fn run(test: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().start_paused(true).build();
    runtime.expect("a runtime").block_on(test);
}

fn policies() -> [Policy; 4] {
    [emp(), rmpp(), receive_offloaded(), both_offloaded()]
}

fn all_arrive(seed: u64, policy: Policy, faults: Faults) {
    run(async {
        let (ether, _, [near, far]) = ends(seed, policy, faults).await;
        let all = async {
            let peer = near.connect(far.name()).await.expect("there is a way");
            let back = far.connect(near.name()).await.expect("there is a way");
            if policy != emp() && policy != rmpp() {
                assert!(peer.ready().await && back.ready().await);
            }
            let mut waiting = Vec::new();
            for number in 0..30 {
                let len = (number as usize * 7919 + seed as usize * 311) % 60_000;
                let is_posted_first = number % 3 > 0;
                for (at, to) in [(&near, &back), (&far, &peer)] {
                    let post = || at.receive_at_most(1 << 20, Match::exactly(number));
                    let first = is_posted_first.then(post);
                    let sending = to.send(number, body(number, len));
                    waiting.push((number, len, first.unwrap_or_else(post), sending));
                }
            }
            for (number, len, receiving, sending) in waiting {
                let message = receiving.await.expect("it arrives");
                assert!(message.body == body(number, len), "seed {seed}, {policy:?}: {number}");
                sending.await.expect("it is confirmed");
            }
        };
        passing(&ether, all).await;
        for end in [&near, &far] {
            let counted = end.statistics();
            assert_eq!(counted.messages_received, 30, "seed {seed}, {policy:?}: {counted:?}");
            assert_eq!(counted.malformed, 0, "seed {seed}, {policy:?}: {counted:?}");
        }
    });
}

#[test]
fn messages_arrive_over_a_perfect_cable() {
    for policy in policies() {
        (0..effort(2, 20)).for_each(|seed| all_arrive(seed, policy, Faults::NONE));
    }
}

#[test]
fn messages_arrive_whatever_a_cable_loses_repeats_damages_and_reorders() {
    let faults = Faults {
        loss: 0.03,
        duplication: 0.03,
        corruption: 0.01,
        reordering: 0.05,
        ..Faults::NONE
    };
    for policy in policies() {
        (0..effort(4, 40)).for_each(|seed| all_arrive(seed, policy, faults));
    }
}

/// Sends all messages at once to a peer that posts one receive after another, with the default
/// times and the default patience.
fn all_arrive_at_receives_in_turns(seed: u64, policy: Policy, lens: &[usize]) {
    run(async {
        let (ether, _, [near, far]) = ends(seed, policy, Faults::NONE).await;
        let all = async {
            let peer = near.connect(far.name()).await.expect("there is a way");
            let sends: Vec<_> = (0..)
                .zip(lens)
                .map(|(number, &len)| peer.send(number, body(number, len)))
                .collect();
            // All messages are found to have no receive.
            tokio::time::sleep(Duration::from_millis(500)).await;
            for (number, &len) in (0..).zip(lens) {
                let message = far.receive_at_most(1 << 20, Match::any()).await.expect("it arrives");
                assert_eq!(message.bits, number, "seed {seed}, {policy:?}");
                assert!(message.body == body(number, len), "seed {seed}, {policy:?}: {number}");
            }
            for sending in sends {
                sending.await.expect("it is confirmed");
            }
        };
        passing(&ether, all).await;
    });
}

// With EMP, messages without receives once took all the room on the way, and none was left for the
// rest of the one message whose receive was posted.
#[test]
fn messages_sent_at_once_arrive_at_receives_that_are_posted_one_after_another() {
    let short_and_long: Vec<usize> =
        (0..50).map(|number| if number % 3 == 0 { 10_000 } else { 5 }).collect();
    let one_by_one = Emp::default().collection(1).into();
    for seed in 0..effort(2, 20) {
        for policy in policies() {
            all_arrive_at_receives_in_turns(seed, policy, &[50_000; 30]);
        }
        all_arrive_at_receives_in_turns(seed, one_by_one, &short_and_long);
    }
}

#[test]
fn a_peer_that_is_cut_off_is_an_error_after_the_configured_time_on_both_sides() {
    for policy in policies() {
        run(async {
            let (ether, cable, [near, far]) = ends(1, policy, Faults::NONE).await;
            let all = async {
                let peer = near.connect(far.name()).await.expect("there is a way");
                let back = far.connect(near.name()).await.expect("there is a way back");
                let receiving = far.receive_at_most(1 << 24, Match::any());
                let from_near = far.receive_at_most(100, Match::exactly(9).from(&back));
                let from_far = near.receive_at_most(100, Match::any().from(&peer));
                let sending = peer.send(7, body(7, 8_000_000));
                while far.statistics().frames_received < 10 {
                    tokio::task::yield_now().await;
                }
                ether.with(|network| network.cut(cable));
                let began = ether.now();
                let error = sending.await.expect_err("nothing arrives");
                let (what, why) =
                    (Unsent::Bytes(8_000_000), WhyGone::Unconfirmed(Duration::from_secs(10)));
                let name = far.name().to_string().into();
                assert_eq!(error, SendError::Gone { peer: name, what, why });
                let error = receiving.await.expect_err("nothing comes");
                assert!(matches!(error, ReceiveError::Lost { bits: 7, .. }), "{error}");
                for (waits, of) in [(from_near, &near), (from_far, &far)] {
                    let error = waits.await.expect_err("nothing comes");
                    let why = WhyGone::Silent(Duration::from_secs(10));
                    assert_eq!(error, ReceiveError::PeerGone { peer: of.name().clone(), why });
                }
                let took = ether.now().since(began);
                assert!(took < Duration::from_secs(13), "{policy:?}: {took:?}");
                // The next message arrives once the cable is whole again.
                ether.with(|network| network.heal(cable));
                let receiving = far.receive_at_most(1 << 24, Match::any());
                peer.send(8, body(8, 100_000)).await.expect("it arrives");
                assert!(receiving.await.expect("it arrives").body == body(8, 100_000));
            };
            passing(&ether, all).await;
        });
    }
}
