//! Many nodes that all send to each other, in a network of two tiers.

use std::time::{Duration, Instant};

use doorbell::protocol::encap::Version;
use doorbell::protocol::wire::PathMtu;
use doorbell_simulation::{Fabric, LeafSpineSize};

use crate::cable::payload_rate;
use crate::flows::{Flows, Operation, Settings, config};
use crate::line::{Line, Value};
use crate::network;
use crate::runs::Transport;

/// Each node sends so much to each other.
#[derive(Clone, Copy)]
pub struct AllToAll {
    pub transport: Transport,
    pub mtu: PathMtu,
    pub size: LeafSpineSize,
    /// How many routes a connection tries.
    pub paths: u8,
    /// The bytes that each node sends to each other.
    pub bytes: u64,
    /// The bytes of a port's buffer.
    pub buffer: usize,
}

impl AllToAll {
    /// Runs until everything has come.
    ///
    /// # Errors
    /// When that takes more than a minute.
    pub fn measure(&self, seed: u64) -> anyhow::Result<Line> {
        let nodes = self.size.leaves * self.size.nodes;
        let mut fabric = Fabric::new(seed, Version::V2Ipv4, config(2 * nodes));
        fabric.network.stop_tracing();
        let cable = network::cable(Duration::from_micros(5));
        let switch = network::switch(self.buffer, true);
        let layout = fabric.leaf_spine(self.size, cable, switch);
        let settings = Settings {
            transport: self.transport,
            mtu: self.mtu,
            window: 64 << 10,
            message: self.bytes,
            depth: 2,
            operation: Operation::Write,
            paths: self.paths,
        };
        let mut flows = Flows::new(fabric, &layout.nodes, settings, nodes);
        // Each begins with the node behind it, so that no node is everybody's first.
        for step in 1..nodes {
            for from in 0..nodes {
                flows.add(from, (from + step) % nodes, Some(self.bytes));
            }
        }
        let begun = Instant::now();
        let all = flows.run(Duration::from_secs(60));
        let took = begun.elapsed().as_secs_f64();
        anyhow::ensure!(all, "not all came within a minute");
        let seconds = flows.fabric.now().as_nanos() as f64 / 1e9;
        let ideal = ((nodes as u64 - 1) * self.bytes) as f64 / payload_rate(self.mtu);
        let delivered = flows.fabric.counters().delivered as f64;
        Ok(Line::default()
            .with("run", Value::Text("leaf-spine"))
            .with("transport", Value::Text(self.transport.name()))
            .with("mtu", Value::Count(self.mtu.bytes() as u64))
            .with("senders", Value::Count(nodes as u64))
            .with("paths", Value::Count(self.paths.into()))
            .with("timeouts", Value::Count(flows.timeouts()))
            .with("fct_ratio", Value::Share(seconds / ideal))
            .with("frames_per_s", Value::Share(delivered / took)))
    }
}
