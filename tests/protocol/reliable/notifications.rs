//! Congestion notifications (CNPs) between peers that share no extension: who sends them, and who
//! slows down.

use std::time::Duration;

use doorbell_core::encap::Version;
use doorbell_core::nic::*;
use doorbell_core::wire::PathMtu;
use doorbell_simulation::{
    Bandwidth, Counters as NetworkCounters, Fabric, LinkConfig, SwitchConfig,
};

use crate::reliable::common::{End, Setup};

/// The counters of both nodes and of the network after a transfer.
struct Transfer {
    sender: Counters,
    receiver: Counters,
    network: NetworkCounters,
}

/// Writes two megabytes through a switch whose way on is a tenth as fast as the way there. It marks
/// what may be marked from 2 KiB on, and drops what doesn't fit 128 KiB.
fn write_through(settle: impl Fn(&mut Connection, &mut Sending)) -> Transfer {
    const LEN: u32 = 1 << 20;
    let mut fabric = Fabric::new(1, Version::V2Ipv4, Setup::default().config);
    let config =
        SwitchConfig { buffer: 128 << 10, ecn_threshold: Some(2 << 10), ..SwitchConfig::default() };
    let switch = fabric.network.switch(config);
    let ends = [10, 1].map(|gigabits| {
        let node = fabric.node();
        let (bandwidth, latency) =
            (Bandwidth::gigabits_per_second(gigabits), Duration::from_micros(20));
        let cable = LinkConfig { bandwidth, latency, mtu: 9000, ..LinkConfig::default() };
        fabric.network.link(fabric.station(node), switch, cable);
        End::new(&mut fabric, node, 8, 16)
    });
    let [mut from, to] = ends;
    let peers = [(from.node, from.qpn), (to.node, to.qpn)];
    fabric.connect(peers[0], peers[1], PathMtu::Mtu1024, settle);
    let (_, source) = from.open(&mut fabric, LEN as usize);
    let (_, target) = to.open(&mut fabric, LEN as usize);
    for id in 0..2 {
        from.post(WorkRequest::write(id, target.address, target.rkey, source.segment(0, LEN)));
    }
    let mut done = Vec::new();
    let ended = fabric.run_until(Duration::from_secs(20), |_| {
        done.extend(from.poll());
        done.len() == 2
    });
    assert!(ended && done.iter().all(|done| done.outcome.is_ok()), "{done:?}");
    let [sender, receiver] = [from.node, to.node].map(|node| *fabric.nic(node).counters());
    Transfer { sender, receiver, network: fabric.counters() }
}

#[test]
fn a_peer_that_reports_nothing_is_notified_of_marks_and_slows_down() {
    let without = write_through(|_, _| {});
    assert!(
        without.network.tail_dropped > 0 && without.network.marked == 0,
        "{:?}",
        without.network
    );
    let with = write_through(|_, sending| (sending.congestion, sending.ecn) = (true, true));
    assert!(with.network.marked > 0, "{:?}", with.network);
    assert_eq!(with.receiver.marked, with.network.marked);
    assert!(with.receiver.notifications_sent > 0, "{:?}", with.receiver);
    assert_eq!(with.sender.notifications_received, with.receiver.notifications_sent);
    let (lost, lost_without) = (with.network.tail_dropped, without.network.tail_dropped);
    assert!(2 * lost < lost_without, "{lost} and {lost_without}");
}

#[test]
fn nothing_is_marked_that_does_not_say_it_may_be_and_not_each_mark_is_notified() {
    let quiet = write_through(|_, sending| sending.congestion = true);
    assert_eq!((quiet.network.marked, quiet.receiver.notifications_sent), (0, 0));
    let told = write_through(|_, sending| (sending.congestion, sending.ecn) = (true, true));
    assert!(told.receiver.notifications_sent < told.network.marked, "{:?}", told.receiver);
}

#[test]
fn a_peer_that_reports_marks_is_sent_no_notification() {
    let both = write_through(|connection, sending| {
        (connection.selective, sending.selective, sending.congestion) = (true, true, true);
    });
    assert!(both.receiver.marked > 0, "{:?}", both.network);
    assert_eq!((both.receiver.notifications_sent, both.sender.timeouts), (0, 0));
}
