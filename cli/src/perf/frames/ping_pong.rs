//! A message there and one back, again and again.

use std::time::Instant;

use anyhow::bail;
use doorbell_transports::Device;

use super::checker::{Checker, Tally};
use super::link::{Link, Patience};
use crate::perf::latencies::Latencies;
use crate::perf::peer::Peer;
use crate::perf::report::{Figures, Found};
use crate::perf::{Amount, Plan};

pub fn run<D: Device>(
    mut link: Link<D>,
    plan: &Plan,
    peer: &mut Peer,
) -> anyhow::Result<Option<Figures>> {
    let mut checker = Checker::new(link.own, link.shape);
    if !peer.leads() {
        follow(&mut link, &mut checker)?;
        return judge(checker.tally()).map(|()| None);
    }
    let times = lead(&mut link, &mut checker, plan.amount)?;
    judge(checker.tally())?;
    Ok(Some(Figures {
        device: Some(link.device.capabilities().name),
        iters: times.len() as u64,
        found: Found::Latency(times.summary(2)),
    }))
}

/// Waits until `count` messages have come in all.
#[inline]
fn await_message<D: Device>(
    link: &mut Link<D>,
    checker: &mut Checker,
    count: u64,
) -> anyhow::Result<()> {
    let mut patience = Patience::new();
    loop {
        link.device.receive(checker);
        if checker.messages() >= count {
            return Ok(());
        }
        link.device.settle();
        patience.spend("a message")?;
    }
}

fn lead<D: Device>(
    link: &mut Link<D>,
    checker: &mut Checker,
    amount: Amount,
) -> anyhow::Result<Latencies> {
    let mut times = Latencies::new(amount.times());
    let began = Instant::now();
    let mut round = 0;
    loop {
        round += 1;
        let start = Instant::now();
        let last = amount.is_over(round, || start - began);
        link.send_message(last, checker)?;
        await_message(link, checker, round)?;
        times.record(start.elapsed());
        link.device.settle();
        if last {
            return Ok(times);
        }
    }
}

fn follow<D: Device>(link: &mut Link<D>, checker: &mut Checker) -> anyhow::Result<()> {
    let mut round = 0;
    while !checker.ended {
        round += 1;
        await_message(link, checker, round)?;
        link.send_message(checker.ended, checker)?;
        link.device.settle();
    }
    Ok(())
}

fn judge(tally: Tally) -> anyhow::Result<()> {
    if !tally.is_clean() {
        bail!("{} packets were lost, and {} were not what they should be", tally.lost, tally.wrong);
    }
    Ok(())
}
