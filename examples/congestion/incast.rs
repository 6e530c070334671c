//! Many that send to one, through one port of a switch.

use std::time::Duration;

use anyhow::Context;
use doorbell::protocol::encap::Version;
use doorbell::protocol::wire::PathMtu;
use doorbell_simulation::Fabric;

use crate::cable::payload_rate;
use crate::flows::{Flow, Flows, Operation, Settings, config};
use crate::line::{Line, Value};
use crate::network;
use crate::runs::{Case, Transport};

/// How long each cable takes.
const CABLE: Duration = Duration::from_micros(20);
/// How long the flows have to find their rates.
const BEFORE: Duration = Duration::from_millis(5);
/// For how long they are measured then.
const MEASURED: Duration = Duration::from_millis(100);

/// Nodes that all send to one, or of which one reads from all.
#[derive(Clone, Copy)]
pub struct Incast {
    pub transport: Transport,
    pub mtu: PathMtu,
    pub senders: usize,
    pub operation: Operation,
    /// Whether the switch marks packets.
    pub ecn: bool,
    /// The bytes of a port's buffer.
    pub buffer: usize,
}

impl Incast {
    /// The cases for a transport and a path MTU.
    pub fn cases(transport: Transport, mtu: PathMtu, quick: bool) -> Vec<Case> {
        let senders: &[usize] = if quick { &[32] } else { &[32, 256] };
        let marks = [true, false];
        let operations = [Operation::Write, Operation::Read];
        let mut cases = Vec::new();
        for operation in operations {
            for &senders in senders {
                cases.extend(marks.map(|ecn| {
                    let buffer = 256 << 10;
                    Case::Incast(Self { transport, mtu, senders, operation, ecn, buffer })
                }));
            }
        }
        cases
    }

    /// Measures which share of the port is used, how fairly, and how long short messages of another
    /// node take to come through, beside how long they take while nobody else sends.
    ///
    /// # Errors
    /// When not one short message comes through.
    pub fn measure(&self, seed: u64) -> anyhow::Result<Line> {
        let idle = p99(&self.run(seed, 0).flows[0])?;
        let mut flows = self.run(seed, self.senders);
        let timeouts = flows.timeouts() - flows.timeouts_before;
        let (busy, bulk) = flows.flows.split_at(1);
        let moved: Vec<_> = bulk.iter().map(|flow| flow.done).collect();
        let total: u64 = moved.iter().sum();
        let slowest = moved.iter().copied().min().unwrap_or(0);
        let run = match self.operation {
            Operation::Write => "incast",
            Operation::Read => "incast-reads",
        };
        let goodput = total as f64 / MEASURED.as_secs_f64() / payload_rate(self.mtu);
        Ok(Line::default()
            .with("run", Value::Text(run))
            .with("transport", Value::Text(self.transport.name()))
            .with("mtu", Value::Count(self.mtu.bytes() as u64))
            .with("senders", Value::Count(self.senders as u64))
            .with("ecn", Value::Text(if self.ecn { "on" } else { "off" }))
            .with("goodput", Value::Share(goodput))
            .with("slowest", Value::Share(slowest as f64 * self.senders as f64 / total as f64))
            .with("timeouts", Value::Count(timeouts))
            .with("p99_ratio", Value::Share(p99(&busy[0])? / idle)))
    }

    /// Runs a flow of short messages, and so many that fill the port.
    fn run(&self, seed: u64, senders: usize) -> Flows {
        let mut fabric = Fabric::new(seed, Version::V2Ipv4, config(senders + 1));
        fabric.network.stop_tracing();
        let star =
            fabric.star(senders + 2, network::cable(CABLE), network::switch(self.buffer, self.ecn));
        let settings = Settings {
            transport: self.transport,
            mtu: self.mtu,
            window: 128 << 10,
            message: 16 << 10,
            depth: 2,
            operation: self.operation,
            paths: 1,
        };
        let mut flows = Flows::new(fabric, &star.nodes, settings, senders + 1);
        flows.add_short(1, 0);
        for sender in 2..senders + 2 {
            match self.operation {
                Operation::Write => flows.add(sender, 0, None),
                Operation::Read => flows.add(0, sender, None),
            }
        }
        flows.run(BEFORE);
        flows.begin_counting();
        flows.run(MEASURED);
        flows
    }
}

/// How long 99 of 100 messages take at most, in nanoseconds.
fn p99(flow: &Flow) -> anyhow::Result<f64> {
    let mut took = flow.took.clone();
    took.sort_unstable();
    let last = took.get(took.len() * 99 / 100).context("no short message came through")?;
    Ok(*last as f64)
}
