//! The loops that are measured, each with the other side's part.

use std::hint::black_box;
use std::time::Instant;

use doorbell_logp::Estimate;
use serde_json::{Value, json};

use super::args::Measure;
use super::side::Side;
use crate::perf::ends::peer::Peer;

/// How many messages a stream has under way.
const WINDOW: usize = 16;
/// How many messages circulate in a ping-pong, so that no time is lost while the other side turns
/// one round.
const CIRCULATE: usize = 4;
/// How many messages a batch has.
const BATCH: usize = 5;
/// The parts of a measurement, from which its uncertainty comes.
const PARTS: usize = 7;
/// How many rounds tell how many there is time for.
const FIRST: usize = 20;

/// Runs one side of a measurement. The first side measures, and the second does its part.
pub fn run(
    measure: Measure,
    seconds: f64,
    work: f64,
    side: &mut Side,
    peer: &mut Peer,
) -> anyhow::Result<Value> {
    match measure {
        Measure::Latency => repeated(seconds, side, peer, |side, count| ping_pong(1, side, count)),
        Measure::PingPong => {
            repeated(seconds, side, peer, |side, count| ping_pong(CIRCULATE, side, count))
        }
        Measure::Stream => repeated(seconds, side, peer, stream),
        Measure::Calls | Measure::Share => batches(seconds, work, side, peer),
        Measure::Availability => availability(seconds, work, side, peer),
    }
}

/// The mean of several values, and its interval.
fn estimate(values: &[f64]) -> Value {
    match Estimate::of_runs(values) {
        Some(Estimate { value, low, high }) => json!({ "value": value, "low": low, "high": high }),
        None => Value::Null,
    }
}

/// A loop that both sides run a number of times. What it returns is the time in microseconds.
type Loop = fn(&mut Side, usize) -> anyhow::Result<f64>;

/// Runs a loop several times, as often as there is time for. What is told is the time of a message
/// one way, and the rate in megabytes a second.
fn repeated(seconds: f64, side: &mut Side, peer: &mut Peer, run: Loop) -> anyhow::Result<Value> {
    let mut count = FIRST;
    let mut times = Vec::new();
    for part in 0..=PARTS {
        ahead(side, count);
        peer.meet(|| side.turn())?;
        let time = run(side, count)?;
        side.wait(0, 0)?;
        if part > 0 {
            times.push(time);
            continue;
        }
        // The first part tells how long the others may be.
        let fits = (seconds * 1e6 / PARTS as f64 / time).clamp(10.0, 1e6) as u64;
        let told = peer.swap_while(&json!(fits), || side.turn())?;
        count = if side.leads() { fits } else { told.as_u64().unwrap_or(fits) } as usize;
    }
    let size = side.size() as f64;
    let rates: Vec<f64> = times.iter().map(|time| size / time).collect();
    Ok(json!({ "time_us": estimate(&times), "rate": estimate(&rates) }))
}

/// Posts the receives that have to be there before a loop begins.
fn ahead(side: &mut Side, count: usize) {
    if !side.leads() {
        (0..count.min(2 * WINDOW)).for_each(|_| side.receive());
    }
}

/// Messages there and back, of which some circulate.
fn ping_pong(circulate: usize, side: &mut Side, count: usize) -> anyhow::Result<f64> {
    let began = Instant::now();
    let (mut posted, mut done) = (0, 0);
    if side.leads() {
        while done < count {
            while posted < count && posted - done < circulate {
                side.receive();
                side.send()?;
                posted += 1;
            }
            side.wait(usize::MAX, posted - done - 1)?;
            done = posted - side.receives()?;
        }
    } else {
        posted = count.min(2 * WINDOW);
        while done < count {
            side.wait(usize::MAX, posted - done - 1)?;
            if posted < count {
                side.receive();
                posted += 1;
            }
            side.send()?;
            done += 1;
        }
    }
    Ok(began.elapsed().as_secs_f64() * 1e6 / (2 * count) as f64)
}

/// Messages one way, and an answer behind the last.
fn stream(side: &mut Side, count: usize) -> anyhow::Result<f64> {
    let began = Instant::now();
    if side.leads() {
        side.receive();
        for _ in 0..count {
            side.wait(WINDOW - 1, 1)?;
            side.send()?;
        }
        side.wait(0, 0)?;
    } else {
        let mut posted = count.min(2 * WINDOW);
        for done in 0..count {
            side.wait(0, posted - done - 1)?;
            if posted < count {
                side.receive();
                posted += 1;
            }
        }
        side.send()?;
    }
    Ok(began.elapsed().as_secs_f64() * 1e6 / count as f64)
}

/// Computation of a number of steps.
#[inline(never)]
fn compute(steps: u64) {
    for step in 0..steps {
        black_box(step);
    }
}

/// Returns how many steps of computation there are in a microsecond.
fn steps_a_microsecond() -> f64 {
    const STEPS: u64 = 2_000_000;
    let times = (0..5).map(|_| {
        let began = Instant::now();
        compute(STEPS);
        STEPS as f64 / (began.elapsed().as_secs_f64() * 1e6)
    });
    times.fold(0.0, f64::max)
}

/// The times of a batch, in microseconds.
#[derive(Clone, Copy, Default)]
struct Times {
    receive: f64,
    send: f64,
    wait: f64,
    all: f64,
}

/// Batches of messages both ways: receives are posted, then sends, then this side computes, then it
/// waits. The receives of the next batch are posted before the sends of a batch, so that no message
/// comes before its receive.
fn batches(seconds: f64, work: f64, side: &mut Side, peer: &mut Peer) -> anyhow::Result<Value> {
    let work = if side.leads() { work } else { 0.0 };
    let rate = steps_a_microsecond();
    let steps = (work * rate) as u64;
    (0..BATCH).for_each(|_| side.receive());
    peer.meet(|| side.turn())?;
    let mut count = FIRST;
    let mut parts = Vec::new();
    for part in 0..=PARTS {
        let mut sum = Times::default();
        for _ in 0..count {
            batch(steps, side, &mut sum)?;
        }
        if part > 0 {
            parts.push(sum);
            continue;
        }
        let each = sum.all / count as f64;
        let fits = (seconds * 1e6 / PARTS as f64 / each).clamp(5.0, 1e5) as u64;
        let told = peer.swap_while(&json!(fits), || side.turn())?;
        count = if side.leads() { fits } else { told.as_u64().unwrap_or(fits) } as usize;
    }
    side.cancel();
    let bytes = (2 * BATCH * side.size()) as f64;
    let calls = (count * BATCH) as f64;
    let each = |of: fn(&Times) -> f64, calls: f64| {
        estimate(&parts.iter().map(|times| of(times) / calls).collect::<Vec<_>>())
    };
    let worked = steps as f64 / rate * count as f64;
    let shares: Vec<f64> = parts.iter().map(|times| worked / times.all).collect();
    let rates: Vec<f64> = parts.iter().map(|it| bytes * count as f64 / it.all).collect();
    Ok(json!({
        "receive_us": each(|times| times.receive, calls),
        "send_us": each(|times| times.send, calls),
        "wait_us": each(|times| times.wait, count as f64),
        "share": estimate(&shares),
        "rate": estimate(&rates),
    }))
}

fn batch(steps: u64, side: &mut Side, sum: &mut Times) -> anyhow::Result<()> {
    let began = Instant::now();
    (0..BATCH).for_each(|_| side.receive());
    let received = Instant::now();
    for _ in 0..BATCH {
        side.send()?;
    }
    let sent = Instant::now();
    compute(steps);
    let worked = Instant::now();
    side.wait(0, BATCH)?;
    let ended = Instant::now();
    let micros = |from: Instant, to: Instant| (to - from).as_secs_f64() * 1e6;
    sum.receive += micros(began, received);
    sum.send += micros(received, sent);
    sum.wait += micros(worked, ended);
    sum.all += micros(began, ended);
    Ok(())
}

/// The loop of RMPP's figure 9, in several parts: computation in pieces, with a message there and
/// back beside it, and the same while the other side does not answer. Every second part tells the
/// effective bandwidth by which one interval is chosen among several, and the others what that
/// interval is worth.
fn availability(
    seconds: f64,
    interval: f64,
    side: &mut Side,
    peer: &mut Peer,
) -> anyhow::Result<Value> {
    const PARTS: usize = 8;
    const FEWEST: u64 = 4;
    let steps = ((interval * steps_a_microsecond()) as u64).max(1);
    let pieces = (seconds * 1e6 / PARTS as f64 / interval.max(0.1)) as u64;
    let mut parts = Vec::new();
    for _ in 0..PARTS {
        match side.leads() {
            true => parts.push(part_of_availability(pieces.max(FEWEST), steps, side, peer)?),
            false => answers(side, peer)?,
        }
    }
    let (choosing, valuing): (Vec<_>, Vec<_>) =
        parts.into_iter().enumerate().partition(|(number, _)| number % 2 == 0);
    let of = |value: fn(&Part) -> f64| {
        estimate(&valuing.iter().map(|(_, part)| value(part)).collect::<Vec<_>>())
    };
    let chosen_by: f64 = choosing.iter().map(|(_, part)| part.availability * part.rate).sum();
    Ok(json!({
        "availability": of(|part| part.availability),
        "rate": of(|part| part.rate),
        "effective": of(|part| part.availability * part.rate),
        "chosen_by": chosen_by / choosing.len().max(1) as f64,
    }))
}

/// The result of a part of [`availability`]: the share of the processor, and megabytes a second.
struct Part {
    availability: f64,
    rate: f64,
}

fn part_of_availability(
    pieces: u64,
    steps: u64,
    side: &mut Side,
    peer: &mut Peer,
) -> anyhow::Result<Part> {
    // The other side takes the first message, and does not answer yet.
    peer.meet(|| side.turn())?;
    side.receive();
    side.send()?;
    let quiet = computes(pieces, steps, side, |_| Ok(()))?;
    peer.meet(|| side.turn())?;
    side.wait(0, 0)?;
    let mut count = 0_u64;
    side.receive();
    side.send()?;
    let busy = computes(pieces, steps, side, |side| {
        count += 1;
        side.receive();
        side.send()
    })?;
    side.wait(0, 0)?;
    peer.swap_while(&json!("end"), || side.turn())?;
    let rate = (count * side.size() as u64) as f64 / busy;
    Ok(Part { availability: quiet / busy, rate })
}

/// Computes in pieces, looks after each whether the receive is done, and does something then.
/// Returns how many microseconds that takes.
fn computes(
    pieces: u64,
    steps: u64,
    side: &mut Side,
    mut done: impl FnMut(&mut Side) -> anyhow::Result<()>,
) -> anyhow::Result<f64> {
    let began = Instant::now();
    for _ in 0..pieces {
        compute(steps);
        side.look()?;
        if side.receives()? == 0 {
            side.sends()?;
            done(side)?;
        }
    }
    Ok(began.elapsed().as_secs_f64() * 1e6)
}

/// Plays the second side of a part of [`availability`]: answers the first message only after the quiet part
/// of the loop, and every later message as it comes.
fn answers(side: &mut Side, peer: &mut Peer) -> anyhow::Result<()> {
    const AHEAD: usize = 4;
    (0..AHEAD).for_each(|_| side.receive());
    peer.meet(|| side.turn())?;
    peer.meet(|| side.turn())?;
    peer.swap_while(&json!("end"), || {
        side.turn()?;
        while side.receives()? < AHEAD {
            side.receive();
            side.send()?;
        }
        side.sends().map(drop)
    })?;
    side.cancel();
    Ok(())
}
