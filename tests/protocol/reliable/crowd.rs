//! Many nodes that all talk to each other at the same time, over a bad switch.

use std::time::Duration;

use doorbell_core::encap::Version;
use doorbell_core::memory::{Buf, Region};
use doorbell_core::nic::*;
use doorbell_core::wire::{PathMtu, RemoteAddr};
use doorbell_simulation::{Fabric, Faults, LinkConfig, SwitchConfig};

use crate::reliable::common::{bytes, inline};

const NODES: usize = 64;
const MESSAGES: u64 = 3;
/// What each writes to each, behind what others wrote.
const SLOT: usize = 64;

struct Node {
    queue: CompletionQueue,
    region: Region,
    registration: Registration,
    /// The queue pair to each other node; none to itself.
    ends: Vec<Option<QueuePairEnds>>,
    sent: Vec<Vec<u64>>,
    received: Vec<Vec<u64>>,
}

/// The bytes of a message: who sends it to whom, and the how manieth it is.
fn message(from: usize, to: usize, number: u64) -> Vec<u8> {
    let len = 8 + (from * 31 + to * 17 + number as usize * 700) % 1800;
    let tag = [from as u8, to as u8, number as u8];
    tag.into_iter().cycle().take(len).collect()
}

fn node(fabric: &mut Fabric) -> Node {
    let index = fabric.node();
    let nic = fabric.nic(index);
    let domain = nic.domain();
    // The least there may be: an entry for each that is received from, and one for what is sent.
    let (id, queue) = nic.completion_queue(NODES).unwrap();
    let region = Region::new(NODES * SLOT);
    let registration = nic.register(domain, region.clone(), Rights::REMOTE_WRITE).unwrap();
    let config = QueuePairConfig {
        send_depth: 2 * MESSAGES as usize,
        receive_depth: MESSAGES as usize,
        ..QueuePairConfig::new(domain, id)
    };
    let ends = (0..NODES).map(|peer| (peer != index).then(|| nic.queue_pair(&config).unwrap()));
    let ends = ends.collect();
    let none = vec![Vec::new(); NODES];
    Node { queue, region, registration, ends, sent: none.clone(), received: none }
}

/// Posts everything that one node sends to another, and where that receives it.
fn post(nodes: &mut [Node], from: usize, to: usize) {
    let place = nodes[to].registration;
    let receive = &mut nodes[to].ends[from].as_mut().unwrap().receive;
    for number in 0..MESSAGES {
        let (id, memory) = ((from as u64) << 8 | number, Buf::with_capacity(1808).into());
        receive.post(ReceiveRequest { id, memory }).unwrap();
    }
    let send = &mut nodes[from].ends[to].as_mut().unwrap().send;
    for number in 0..MESSAGES {
        let id = (to as u64) << 8 | number << 1;
        let data = Memory::Buf(Buf::from(message(from, to, number)));
        send.post(WorkRequest::send(id | 1 << 32, data)).unwrap();
        // Each write goes to the same place: in the end the last is there.
        let address = RemoteAddr(place.address.0 + (from * SLOT) as u64);
        let data = inline(&[from as u8 ^ number as u8; SLOT]);
        send.post(WorkRequest::write(id | 1 | 1 << 32, address, place.rkey, data)).unwrap();
    }
    send.ring();
}

impl Node {
    /// Takes note of what completed, and of how much that is.
    fn look(&mut self, own: usize) -> usize {
        let mut count = 0;
        while let Some(completion) = self.queue.poll() {
            let peer = (completion.id >> 8 & 0xFF) as usize;
            match completion.outcome.expect("nothing fails") {
                Done::Received => {
                    let number = completion.id & 0xFF;
                    assert_eq!(bytes(&completion), message(peer, own, number));
                    self.received[peer].push(number);
                }
                _ => self.sent[peer].push(completion.id & 0xFF),
            }
            count += 1;
        }
        count
    }
}

#[test]
fn sixty_four_nodes_hear_all_of_each_other_once_and_in_order() {
    let config = Config { queue_pairs: NODES, registrations: 4, ..Config::default() };
    let mut fabric = Fabric::new(0xC20D, Version::V2Ipv4, config);
    let switch = fabric.network.switch(SwitchConfig::default());
    let faults = Faults { loss: 0.01, reordering: 0.01, ..Faults::NONE };
    // Two cables between any two: 2 % of the frames are lost.
    let cable = LinkConfig::default().with_faults(faults);
    let mut nodes: Vec<_> = (0..NODES).map(|_| node(&mut fabric)).collect();
    for index in 0..NODES {
        let station = fabric.station(index);
        fabric.network.link(station, switch, cable);
    }
    for one in 0..NODES {
        for two in one + 1..NODES {
            let ends = [(one, two), (two, one)].map(|(own, peer)| {
                (own, nodes[own].ends[peer].as_ref().expect("one to each other").qpn)
            });
            fabric.connect(ends[0], ends[1], PathMtu::Mtu1024, |_, _| {});
        }
    }
    for from in 0..NODES {
        (0..NODES).filter(|&to| to != from).for_each(|to| post(&mut nodes, from, to));
    }

    let all = NODES * (NODES - 1) * 3 * MESSAGES as usize;
    let (mut count, limit) = (0, fabric.now() + Duration::from_secs(2));
    (0..NODES).for_each(|index| fabric.turn(index));
    while count < all {
        let stirred = fabric.step(limit).expect("everything arrives within two seconds");
        count += nodes[stirred].look(stirred);
    }
    for (own, node) in nodes.iter().enumerate() {
        for peer in (0..NODES).filter(|&peer| peer != own) {
            assert_eq!(node.received[peer], [0, 1, 2], "from {peer} to {own}");
            assert_eq!(node.sent[peer], [0, 1, 2, 3, 4, 5], "from {own} to {peer}");
            let mut slot = [0; SLOT];
            node.region.read_at(peer * SLOT, &mut slot).unwrap();
            assert_eq!(slot, [peer as u8 ^ 2; SLOT]);
        }
    }
    let lost = fabric.network.counters().lost;
    assert!(lost > 500, "{lost} frames were lost");
}
