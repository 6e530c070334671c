//! A connection on the simulated fabric, with every kind of packet and of refusal.

use std::path::Path;
use std::time::Duration;

use doorbell_core::encap::Version;
use doorbell_core::memory::{Buf, Region};
use doorbell_core::nic::*;
use doorbell_core::wire::{Imm, PathMtu, RemoteAddr, Rkey};
use doorbell_simulation::{Fabric, Faults, LinkConfig};

struct End {
    pair: QueuePairEnds,
    queue: CompletionQueue,
    place: Registration,
}

fn end(nic: &mut Nic) -> End {
    let domain = nic.domain();
    let (id, queue) = nic.completion_queue(256).expect("room for some");
    let config =
        QueuePairConfig { send_depth: 128, receive_depth: 128, ..QueuePairConfig::new(domain, id) };
    let pair = nic.queue_pair(&config).expect("an empty table");
    let region = Region::new(1 << 13);
    let place = nic.register(domain, region, Rights::REMOTE_WRITE).expect("an empty table");
    End { pair, queue, place }
}

/// Records a connection that loses and repeats packets, waits for receives, and ends with a write
/// that is refused. Every length comes with every padding.
pub fn trouble(version: Version, capture: &Path) {
    let mut fabric = Fabric::new(11, version, Config { queue_pairs: 4, ..Config::default() });
    let nodes = [fabric.node(), fabric.node()];
    let faults = Faults { loss: 0.05, duplication: 0.05, reordering: 0.05, ..Faults::NONE };
    let [here, there] = nodes.map(|node| fabric.station(node));
    fabric.network.link(here, there, LinkConfig::default().with_faults(faults));
    let [mut a, mut b] = nodes.map(|node| end(fabric.nic(node)));
    let ends = ((nodes[0], a.pair.qpn), (nodes[1], b.pair.qpn));
    fabric.connect(ends.0, ends.1, PathMtu::Mtu1024, |_, _| {});
    fabric.network.start_recording(64 << 20);

    let lengths = [0, 1, 2, 3, 4, 61, 1023, 1024, 1025, 2050, 4099];
    let requests = (0..).zip(lengths.into_iter().flat_map(|len| [len; 4]));
    for (id, len) in requests.clone() {
        let data = Memory::Buf(Buf::from(vec![0xDB; len]));
        let request = match id % 4 {
            0 | 1 => WorkRequest::send(id, data),
            _ => WorkRequest::write(id, b.place.address, b.place.rkey, data),
        };
        let with_imm = id % 2 == 1;
        let request = if with_imm { request.with_imm(Imm(id as u32)) } else { request };
        a.pair.send.post(request).expect("there is room");
    }
    a.pair.send.ring();
    let (mut sent, mut received, mut posted) = (0, 0, 0);
    let all = requests.count();
    let done = fabric.run_until(Duration::from_secs(5), |fabric| {
        sent +=
            std::iter::from_fn(|| a.queue.poll()).inspect(|c| assert!(c.outcome.is_ok())).count();
        received += std::iter::from_fn(|| b.queue.poll()).count();
        // A receive every 300 µs: the sender has to wait for them.
        if fabric.now().as_nanos() / 300_000 > posted && posted < 128 {
            let memory = Buf::with_capacity(5000).into();
            b.pair.receive.post(ReceiveRequest { id: 0, memory }).expect("there is room");
            posted += 1;
        }
        sent == all
    });
    assert!(done, "{sent} of {all} requests, {received} receives");
    let (address, wrong) = (RemoteAddr(b.place.address.0), Rkey(b.place.rkey.0 ^ 1 << 31));
    a.pair
        .send
        .post(WorkRequest::write(0, address, wrong, Memory::Buf(Buf::from(vec![1; 5]))))
        .expect("room");
    a.pair.send.ring();
    assert!(fabric.run_until(Duration::from_secs(5), |_| a.queue.poll().is_some()));
    fabric.network.write_pcap(capture).expect("the capture can be written");
    let (sender, receiver) = (*fabric.nic(nodes[0]).counters(), *fabric.nic(nodes[1]).counters());
    assert!(receiver.rnr_naks_sent > 0 && receiver.sequence_naks_sent > 0, "{receiver:?}");
    assert!(receiver.fatal_naks_sent == 1 && sender.retransmitted > 0, "{sender:?}");
}
