//! A message there and one back, again and again.

use std::time::Instant;

use doorbell_transports::Device;

use super::link::Link;
use crate::perf::Plan;
use crate::perf::ends::peer::Peer;
use crate::perf::figures::latencies::Latencies;
use crate::perf::figures::{Figures, Quantity};
use crate::perf::shared::patience::Patience;

pub fn run<D: Device>(
    link: &mut Link<D>,
    plan: &Plan,
    peer: &mut Peer,
) -> anyhow::Result<Option<Figures>> {
    if !peer.leads() {
        follow(link)?;
        return link.arrivals.ledger.here.judge().map(|()| None);
    }
    let mut times = lead(link, plan)?;
    link.arrivals.ledger.here.judge()?;
    Ok(Some(Figures {
        device: Some(link.device.capabilities().name),
        iters: times.len(),
        found: Quantity::Latency(times.summary(2)),
    }))
}

/// Waits until `count` messages have come in all.
#[inline]
pub fn await_message<D: Device>(link: &mut Link<D>, count: u64) -> anyhow::Result<()> {
    let mut patience = Patience::default();
    loop {
        link.device.receive(&mut link.arrivals);
        if link.arrivals.messages() >= count {
            // Of a ping-pong, each message is answered.
            link.prepare();
            return Ok(());
        }
        link.device.settle(|_| false);
        patience.spend("a message")?;
    }
}

fn lead<D: Device>(link: &mut Link<D>, plan: &Plan) -> anyhow::Result<Latencies> {
    let mut times = Latencies::new(plan.amount, plan.meter());
    let began = Instant::now();
    let mut round = 0;
    loop {
        round += 1;
        let start = Instant::now();
        let last = plan.amount.is_over(round, || start - began);
        link.send_message(last)?;
        await_message(link, round)?;
        times.record(start.elapsed());
        // What was received is answered for with the next message.
        link.device.settle(|_| false);
        if last {
            return Ok(times);
        }
    }
}

fn follow<D: Device>(link: &mut Link<D>) -> anyhow::Result<()> {
    let mut round = 0;
    while !link.arrivals.ledger.ended {
        round += 1;
        await_message(link, round)?;
        link.send_message(link.arrivals.ledger.ended)?;
        link.device.settle(|_| false);
    }
    Ok(())
}
