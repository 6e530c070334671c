//! One flow that passes several busy links in a row, each of which another flow shares with it.

use std::time::Duration;

use doorbell::protocol::encap::Version;
use doorbell::protocol::wire::PathMtu;
use doorbell_simulation::Fabric;

use crate::cable::payload_rate;
use crate::flows::{Flows, Operation, Settings, config};
use crate::line::{Line, Value};
use crate::network;
use crate::runs::Transport;

/// How long the flows have to find their rates.
const BEFORE: Duration = Duration::from_millis(5);
/// For how long they are measured then.
const MEASURED: Duration = Duration::from_millis(100);

/// A row of switches, with a flow from the first to the last, and one from each to the next.
#[derive(Clone, Copy)]
pub struct ParkingLot {
    pub transport: Transport,
    pub mtu: PathMtu,
    /// How many links there are between the switches.
    pub links: usize,
    /// Whether the switches mark packets.
    pub ecn: bool,
    /// The bytes of a port's buffer.
    pub buffer: usize,
}

impl ParkingLot {
    /// Measures how busy the links are, and what the long flow gets beside the others.
    ///
    /// # Errors
    /// None yet: nothing has to come to an end.
    pub fn measure(&self, seed: u64) -> anyhow::Result<Line> {
        let mut flows = self.build(seed);
        flows.add(0, self.links, None);
        for at in 0..self.links {
            flows.add(self.links + 1 + at, self.links + 1 + self.links + at, None);
        }
        flows.run(BEFORE);
        flows.begin_counting();
        flows.run(MEASURED);
        let timeouts = flows.timeouts() - flows.timeouts_before;
        let moved: Vec<_> = flows.flows.iter().map(|flow| flow.done as f64).collect();
        let rate = MEASURED.as_secs_f64() * payload_rate(self.mtu);
        // Each link carries the long flow and one other.
        let busiest = moved[1..].iter().map(|other| moved[0] + other).fold(f64::MAX, f64::min);
        let mean = moved.iter().sum::<f64>() / moved.len() as f64;
        let slowest = moved.iter().copied().fold(f64::MAX, f64::min);
        Ok(Line::default()
            .with("run", Value::Text("parking-lot"))
            .with("transport", Value::Text(self.transport.name()))
            .with("mtu", Value::Count(self.mtu.bytes() as u64))
            .with("senders", Value::Count(moved.len() as u64))
            .with("ecn", Value::Text(if self.ecn { "on" } else { "off" }))
            .with("goodput", Value::Share(busiest / rate))
            .with("slowest", Value::Share(slowest / mean))
            .with("timeouts", Value::Count(timeouts)))
    }

    /// Builds the row. The first place is the node at the first switch from which the long flow
    /// comes, and place `links` the one at the last switch to which it goes; those between have no
    /// flows. Behind them are the senders of the other flows, and then their receivers.
    fn build(&self, seed: u64) -> Flows {
        let mut fabric = Fabric::new(seed, Version::V2Ipv4, config(2));
        fabric.network.stop_tracing();
        let cable = network::cable(Duration::from_micros(20));
        let config = network::switch(self.buffer, self.ecn);
        let switches: Vec<_> = (0..=self.links).map(|_| fabric.network.switch(config)).collect();
        let links: Vec<_> =
            switches.windows(2).map(|pair| fabric.network.link(pair[0], pair[1], cable)).collect();
        // The switch of each place.
        let places: Vec<usize> =
            (0..=self.links).chain(0..self.links).chain(1..=self.links).collect();
        let mut nodes = Vec::new();
        for &home in &places {
            let node = fabric.node();
            let (station, address) = (fabric.station(node), fabric.address(node));
            let own = fabric.network.link(station, switches[home], cable);
            for (at, &switch) in switches.iter().enumerate() {
                let by = match at.cmp(&home) {
                    std::cmp::Ordering::Less => links[at],
                    std::cmp::Ordering::Equal => own,
                    std::cmp::Ordering::Greater => links[at - 1],
                };
                fabric.network.add_route(switch, address, &[by]);
            }
            nodes.push(node);
        }
        let settings = Settings {
            transport: self.transport,
            mtu: self.mtu,
            window: 512 << 10,
            message: 256 << 10,
            depth: 2,
            operation: Operation::Write,
            paths: 1,
        };
        Flows::new(fabric, &nodes, settings, 2)
    }
}
