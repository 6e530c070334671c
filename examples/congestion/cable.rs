//! One connection over one cable, kept busy.

use std::time::Duration;

use doorbell::protocol::encap::Version;
use doorbell::protocol::memory::Region;
use doorbell::protocol::nic::{Config, QueuePairConfig, Rights, WorkRequest};
use doorbell::protocol::wire::PathMtu;
use doorbell_simulation::{Fabric, Faults};

use crate::line::{Line, Value};
use crate::network;
use crate::runs::Transport;

/// What a cable carries in a second.
pub const LINE_RATE: u64 = 10_000_000_000;
/// What a frame has beside its payload: the headers of Ethernet, IPv4, UDP and the BTH, and the
/// ICRC.
const AROUND: usize = 14 + 20 + 8 + 12 + 4;

/// The most payload that a cable carries in a second, in bytes.
pub fn payload_rate(mtu: PathMtu) -> f64 {
    let mtu = mtu.bytes();
    LINE_RATE as f64 / 8.0 * mtu as f64 / (mtu + AROUND) as f64
}

const MESSAGE: u32 = 1 << 20;
/// What may be unacknowledged: more than the 50 kB that the cable holds there and back.
const UNACKNOWLEDGED: u32 = 128 << 10;
/// How many messages are posted at a time.
const DEPTH: usize = 8;

/// One connection over a cable with faults.
#[derive(Clone, Copy)]
pub struct Cable {
    pub transport: Transport,
    pub mtu: PathMtu,
    /// How many messages of 1 MiB are written.
    pub messages: u64,
    /// The share of frames that are lost, in each direction.
    pub loss: f64,
    /// The share of frames that are held back, for as long as up to ten take.
    pub reordering: f64,
}

impl Cable {
    fn faults(&self) -> Faults {
        let bits = 8 * (self.mtu.bytes() + AROUND) as u64;
        let frame = Duration::from_nanos(bits * 1_000_000_000 / LINE_RATE);
        Faults {
            loss: self.loss,
            reordering: self.reordering,
            reordering_delay: 10 * frame,
            ..Faults::NONE
        }
    }

    /// Writes the messages, and measures which share of the payload that the cable can carry
    /// arrived.
    ///
    /// # Errors
    /// When that takes more than a minute.
    pub fn measure(&self, seed: u64) -> anyhow::Result<Line> {
        let config = Config { queue_pairs: 1, registrations: 1, ..Config::default() };
        let mut fabric = Fabric::new(seed, Version::V2Ipv4, config);
        fabric.network.stop_tracing();
        let nodes = [fabric.node(), fabric.node()];
        let cable = network::cable(Duration::from_micros(20));
        let [here, there] = nodes.map(|node| fabric.station(node));
        fabric.network.link(here, there, cable.with_faults(self.faults()));
        let mut ends = nodes.map(|node| {
            let nic = fabric.nic(node);
            let domain = nic.domain();
            let (id, queue) = nic.completion_queue(2 * DEPTH).expect("room for some");
            let config = QueuePairConfig {
                send_depth: DEPTH,
                receive_depth: 1,
                ..QueuePairConfig::new(domain, id)
            };
            let pair = nic.queue_pair(&config).expect("an empty table");
            let region = Region::new(MESSAGE as usize);
            let place = nic.register(domain, region, Rights::REMOTE_WRITE).expect("an empty table");
            (pair, queue, place)
        });
        let [one, two] = [0, 1].map(|index: usize| (nodes[index], ends[index].0.qpn));
        let (window, selective) =
            (UNACKNOWLEDGED / self.mtu.bytes() as u32, self.transport == Transport::Selective);
        fabric.connect(one, two, self.mtu, |connection, sending| {
            sending.window = window;
            (connection.selective, sending.selective) = (selective, selective);
            sending.congestion = selective;
        });
        let to = ends[1].2;
        let (pair, queue, from) = &mut ends[0];
        let (mut posted, mut done) = (0, 0);
        let finished = fabric.run_until(Duration::from_secs(60), |fabric| {
            while let Some(completion) = queue.poll() {
                completion.outcome.expect("losses are made good");
                done += 1;
            }
            let before = posted;
            while posted < self.messages && pair.send.room() > 0 {
                let data = from.segment(0, MESSAGE);
                let request = WorkRequest::write(posted, to.address, to.rkey, data);
                pair.send.post(request).expect("there is room");
                posted += 1;
            }
            if posted > before {
                pair.send.ring();
                fabric.turn(nodes[0]);
            }
            done == self.messages
        });
        anyhow::ensure!(finished, "{done} of {} messages within a minute", self.messages);
        let (seconds, counters) =
            (fabric.now().as_nanos() as f64 / 1e9, *fabric.nic(nodes[0]).counters());
        let (bytes, mtu) = ((self.messages * u64::from(MESSAGE)) as f64, self.mtu.bytes());
        let run = if self.reordering > 0.0 { "reorder" } else { "loss" };
        Ok(Line::default()
            .with("run", Value::Text(run))
            .with("transport", Value::Text(self.transport.name()))
            .with("mtu", Value::Count(mtu as u64))
            .with("loss", Value::Share(self.loss))
            .with("goodput", Value::Share(bytes / seconds / payload_rate(self.mtu)))
            .with("timeouts", Value::Count(counters.timeouts))
            .with("probes", Value::Count(counters.tail_probes))
            .with("again", Value::Share(counters.retransmitted as f64 * mtu as f64 / bytes)))
    }
}
