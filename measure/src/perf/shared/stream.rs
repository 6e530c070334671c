//! Messages one way, as many as the other end reports.

use std::time::{Duration, Instant};

use super::ledger::Ledger;
use super::patience::Patience;
use crate::perf::ends::peer::Peer;
use crate::perf::figures::{Figures, Quantity};
use crate::perf::{Amount, Plan};

/// How long no report may come before one is asked for.
const SILENCE: Duration = Duration::from_millis(20);

/// How packets are sent and received, numbered from zero on.
pub trait Lane {
    /// The device's name, if there is one.
    fn device(&self) -> Option<&'static str>;

    /// How many packets may be under way.
    fn window(&self) -> Window;

    /// How many packets a message takes.
    fn of_a_message(&self) -> u64;

    /// The number of the next packet.
    fn next(&self) -> u64;

    /// Sends the next packet, or keeps it for the next [`flush`](Self::flush); whether there was
    /// room for it.
    fn push(&mut self) -> bool;

    /// Sends what was kept.
    fn flush(&mut self) -> anyhow::Result<()>;

    /// Asks the other end for a report; `last` if there will be no more packets.
    fn ask(&mut self, last: bool) -> anyhow::Result<()>;

    /// Reports to the other end; whether there was room for that.
    fn report(&mut self) -> bool;

    /// Enters what has come into the ledger; whether there was something.
    fn receive(&mut self) -> anyhow::Result<bool>;

    /// Returns the findings so far.
    fn ledger(&mut self) -> &mut Ledger;
}

/// How many packets may be under way.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    pub packets: u64,
    /// After how many the receiver reports.
    pub report: u64,
}

/// Runs one end of a stream.
pub fn run(lane: &mut impl Lane, plan: &Plan, peer: &mut Peer) -> anyhow::Result<Option<Figures>> {
    if !peer.leads() {
        follow(lane, peer)?;
        return Ok(None);
    }
    let took = lead(lane, plan.amount)?;
    peer.meet(|| lane.receive().map(drop))?;
    let found = lane.ledger().there;
    found.judge()?;
    let messages = found.right / lane.of_a_message();
    Ok(Some(Figures {
        device: lane.device(),
        iters: messages,
        found: Quantity::Rate(messages as f64 / took.as_secs_f64()),
    }))
}

/// Sends a stream to the other end. Returns the time from the first message to the last report of
/// the receiver.
fn lead(lane: &mut impl Lane, amount: Amount) -> anyhow::Result<Duration> {
    let window = lane.window();
    let began = Instant::now();
    let mut end = amount.packets(lane.of_a_message());
    while lane.next() < end {
        let allowed = end.min(lane.ledger().there.next + window.packets);
        if lane.next() < allowed {
            while lane.next() < allowed && lane.push() {}
            lane.flush()?;
            if amount.has_passed(|| began.elapsed()) {
                // To the end of the message.
                end = lane.next().next_multiple_of(lane.of_a_message());
            }
        }
        listen(lane, false)?;
    }
    lane.ask(true)?;
    while !lane.ledger().told_all {
        listen(lane, true)?;
    }
    Ok(began.elapsed())
}

/// Looks for reports, and asks for one if there was none for too long.
#[inline]
fn listen(lane: &mut impl Lane, last: bool) -> anyhow::Result<()> {
    lane.receive()?;
    let Ledger { patience, .. } = lane.ledger();
    let waited = patience.spend("a report of the receiver")?;
    if waited.is_some_and(|waited| patience.is_up_again(waited, SILENCE)) {
        lane.ask(last)?;
    }
    Ok(())
}

/// Receives, and reports, until the sender has heard the last report.
fn follow(lane: &mut impl Lane, peer: &mut Peer) -> anyhow::Result<()> {
    let mut reported = 0;
    let mut patience = Patience::default();
    while !lane.ledger().ended {
        if turn(lane, &mut reported)? {
            patience = Patience::default();
        } else {
            patience.spend("a packet")?;
        }
    }
    // The last report may be lost, too.
    peer.meet(|| turn(lane, &mut reported).map(drop))
}

/// Receives, and reports if that is due; whether there was something.
#[inline]
fn turn(lane: &mut impl Lane, reported: &mut u64) -> anyhow::Result<bool> {
    let report = lane.window().report;
    let found = lane.receive()?;
    let ledger = lane.ledger();
    let next = ledger.here.next;
    if (ledger.asked || next - *reported >= report) && lane.report() {
        lane.ledger().asked = false;
        *reported = next;
    }
    Ok(found)
}
