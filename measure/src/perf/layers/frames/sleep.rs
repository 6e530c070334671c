//! What sleeping costs: waking for a frame, being idle, and being left alone while others poll.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use doorbell_transports::Device;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde_json::json;

use super::link::Link;
use super::ping_pong;
use crate::out;
use crate::perf::ends::peer::Peer;
use crate::perf::figures::latencies::Latencies;
use crate::perf::figures::{Figures, Quantity};
use crate::perf::shared::processor_time::processor_time;
use crate::perf::{Amount, Plan};

/// How long nothing is sent, so that the other end sleeps.
const PAUSE: Duration = Duration::from_micros(300);
/// The longest that a frame may be waited for asleep.
const LONGEST: Duration = Duration::from_secs(5);

/// Sleeps until a descriptor is readable, and at most for the time `longest`. Returns whether it is
/// readable.
fn sleep_on(readiness: BorrowedFd<'_>, longest: Duration) -> anyhow::Result<bool> {
    let mut fds = [PollFd::new(readiness, PollFlags::POLLIN)];
    let longest = PollTimeout::try_from(longest).context("too long a sleep")?;
    Ok(poll(&mut fds, longest).context("sleeping")? > 0)
}

/// The time from sending a message to the answer of an end that slept, each time.
pub fn wake<D: Device>(
    link: &mut Link<D>,
    plan: &Plan,
    peer: &mut Peer,
) -> anyhow::Result<Option<Figures>> {
    if !peer.leads() {
        let sleeps = answer_asleep(link)?;
        link.arrivals.ledger.here.judge()?;
        return peer.tell(&json!(sleeps)).map(|()| None);
    }
    let mut times = Latencies::new(plan.amount, plan.meter());
    let (began, mut round, mut last) = (Instant::now(), 0, false);
    while !last {
        let paused = Instant::now();
        while paused.elapsed() < PAUSE {}
        round += 1;
        let start = Instant::now();
        last = plan.amount.is_over(round, || start - began);
        link.send_message(last)?;
        ping_pong::await_message(link, round)?;
        times.record(start.elapsed());
        link.device.settle(|_| false);
    }
    link.arrivals.ledger.here.judge()?;
    let sleeps = peer.hear()?.as_u64().context("how often the other end slept")?;
    if sleeps < round {
        out::note(format_args!("doorbell: of {round} times, the other end slept only {sleeps}"));
    }
    let found = Quantity::Latency(times.summary(1));
    Ok(Some(Figures { device: Some(link.device.capabilities().name), iters: round, found }))
}

/// Answers messages, and sleeps before each. Returns how often it slept.
fn answer_asleep<D: Device>(link: &mut Link<D>) -> anyhow::Result<u64> {
    let (mut round, mut sleeps) = (0, 0);
    while !link.arrivals.ledger.ended {
        link.device.arm(None).context("preparing to sleep")?;
        // Frames that came before the device was armed would not wake this end.
        while link.look() > 0 {}
        if link.arrivals.messages() == round {
            sleeps += 1;
            if !sleep_on(link.device.readiness(), LONGEST)? {
                bail!("no frame woke this end within {LONGEST:?}");
            }
        }
        link.device.disarm();
        link.look();
        while link.arrivals.messages() > round {
            round += 1;
            link.send_message(link.arrivals.ledger.ended)?;
        }
    }
    Ok(sleeps)
}

/// The share of a processor that an idle device takes, at the end where it is more.
pub fn idle<D: Device>(
    link: &mut Link<D>,
    plan: &Plan,
    peer: &mut Peer,
) -> anyhow::Result<Option<Figures>> {
    let Amount::For(time) = plan.amount else { bail!("idle_cpu is for a time: --seconds") };
    let (began, before) = (Instant::now(), processor_time()?);
    while began.elapsed() < time {
        link.device.arm(None).context("preparing to sleep")?;
        while link.look() > 0 {}
        sleep_on(link.device.readiness(), time.saturating_sub(began.elapsed()))?;
        link.device.disarm();
    }
    let share = (processor_time()? - before).as_secs_f64() / began.elapsed().as_secs_f64();
    let theirs = peer.swap(&json!(share))?.as_f64().context("the other end's share")?;
    Ok(peer.leads().then(|| Figures {
        device: Some(link.device.capabilities().name),
        iters: 0,
        found: Quantity::Share(share.max(theirs)),
    }))
}

/// A ping-pong by polling, while another thread of each end sleeps on the device.
pub fn bystander<D: Device>(
    link: &mut Link<D>,
    plan: &Plan,
    peer: &mut Peer,
) -> anyhow::Result<Option<Figures>> {
    let readiness = link.device.readiness().try_clone_to_owned().context("a second handle")?;
    let (over, wakes) = (AtomicBool::new(false), AtomicU64::new(0));
    let figures = thread::scope(|scope| {
        scope.spawn(|| stand_by(&readiness, &over, &wakes));
        let figures = ping_pong::run(link, plan, peer);
        over.store(true, Ordering::Relaxed);
        figures
    })?;
    let wakes = wakes.into_inner();
    let theirs = peer.swap(&json!(wakes))?.as_u64().context("the other end's wakes")?;
    if wakes + theirs > 0 {
        bail!("while a thread polled, frames woke another {} times", wakes + theirs);
    }
    Ok(figures)
}

/// Sleeps on a device until it is over, and counts how often something else ended that.
fn stand_by(readiness: &OwnedFd, over: &AtomicBool, wakes: &AtomicU64) {
    while !over.load(Ordering::Relaxed) {
        // A sleep that can't be slept counts as well: it is not what was promised.
        if sleep_on(readiness.as_fd(), Duration::from_millis(20)).unwrap_or(true) {
            wakes.fetch_add(1, Ordering::Relaxed);
        }
    }
}
