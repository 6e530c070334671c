//! Messages one way, as many as the other end reports.

use std::time::{Duration, Instant};

use anyhow::bail;
use doorbell_core::encap::PathId;
use doorbell_core::nic::{Flow, Inbox};
use doorbell_core::payload::Payload;
use doorbell_core::wire::{Malformed, Packet, Qpn};
use doorbell_transports::{Capabilities, Device};

use super::checker::{Checker, Tally};
use super::link::{Link, Patience, Shape};
use crate::perf::peer::Peer;
use crate::perf::report::{Figures, Found};
use crate::perf::{Amount, Plan};

/// How long no report may come before one is asked for.
const SILENCE: Duration = Duration::from_millis(20);

/// How many packets may be under way.
#[derive(Clone, Copy, Debug)]
struct Window {
    packets: u64,
    /// After how many the receiver reports.
    report: u64,
}

impl Window {
    /// So large that frames always wait to be received, and small enough for a receiver to keep
    /// all of them: what is lost tells nothing about a device.
    fn of(capabilities: &Capabilities, shape: Shape) -> Self {
        /// The frames that are under way, and between reports.
        const FRAMES: u64 = 16;
        const REPORT: u64 = 4;
        let around = 64;
        let fitting = (60_000 / (shape.len(0) + around)) as u64;
        let frame = fitting.clamp(1, capabilities.run.into());
        let frames = if frame == 1 { 16 * FRAMES } else { FRAMES };
        let report = if frame == 1 { 16 * REPORT } else { REPORT };
        Self { packets: frames * frame, report: report * frame }
    }
}

pub fn run<D: Device>(
    mut link: Link<D>,
    plan: &Plan,
    peer: &mut Peer,
) -> anyhow::Result<Option<Figures>> {
    let window = Window::of(link.device.capabilities(), link.shape);
    if !peer.leads() {
        return follow(&mut link, window, peer).map(|()| None);
    }
    let (tally, took) = lead(&mut link, plan.amount, window)?;
    peer.meet(|| {
        link.device.receive(&mut Reports::new(link.own));
    })?;
    if !tally.is_clean() {
        bail!(
            "of {} packets {} were lost, and {} were not what they should be",
            tally.next,
            tally.lost,
            tally.wrong
        );
    }
    let messages = tally.right / link.shape.packets;
    Ok(Some(Figures {
        device: Some(link.device.capabilities().name),
        iters: messages,
        found: Found::Rate(messages as f64 / took.as_secs_f64()),
    }))
}

/// Sends; returns what the receiver found, and how long it took until the last report.
fn lead<D: Device>(
    link: &mut Link<D>,
    amount: Amount,
    window: Window,
) -> anyhow::Result<(Tally, Duration)> {
    let mut reports = Reports::new(link.own);
    let began = Instant::now();
    let mut end = amount.packets(link.shape.packets);
    while link.next() < end {
        let allowed = end.min(reports.latest.next + window.packets);
        if link.next() < allowed {
            while link.next() < allowed && link.push(false).is_ok() {}
            link.device.flush();
            if amount.has_passed(|| began.elapsed()) {
                // To the end of the message.
                end = link.next().next_multiple_of(link.shape.packets);
            }
        }
        listen(link, &mut reports, false)?;
    }
    link.ask(true);
    while !reports.last {
        listen(link, &mut reports, true)?;
    }
    Ok((reports.latest, began.elapsed()))
}

/// Looks for reports, and asks for one if there was none for too long.
#[inline]
fn listen<D: Device>(link: &mut Link<D>, reports: &mut Reports, last: bool) -> anyhow::Result<()> {
    link.device.receive(reports);
    link.device.settle();
    let Some(waited) = reports.patience.spend("a report of the receiver")? else { return Ok(()) };
    if waited > SILENCE * (reports.asked + 1) {
        reports.asked += 1;
        link.ask(last);
    }
    Ok(())
}

/// Receives, and reports, until the sender has said that it was told the last.
fn follow<D: Device>(link: &mut Link<D>, window: Window, peer: &mut Peer) -> anyhow::Result<()> {
    let mut checker = Checker::new(link.own, link.shape);
    let mut reported = 0;
    let mut patience = Patience::new();
    let mut turn = |checker: &mut Checker| {
        let found = link.device.receive(checker);
        let tally = checker.tally();
        let due = checker.asked || tally.next - reported >= window.report;
        if due && link.send(&bytes(tally, checker.ended)) {
            (reported, checker.asked) = (tally.next, false);
        }
        link.device.settle();
        found > 0
    };
    while !checker.ended {
        if turn(&mut checker) {
            patience = Patience::new();
        } else {
            patience.spend("a packet")?;
        }
    }
    // The last report may be lost, too.
    peer.meet(|| {
        turn(&mut checker);
    })
}

/// A report: what was found, and whether it is the last.
fn bytes(tally: Tally, last: bool) -> [u8; 40] {
    let mut bytes = [0; 40];
    let words = [tally.right, tally.lost, tally.wrong, tally.next, last.into()];
    for (to, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
        *to = word.to_le_bytes();
    }
    bytes
}

/// Takes reports.
struct Reports {
    own: Qpn,
    latest: Tally,
    last: bool,
    /// Since the last one.
    patience: Patience,
    /// How often one was asked for since then.
    asked: u32,
}

impl Reports {
    fn new(own: Qpn) -> Self {
        let (latest, patience) = (Tally::default(), Patience::new());
        Self { own, latest, last: false, patience, asked: 0 }
    }
}

impl Inbox for Reports {
    fn packet<P: Payload>(&mut self, _: Flow<'_>, packet: &Packet<P>) {
        let mut bytes = [0; 40];
        if packet.headers.bth.destination() != self.own || packet.payload.len() != bytes.len() {
            return;
        }
        packet.payload.copy_to(&mut bytes);
        let mut words = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
        let mut word = || words.next().unwrap_or(0);
        let tally = Tally { right: word(), lost: word(), wrong: word(), next: word() };
        // An older one may have been overtaken.
        if tally.next >= self.latest.next {
            self.latest = tally;
            self.last |= word() == 1;
            (self.patience, self.asked) = (Patience::new(), 0);
        }
    }

    fn malformed(&mut self, _: Malformed) {}

    fn gone(&mut self, _: PathId) {}
}
