//! Pictures of rates and of a queue over time: connections that come and go, one after the other.

use std::time::Duration;

use doorbell::protocol::encap::Version;
use doorbell::protocol::wire::PathMtu;
use doorbell_report::{Axis, Figure, Lines, Panels, Report, Section, Series};
use doorbell_simulation::{Fabric, LinkId};

use crate::flows::{Flows, Operation, Settings, config};
use crate::network;
use crate::runs::Transport;

/// How many connections there are, to one node, and how long it takes until the next one comes.
const SENDERS: usize = 4;
const APART: Duration = Duration::from_millis(10);
/// How long each cable takes.
const CABLE: Duration = Duration::from_micros(20);
/// The bytes of the port's buffer.
const BUFFER: usize = 256 << 10;

/// How often the queue is looked at, and how many such times a rate is the mean of.
const TICK: Duration = Duration::from_micros(250);
const TICKS_OF_RATE: usize = 4;

/// How the connections fared.
struct Course {
    /// By milliseconds, how many KiB waited at the port.
    queue: Vec<(f64, f64)>,
    /// The rate of each connection by milliseconds, in Gbit/s.
    rates: Vec<Vec<(f64, f64)>>,
}

/// A file name and an SVG for each picture.
pub fn draw(seed: u64) -> Vec<(String, String)> {
    let [marked, unmarked, back] =
        [(Transport::Selective, true), (Transport::Selective, false), (Transport::GoBackN, true)]
            .map(|(transport, ecn)| course(transport, ecn, seed));
    let time = || Axis::linear("Time", "ms");
    let queue = Lines::new(time(), Axis::linear("Waiting at the port", "KiB"))
        .series(Series::new("with marks", marked.queue))
        .series(Series::new("without marks", unmarked.queue))
        .series(Series::new("go-back-N", back.queue));
    let rates = |rates: Vec<Vec<(f64, f64)>>| {
        let lines = Lines::new(time(), Axis::linear("Rate", "Gbit/s"));
        rates.into_iter().enumerate().fold(lines, |lines, (at, points)| {
            lines.series(Series::new(format!("connection {}", at + 1), points))
        })
    };
    let panels = Panels::new()
        .panel("with marks", rates(marked.rates))
        .panel("without marks", rates(unmarked.rates))
        .panel("go-back-N", rates(back.rates));
    let section = Section::new("Congestion")
        .figure(Figure::new("congestion-queue", "The queue of a port of 10 Gbit/s", queue))
        .figure(Figure::new(
            "congestion-rates",
            "The rates of four connections that share it",
            panels,
        ));
    Report::new("Congestion").section(section).svgs()
}

/// Has connections come one after the other, and end in the same order.
fn course(transport: Transport, ecn: bool, seed: u64) -> Course {
    let mut fabric = Fabric::new(seed, Version::V2Ipv4, config(SENDERS));
    fabric.network.stop_tracing();
    let switch = network::switch(BUFFER, ecn);
    let star = fabric.star(SENDERS + 1, network::cable(CABLE), switch);
    let settings = Settings {
        transport,
        mtu: PathMtu::Mtu4096,
        window: 512 << 10,
        message: 16 << 10,
        depth: 64,
        operation: Operation::Write,
        paths: 1,
    };
    let mut flows = Flows::new(fabric, &star.nodes, settings, SENDERS);
    let mut course = Course { queue: Vec::new(), rates: vec![Vec::new(); SENDERS] };
    for sender in 1..=SENDERS {
        flows.add(sender, 0, None);
        course.watch(&mut flows, star.cables[0]);
    }
    for sender in 0..SENDERS {
        course.watch(&mut flows, star.cables[0]);
        flows.flows[sender].end();
    }
    course
}

impl Course {
    /// Watches the port to which the cable is second for the time between two connections.
    fn watch(&mut self, flows: &mut Flows, port: LinkId) {
        let millis = |flows: &Flows| flows.fabric.now().as_nanos() as f64 / 1e6;
        let done = |flows: &Flows| flows.flows.iter().map(|flow| flow.done).collect::<Vec<_>>();
        let mut before = done(flows);
        for tick in 1..=(APART.as_nanos() / TICK.as_nanos()) as usize {
            flows.run(TICK);
            let waiting = flows.fabric.network.queued_bytes(port)[1];
            self.queue.push((millis(flows), waiting as f64 / 1024.0));
            if tick % TICKS_OF_RATE == 0 {
                let now = done(flows);
                let span = TICK.as_secs_f64() * TICKS_OF_RATE as f64;
                for (at, (now, before)) in now.iter().zip(&before).enumerate() {
                    let rate = (now - before) as f64 * 8.0 / span / 1e9;
                    self.rates[at].push((millis(flows), rate));
                }
                before = now;
            }
        }
    }
}
