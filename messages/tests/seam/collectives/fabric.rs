//! Every collective over a simulated network that loses, repeats, damages and reorders, by seeds,
//! and over one from which a member is cut off.

use std::time::Duration;

use doorbell_am::{Bundle, BundleConfig};
use doorbell_core::encap::Version;
use doorbell_kit::effort;
use doorbell_messages::Endpoint;
use doorbell_messages::collectives::Group;
use doorbell_simulation::{Ether, Faults, LinkConfig, LinkId, Network, SwitchConfig, passing};
use doorbell_verbs::{Config, Nic};

use crate::collectives::members::in_time;
use crate::collectives::program;

/// The bundles of members whose NICs are connected by a switch, over cables with faults.
fn switched(seed: u64, size: usize, faults: Faults) -> (Ether, Vec<LinkId>, Vec<Bundle>) {
    let mut network = Network::new(seed);
    let switch = network.switch(SwitchConfig::default());
    let stations: Vec<_> = (0..size).map(|_| network.station()).collect();
    let link =
        LinkConfig { mtu: 4200, latency: Duration::from_micros(20), ..LinkConfig::default() };
    let link = link.with_faults(faults);
    let cables = stations.iter().map(|station| network.link(*station, switch, link)).collect();
    let ether = Ether::new(network, Version::V2Ipv4, false);
    let bundles = stations.iter().zip(0..).map(|(station, at)| {
        let config =
            Config { seed: Some(100 * seed + at), spin: Duration::ZERO, ..Config::default() };
        let station = ether.station(*station).expect("descriptors");
        let nic = Nic::builder().config(config).on(station).expect("a NIC");
        Bundle::new(&nic, &BundleConfig::default()).expect("there is room")
    });
    let bundles = bundles.collect();
    (ether, cables, bundles)
}

/// Runs a program at each member of a group over a simulated network.
fn run<F: Future<Output = ()> + Send + 'static>(
    (seed, size, faults): (u64, usize, Faults),
    program: impl Fn(Group, Cut) -> F,
) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let (ether, cables, bundles) = switched(seed, size, faults);
        let all = async {
            let mut endpoints = Vec::new();
            for bundle in &bundles {
                endpoints.push(Endpoint::builder().on_bundle(bundle).await.expect("there is room"));
            }
            let names: Vec<_> = endpoints.iter().map(|one| one.name().clone()).collect();
            let joins = endpoints.into_iter().enumerate().map(|(rank, endpoint)| {
                let names = names.clone();
                tokio::spawn(async move { Group::join(endpoint, rank, &names).await })
            });
            let mut members = Vec::new();
            for join in joins.collect::<Vec<_>>() {
                let group = join.await.expect("no panic").expect("all join");
                let cut = Cut { ether: ether.clone(), cable: cables[group.rank()] };
                members.push(tokio::spawn(program(group, cut)));
            }
            for member in members {
                member.await.unwrap_or_else(|why| panic!("seed {seed}: {why}"));
            }
        };
        in_time(passing(&ether, all)).await;
    });
}

/// The cable of a member, to be cut.
struct Cut {
    ether: Ether,
    cable: LinkId,
}

impl Cut {
    fn cut(&self) {
        self.ether.with(|network| network.cut(self.cable));
    }
}

fn all_collectives(faults: Faults) {
    for seed in 0..effort(3, 30) {
        run((seed, 2 + seed as usize % 4, faults), |group, _| async move {
            for len in [0, 1000, 50_000] {
                program::all(&group, len).await;
            }
            group.leave().await;
        });
    }
}

#[test]
fn collectives_give_what_they_should_over_perfect_cables() {
    all_collectives(Faults::NONE);
}

#[test]
fn collectives_give_what_they_should_whatever_cables_lose_repeat_damage_and_reorder() {
    all_collectives(Faults {
        loss: 0.01,
        duplication: 0.02,
        corruption: 0.005,
        reordering: 0.05,
        ..Faults::NONE
    });
}

#[test]
fn a_member_that_is_cut_off_has_the_collectives_of_all_fail() {
    run((1, 4, Faults::NONE), |group, cable| async move {
        for _ in 0..3 {
            group.barrier().await.expect("all are there");
        }
        let cut_off = 2;
        if group.rank() == cut_off {
            cable.cut();
        }
        let all = group.all_reduce(vec![1_u64; 20_000], |left, right| left + right).await;
        let why = all.expect_err("a member is cut off");
        // To the member itself, it is the others that have gone.
        assert!(group.rank() == cut_off || why.rank() == Some(cut_off), "{why}");
        let later = group.barrier().await.expect_err("the group has failed");
        assert!(later.rank().is_some(), "{later}");
    });
}
