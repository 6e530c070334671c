//! Tests over a simulated network, where time passes only when all tasks sleep.

use std::time::Duration;

use doorbell_core::encap::Version;
use doorbell_simulation::{
    Ether, Faults, LinkConfig, LinkId, Network, Pace, Still, Time, passes, passing,
};
use doorbell_verbs::{Buf, Config, ConnectError, Ending, KeepAlive, Name, Nic, QueuePair, Silent};

use crate::common::{End, Runs, SERVICE, address, buf, bytes, connected, run, sleepy};

/// Opens two NICs at the ends of a cable.
fn ether(seed: u64, faults: Faults, lossless: bool) -> (Ether, Nic, Nic) {
    let (ether, near, far, _) = cabled(seed, faults, lossless);
    (ether, near, far)
}

/// Opens two NICs at the ends of a cable, and returns the cable, too.
fn cabled(seed: u64, faults: Faults, lossless: bool) -> (Ether, Nic, Nic, LinkId) {
    let link =
        LinkConfig { mtu: 4200, latency: Duration::from_micros(20), ..LinkConfig::default() };
    let (ether, cable, stations) =
        Ether::cabled(seed, link.with_faults(faults), Version::V2Ipv6, lossless);
    let nic = |station, seed| {
        let config = Config { seed: Some(seed), ..sleepy() };
        Nic::builder()
            .config(config)
            .on(ether.station(station).expect("descriptors"))
            .expect("a NIC")
    };
    let (near, far) = (nic(stations[0], seed + 1), nic(stations[1], seed + 2));
    (ether, near, far, cable)
}

/// A time that is longer than any timer keeps running after a test, and shorter than hosts may be
/// silent.
const LONG: Duration = Duration::from_secs(14);

/// Exchanges messages, writes and reads of many tasks in both directions.
async fn traffic(near: End, far: End) {
    let rounds = |own: End| async move {
        for round in 0..40 {
            let len = [1, 4096, 9000, 30][round % 4];
            let written = own.pair.write(buf(round, len), own.peer);
            let read = own.pair.read(Buf::with_capacity(len), own.peer);
            let sent = own.pair.send(buf(round, len));
            let received = own.pair.recv(Buf::with_capacity(len));
            let (written, read, sent, received) = tokio::join!(written, read, sent, received);
            assert_eq!((written.is_ok(), read.is_ok(), sent.is_ok()), (true, true, true));
            assert!(received.expect("one comes").data[..] == bytes(round, len));
        }
        own
    };
    tokio::join!(rounds(near), rounds(far));
}

fn trace(seed: u64) -> (u64, Time) {
    run(Runs::CurrentThread, move || async move {
        let faults = Faults { loss: 0.02, ..Faults::NONE };
        let (ether, near, far) = ether(seed, faults, false);
        passing(&ether, async {
            let (near, far) = connected(&near, &far).await;
            traffic(near, far).await;
        })
        .await;
        (ether.with(|network| network.trace_hash()), ether.now())
    })
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in [1, 2, 3] {
        let runs: Vec<_> = (0..3).map(|_| trace(seed)).collect();
        assert!(runs.iter().all(|run| *run == runs[0]), "{runs:?}");
    }
    assert_ne!(trace(1), trace(2));
}

/// Regression test for a bug: a request that was posted to a sleeping NIC bore the time when the
/// NIC went to sleep, and was repeated at once, for by the NIC's time it had been under way for
/// long.
#[test]
fn a_request_after_a_long_sleep_is_sent_once() {
    for lossless in [false, true] {
        run(Runs::CurrentThread, move || async move {
            let (ether, near, far) = ether(5, Faults::NONE, lossless);
            passing(&ether, async {
                let (near, far) = connected(&near, &far).await;
                for _ in 0..5 {
                    passes(&ether, LONG).await;
                    near.pair.write(buf(1, 8), near.peer).await.expect("it may");
                    far.pair.write(buf(1, 8), far.peer).await.expect("it may");
                }
            })
            .await;
            for nic in [near, far] {
                let counted = nic.statistics().nic;
                assert_eq!(
                    (counted.timeouts, counted.retransmitted, counted.duplicates),
                    (0, 0, 0)
                );
            }
        });
    }
}

/// Tasks are woken only by arrivals, and nothing arrives.
#[test]
fn a_connected_program_that_is_idle_takes_no_turns() {
    run(Runs::CurrentThread, || async {
        let (ether, near, far) = ether(6, Faults::NONE, false);
        let (one, other) = passing(&ether, connected(&near, &far)).await;
        let waits = tokio::spawn(async move { other.pair.recv(Buf::with_capacity(8)).await });
        passing(&ether, one.pair.write(buf(1, 8), one.peer)).await.expect("it may");
        let sleeps = || [&near, &far].map(|nic| nic.statistics().device.sleeps);
        // The timers of what was done run out.
        passes(&ether, LONG / 2).await;
        let before = sleeps();
        assert!(before.iter().all(|&sleeps| sleeps > 0));
        // More than enough for whoever ticks.
        tokio::time::sleep(Duration::from_millis(30)).await;
        assert_eq!(ether.step(Pace::Asleep, ether.now() + LONG / 2), Err(Still::Nothing));
        tokio::time::sleep(Duration::from_millis(30)).await;
        assert_eq!(sleeps(), before);
        waits.abort();
    });
}

/// Thousands of connections over a cable that loses packets: each is established, or says why not.
#[test]
fn ten_thousand_connections_over_a_lossy_cable_leave_nothing_behind() {
    for seed in 10..18 {
        run(Runs::CurrentThread, move || connections(seed, 1_250));
    }
}

async fn connections(seed: u64, count: usize) {
    const TASKS: usize = 5;
    let each = count / TASKS;
    let faults = Faults { loss: 0.02, ..Faults::NONE };
    let (ether, near, far) = ether(seed, faults, false);
    let before = [near.statistics().objects, far.statistics().objects];
    let (asks, takes) = (near.domain(), far.domain());
    let mut listener = far.listen(SERVICE).await.expect("nobody else listens");
    let serves = tokio::spawn(async move {
        loop {
            let incoming = listener.accept().await.expect("a request");
            let domain = takes.clone();
            tokio::spawn(async move {
                let Ok(pair) = incoming.accept(&domain).await else { return };
                let _ = pair.recv(Buf::with_capacity(8)).await;
                pair.connection().ended().await;
            });
        }
    });
    let to = address(&far);
    let tasks: Vec<_> = (0..TASKS)
        .map(|_| {
            let (asks, to) = (asks.clone(), to.clone());
            tokio::spawn(async move {
                let mut stood = 0;
                for _ in 0..each {
                    stood += usize::from(once(&asks, &to).await.is_some());
                }
                stood
            })
        })
        .collect();
    let mut stood = 0;
    for task in tasks {
        stood += passing(&ether, task).await.expect("it does not fail");
    }
    // Each datagram is repeated often enough for almost all.
    assert!(stood > count * 99 / 100, "{stood} connections stood");
    serves.abort();
    drop(asks);
    let rested = async {
        while [near.statistics().objects, far.statistics().objects] != before {
            tokio::task::yield_now().await;
        }
    };
    passing(&ether, rested).await;
}

/// Makes one connection, with a message on it, if the network allows.
async fn once(domain: &doorbell_verbs::Domain, to: &str) -> Option<()> {
    let pair: QueuePair = match domain.connect(Name::at(to, SERVICE.0)).await {
        Ok(pair) => pair,
        Err(
            ConnectError::TimedOut { .. }
            | ConnectError::PeerLeft { .. }
            | ConnectError::Stale { .. },
        ) => return None,
        Err(why) => panic!("{why}"),
    };
    // It may be lost so often that the connection is over.
    pair.send_inline(b"hello").await.ok()?;
    Some(())
}

/// The silence is measured by the network's clock, from the last packet of the peer to the
/// millisecond.
#[test]
fn the_end_of_a_silent_peer_is_noticed_within_the_configured_time() {
    for is_busy in [true, false] {
        run(Runs::CurrentThread, move || async move {
            let (ether, near, far, cable) = cabled(9, Faults::NONE, false);
            let (one, other) = passing(&ether, connected(&near, &far)).await;
            passing(&ether, one.pair.write(buf(1, 8), one.peer)).await.expect("it may");
            let heard = ether.now();
            ether.with(|network| network.cut(cable));
            let KeepAlive { busy, idle } = Config::default().keep_alive;
            let (failed, most) = if is_busy {
                let write = |number| one.pair.write(buf(number, 4096), one.peer);
                let all = async { tokio::join!(write(1), write(2), write(3)) };
                let (first, second, third) = passing(&ether, all).await;
                assert!(second.is_err() && third.is_err(), "all of them fail");
                (first.map(drop), busy)
            } else {
                (passing(&ether, one.pair.recv(Buf::with_capacity(8))).await.map(drop), idle)
            };
            let failed = failed.expect_err("the peer is gone");
            assert!(matches!(failed.ending(), Some(Ending::Broken(_))), "{failed}");
            let took = ether.now() - heard;
            // As finely as timers are told apart.
            let late = Duration::from_millis(1);
            assert!(most / 2 < took && took < most + late, "{took:?}, and {most:?} is configured");
            drop((one, other));
        });
    }
}

/// No NIC listens at the address: time passes at once until the error comes.
#[test]
fn the_error_for_an_address_without_a_nic_says_that_nobody_answers() {
    run(Runs::CurrentThread, || async {
        let (ether, near, far) = ether(8, Faults::NONE, false);
        let to = address(&far);
        drop(far);
        let asked = passing(&ether, near.domain().connect(Name::at(&*to, 1))).await;
        let why = asked.expect_err("nobody is there");
        let silent = matches!(why, ConnectError::TimedOut { silence: Silent::Peer, .. });
        assert!(silent, "{why:?}");
        let text = why.to_string();
        assert!(text.contains(&to) && text.contains(" for 4.0s "), "{text}");
    });
}

/// Regression test for a bug: every time-out of a connection had the same text, and nobody could
/// tell what was waited for.
#[test]
fn a_connection_that_times_out_says_who_was_silent_and_for_how_long() {
    run(Runs::CurrentThread, || async {
        let (ether, near, far, cable) = cabled(31, Faults::NONE, false);
        let mut listener = far.listen(SERVICE).await.expect("nobody else does");
        let (asks, takes, to) = (near.domain(), far.domain(), address(&far));

        // The program there does not decide.
        let asked = passing(&ether, asks.connect(Name::at(&*to, SERVICE.0))).await;
        let why = asked.expect_err("nobody accepts");
        let text = why.to_string();
        let silent = matches!(why, ConnectError::TimedOut { silence: Silent::PeersProgram, .. });
        assert!(silent && text.contains(&to) && text.contains(" for 20.0s "), "{text}");

        // Who asks is gone when it is accepted.
        let accepts = async {
            let incoming = listener.accept().await.expect("a request");
            ether.with(|network| network.cut(cable));
            incoming.accept(&takes).await
        };
        let both = async { tokio::join!(asks.connect(Name::at(&*to, SERVICE.0)), accepts) };
        let (asked, accepted) = passing(&ether, both).await;
        let why = accepted.expect_err("nobody confirms");
        let text = why.to_string();
        let silent = matches!(why, ConnectError::TimedOut { silence: Silent::Confirmation, .. });
        assert!(silent && text.contains(" for 4.0s "), "{text}");
        let why = asked.expect_err("nothing comes back");
        assert!(matches!(why, ConnectError::TimedOut { silence: Silent::Peer, .. }), "{why}");
    });
}

#[test]
fn a_connect_is_given_up_after_the_time_that_is_configured() {
    run(Runs::CurrentThread, || async {
        for (number, millis) in [(1, 100), (2, 30_000)] {
            let mut network = Network::new(32);
            let [here, there] = [network.station(), network.station()];
            let cable = network.link(here, there, LinkConfig::default());
            network.cut(cable);
            let ether = Ether::new(network, Version::V2Ipv6, false);
            let connect_timeout = Duration::from_millis(millis);
            let config = Config { seed: Some(number), connect_timeout, ..sleepy() };
            let nic = Nic::builder()
                .config(config)
                .on(ether.station(here).expect("descriptors"))
                .expect("a NIC");
            let before = ether.now();
            let to = format!("fabric:{}", there.index());
            let asked = passing(&ether, nic.domain().connect(Name::at(&*to, SERVICE.0))).await;
            assert!(matches!(asked, Err(ConnectError::TimedOut { .. })));
            // What the wire can say is a little more.
            let took = ether.now() - before;
            assert!(connect_timeout <= took && took < connect_timeout * 8 / 7, "{took:?}");
        }
    });
}
