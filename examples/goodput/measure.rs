//! One connection over one cable, kept busy.

use std::time::Duration;

use doorbell::protocol::encap::Version;
use doorbell::protocol::memory::Region;
use doorbell::protocol::nic::{Config, QueuePairConfig, Rights, WorkRequest};
use doorbell::protocol::wire::PathMtu;
use doorbell_simulation::{Bandwidth, Fabric, Faults, LinkConfig};

/// The shares of frames lost, in each direction.
pub const LOSSES: [f64; 3] = [0.0, 0.001, 0.01];

/// What the cable carries in a second.
pub const LINE_RATE: u64 = 10_000_000_000;

const MESSAGE: u32 = 1 << 20;
/// What may be unacknowledged: more than the 50 kB that the cable holds there and back.
const UNACKNOWLEDGED: u32 = 128 << 10;

/// What was found.
pub struct Measured {
    /// Payload that arrived, once, in a second.
    pub bits_per_second: f64,
    /// Packets sent again, as a share of those that were needed.
    pub again: f64,
    /// How often the sender had to wait for its timer.
    pub timeouts: u64,
}

/// Writes so many messages, eight at a time.
pub fn measure(mtu: PathMtu, loss: f64, messages: u64) -> Measured {
    let config = Config { queue_pairs: 1, registrations: 1, ..Config::default() };
    let mut fabric = Fabric::new(0x600D, Version::V2Ipv4, config);
    let nodes = [fabric.node(), fabric.node()];
    let cable = LinkConfig {
        latency: Duration::from_micros(20),
        bandwidth: Bandwidth::bits_per_second(LINE_RATE),
        mtu: 9000,
        ..LinkConfig::default()
    };
    let [here, there] = nodes.map(|node| fabric.station(node));
    fabric.network.link(here, there, cable.with_faults(Faults { loss, ..Faults::NONE }));
    let mut ends = nodes.map(|node| {
        let nic = fabric.nic(node);
        let domain = nic.domain();
        let (id, queue) = nic.completion_queue(16).expect("room for some");
        let config =
            QueuePairConfig { send_depth: 8, receive_depth: 1, ..QueuePairConfig::new(domain, id) };
        let pair = nic.queue_pair(&config).expect("an empty table");
        let region = Region::new(MESSAGE as usize);
        let place = nic.register(domain, region, Rights::REMOTE_WRITE).expect("an empty table");
        (pair, queue, place)
    });
    let window = UNACKNOWLEDGED / mtu.bytes() as u32;
    let [one, two] = [0, 1].map(|index: usize| (nodes[index], ends[index].0.qpn));
    fabric.connect(one, two, mtu, |_, sending| sending.window = window);

    let to = ends[1].2;
    let (pair, queue, from) = &mut ends[0];
    let (mut posted, mut done) = (0, 0);
    let finished = fabric.run_until(Duration::from_secs(60), |fabric| {
        while let Some(completion) = queue.poll() {
            completion.outcome.expect("losses are made good");
            done += 1;
        }
        let before = posted;
        while posted < messages && pair.send.room() > 0 {
            let data = from.segment(0, MESSAGE);
            let request = WorkRequest::write(posted, to.address, to.rkey, data);
            pair.send.post(request).expect("there is room");
            posted += 1;
        }
        if posted > before {
            pair.send.ring();
            fabric.turn(nodes[0]);
        }
        done == messages
    });
    assert!(finished, "{done} of {messages} messages");
    let (seconds, counters) =
        (fabric.now().as_nanos() as f64 / 1e9, *fabric.nic(nodes[0]).counters());
    let needed = messages * u64::from(MESSAGE) / mtu.bytes() as u64;
    Measured {
        bits_per_second: (messages * u64::from(MESSAGE) * 8) as f64 / seconds,
        again: counters.retransmitted as f64 / needed as f64,
        timeouts: counters.timeouts,
    }
}
