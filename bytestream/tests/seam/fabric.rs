//! Over a simulated network with faults, where time passes only when everybody sleeps.

use std::time::Duration;

use doorbell_bytestream::{Config, Endpoint, WhyGivenUp};
use doorbell_core::encap::Version;
use doorbell_kit::effort;
use doorbell_simulation::{Ether, Faults, LinkConfig, passes, passing};
use doorbell_verbs::{Config as NicConfig, Ending, Nic};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::common::{Runs, bytes, connected, endpoints, inline, run};
use crate::played::{config, plays};

/// Two NICs at the ends of a cable.
fn ether(seed: u64, faults: Faults, lossless: bool) -> (Ether, [Nic; 2]) {
    let link =
        LinkConfig { mtu: 4200, latency: Duration::from_micros(20), ..LinkConfig::default() };
    let (ether, _, stations) =
        Ether::cabled(seed, link.with_faults(faults), Version::V2Ipv6, lossless);
    let nics = [0, 1].map(|end| {
        let seed = Some(2 * seed + end as u64);
        let config = NicConfig { seed, spin: Duration::ZERO, ..inline() };
        Nic::builder()
            .config(config)
            .on(ether.station(stations[end]).expect("descriptors"))
            .expect("a NIC")
    });
    (ether, nics)
}

/// Has two ends do what each of some seeds says, over a cable with such faults.
fn faulty(faults: Faults, lossless: bool) {
    for seed in 0..effort(6, 60) {
        run(Runs::CurrentThread, move || async move {
            let (ether, nics) = ether(seed, faults, lossless);
            let open = async |end: usize| {
                let builder = Endpoint::builder().config(config(2 * seed + end as u64));
                builder.on(&nics[end]).await.expect("room")
            };
            let (near, far) = (open(0).await, open(1).await);
            passing(&ether, async {
                plays(connected(&[near, far]).await, seed).await;
            })
            .await;
        });
    }
}

#[test]
fn streams_are_whole_over_a_perfect_cable() {
    faulty(Faults::NONE, false);
}

#[test]
fn streams_are_whole_over_a_cable_that_is_counted_on_to_lose_nothing() {
    faulty(Faults::NONE, true);
}

#[test]
fn streams_are_whole_whatever_a_cable_loses_repeats_damages_and_reorders() {
    let faults = Faults {
        loss: 0.02,
        duplication: 0.02,
        corruption: 0.01,
        reordering: 0.05,
        ..Faults::NONE
    };
    faulty(faults, false);
}

#[test]
fn a_peer_that_is_cut_off_is_named_to_all_who_close_the_endpoint_and_one_that_has_all_is_not() {
    run(Runs::CurrentThread, || async {
        let link =
            LinkConfig { mtu: 4200, latency: Duration::from_micros(20), ..LinkConfig::default() };
        let (ether, cable, stations) = Ether::cabled(9, link, Version::V2Ipv6, false);
        let nics = [0, 1].map(|end| {
            let config = NicConfig { seed: Some(end), spin: Duration::ZERO, ..inline() };
            let station = ether.station(stations[end as usize]).expect("descriptors");
            Nic::builder().config(config).on(station).expect("a NIC")
        });
        let ends = endpoints(&nics, &Config::default()).await;
        let whole = passing(&ether, async {
            let (mut all, _far_all) = connected(&ends).await;
            let (mut lost, _far_lost) = connected(&ends).await;
            all.write_all(&bytes(0, 0, 1000)).await.expect("there is room");
            all.shutdown().await.expect("the peer is there");
            ether.with(|network| network.cut(cable));
            lost.write_all(&bytes(0, 0, 1000)).await.expect("there is room");
            let both = tokio::join!(ends[0].close(), ends[0].close());
            (both, lost.peer_name().to_owned())
        });
        let ((first, second), name) = whole.await;
        assert_eq!(first, second);
        let why = first.expect_err("not all arrives");
        assert_eq!((why.peers, why.given_up.len()), (2, 1), "{why}");
        assert_eq!(why.given_up[0].peer, name);
        assert!(matches!(why.given_up[0].why, WhyGivenUp::Gone(Ending::Broken(_))), "{why}");
    });
}

/// Time passes only while both ends wait, so short writes that one makes meanwhile are gathered.
#[test]
fn short_writes_go_in_few_messages_while_others_are_under_way() {
    run(Runs::CurrentThread, || async {
        const WRITES: usize = 20_000;
        let (ether, nics) = ether(7, Faults::NONE, false);
        let ends = endpoints(&nics, &Config::default()).await;
        let (mut near, mut far) = passing(&ether, connected(&ends)).await;
        let before = nics[1].statistics().nic.completed;
        let both = async {
            for number in 0..WRITES {
                near.write_all(&bytes(0, 20 * number, 20)).await.expect("there is room");
            }
            let mut found = vec![0; 20 * WRITES];
            far.read_exact(&mut found).await.expect("the peer writes");
            assert!(found == bytes(0, 0, found.len()));
        };
        passing(&ether, both).await;
        let messages = nics[1].statistics().nic.completed - before;
        // Thirteen would be full, and some leave before they are.
        assert!(messages < 100, "{messages} messages");
    });
}

/// No short write waits for a timer, nor for the acknowledgement of a message before.
#[test]
fn a_short_round_trip_takes_as_long_as_the_cable_does() {
    run(Runs::CurrentThread, || async {
        const ROUNDS: u32 = 100;
        let (ether, nics) = ether(8, Faults::NONE, false);
        let ends = endpoints(&nics, &Config::default()).await;
        let (mut near, mut far) = passing(&ether, connected(&ends)).await;
        let began = ether.now();
        let talk = async {
            for _ in 0..ROUNDS {
                // In two writes, as programs do that write a head and a body.
                near.write_all(b"a question, ").await.expect("the peer is there");
                near.write_all(b"all of it").await.expect("the peer is there");
                far.read_exact(&mut [0; 21]).await.expect("the peer writes");
                far.write_all(b"an answer").await.expect("the peer is there");
                near.read_exact(&mut [0; 9]).await.expect("the peer writes");
            }
        };
        passing(&ether, talk).await;
        // Twenty microseconds each way, and what the packets take to be sent.
        let each = ether.now().since(began) / ROUNDS;
        assert!(each < Duration::from_micros(45), "{each:?}");
    });
}

/// An idle stream costs no processor: nobody is woken but by something that comes.
#[test]
fn readers_that_wait_for_an_idle_peer_take_no_turns() {
    run(Runs::CurrentThread, || async {
        let (ether, nics) = ether(6, Faults::NONE, false);
        let ends = endpoints(&nics, &Config::default()).await;
        let (mut near, mut far) = passing(&ether, connected(&ends)).await;
        let greeted = async {
            near.write_all(b"hello").await.expect("the peer is there");
            far.read_exact(&mut [0; 5]).await.expect("the peer is there");
        };
        passing(&ether, greeted).await;
        let waits = [near, far].map(|mut stream| {
            tokio::spawn(async move { stream.read(&mut [0; 8]).await.map(drop) })
        });
        let sleeps = || nics.each_ref().map(|nic| nic.statistics().device.sleeps);
        // Who spoke last has its peer probed, for a quarter of a minute.
        tokio::time::pause();
        for _ in 0..40 {
            tokio::time::advance(Duration::from_millis(500)).await;
            passes(&ether, Duration::from_millis(1)).await;
        }
        tokio::time::resume();
        // The timers of what was done run out.
        passes(&ether, Duration::from_secs(7)).await;
        let before = sleeps();
        tokio::time::sleep(Duration::from_millis(30)).await;
        passes(&ether, Duration::from_secs(7)).await;
        tokio::time::sleep(Duration::from_millis(30)).await;
        assert_eq!(sleeps(), before);
        waits.iter().for_each(|task| task.abort());
    });
}
