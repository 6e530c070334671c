//! Nodes at one switch that write to those at another, by switches of equal cost in between.

use std::time::Duration;

use doorbell::protocol::encap::Version;
use doorbell::protocol::wire::PathMtu;
use doorbell_simulation::{Fabric, LeafSpineSize};

use crate::cable::payload_rate;
use crate::flows::{Flows, Operation, Settings, config};
use crate::line::{Line, Value};
use crate::network;
use crate::runs::Transport;

/// How many nodes there are at each of the two switches, and switches between them: one for each
/// flow, if no two flows take the same.
const WIDTH: usize = 8;
/// How long a cable takes, and a switch.
const CABLE: Duration = Duration::from_micros(5);
/// The time of a packet there and back, without queues: four cables and three switches each way.
const ROUND_TRIP: Duration = Duration::from_nanos(2 * (4 * 5_000 + 3 * 500));

/// How long the flows have to find their rates.
const BEFORE: Duration = Duration::from_millis(5);
/// For how long they are measured then.
const MEASURED: Duration = Duration::from_millis(50);

/// Flows from each node of the one switch to the one opposite.
#[derive(Clone, Copy)]
pub struct Spines {
    pub transport: Transport,
    pub mtu: PathMtu,
    /// How many routes a connection tries.
    pub paths: u8,
    /// Whether one of the switches in between dies before it is measured.
    pub dies: bool,
    /// The bytes of a port's buffer.
    pub buffer: usize,
}

impl Spines {
    /// Measures what the flows get, and for how long one of them gets nothing.
    ///
    /// # Errors
    /// None yet: nothing has to come to an end.
    pub fn measure(&self, seed: u64) -> anyhow::Result<Line> {
        let mut fabric = Fabric::new(seed, Version::V2Ipv4, config(2));
        fabric.network.stop_tracing();
        let switch = network::switch(self.buffer, true);
        let size = LeafSpineSize { leaves: 2, nodes: WIDTH, spines: WIDTH };
        let layout = fabric.leaf_spine(size, network::cable(CABLE), switch);
        let settings = Settings {
            transport: self.transport,
            mtu: self.mtu,
            window: 512 << 10,
            message: 64 << 10,
            depth: 8,
            operation: Operation::Write,
            paths: self.paths,
        };
        let mut flows = Flows::new(fabric, &layout.nodes, settings, 2);
        (0..WIDTH).for_each(|at| flows.add(at, WIDTH + at, None));
        flows.run(BEFORE);
        flows.begin_counting();
        if self.dies {
            layout.uplinks.iter().for_each(|up| flows.fabric.network.cut(up[0]));
        }
        flows.run(MEASURED);
        let timeouts = flows.timeouts() - flows.timeouts_before;
        let moved: Vec<_> = flows.flows.iter().map(|flow| flow.done as f64).collect();
        let whole = WIDTH as f64 * MEASURED.as_secs_f64() * payload_rate(self.mtu);
        let sum = moved.iter().sum::<f64>();
        let slowest = moved.iter().copied().fold(f64::MAX, f64::min);
        let line = Line::default()
            .with("run", Value::Text(if self.dies { "dead-spine" } else { "paths" }))
            .with("transport", Value::Text(self.transport.name()))
            .with("mtu", Value::Count(self.mtu.bytes() as u64))
            .with("senders", Value::Count(WIDTH as u64))
            .with("paths", Value::Count(self.paths.into()))
            .with("goodput", Value::Share(sum / whole))
            .with("slowest", Value::Share(slowest * WIDTH as f64 / sum))
            .with("timeouts", Value::Count(timeouts));
        let stall = flows.longest_pause().as_secs_f64() / ROUND_TRIP.as_secs_f64();
        Ok(if self.dies { line.with("stall_rtts", Value::Share(stall)) } else { line })
    }
}
