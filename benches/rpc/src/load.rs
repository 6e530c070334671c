//! The loops that call: closed ones, and one that calls at a rate.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use bytes::Bytes;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use crate::case::Case;
use crate::system::Caller;

/// Latencies in nanoseconds, one for each call.
#[derive(Default, Debug)]
pub struct Latencies(Vec<u32>);

impl Latencies {
    /// Notes a latency; one of more than four seconds counts as four.
    fn note(&mut self, latency: Duration) {
        self.0.push(u32::try_from(latency.as_nanos()).unwrap_or(u32::MAX));
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }

    pub fn sort(&mut self) {
        self.0.sort_unstable();
    }

    /// The latency, in microseconds, that a fraction of the sorted latencies does not exceed; `NaN` if
    /// there are none.
    pub fn quantile(&self, fraction: f64) -> f64 {
        let rank = (self.0.len() as f64 * fraction).ceil() as usize;
        self.0.get(rank.max(1) - 1).map_or(f64::NAN, |&latency| f64::from(latency) / 1e3)
    }
}

/// What a loop has seen.
#[derive(Debug)]
pub struct Seen {
    /// From when a call was due to its answer. In a closed loop a call is due when the answer before
    /// has come.
    pub from_due: Latencies,
    /// From when a call was made to its answer, if that is another time than when the call was due.
    pub from_call: Option<Latencies>,
    /// How long all calls took together, from the first to the last answer.
    pub elapsed: Duration,
}

/// Puts the load of a case on a connection for a while, and gives the callers back.
pub async fn put<C: Caller>(
    case: &Case,
    callers: Vec<C>,
    time: Duration,
) -> anyhow::Result<(Vec<C>, Seen)> {
    let body = Bytes::from(vec![0xa5; case.size]);
    match case.rate {
        None => closed(callers, body, time).await,
        Some(rate) => open(callers, body, rate, time).await,
    }
}

async fn closed<C: Caller>(
    callers: Vec<C>,
    body: Bytes,
    time: Duration,
) -> anyhow::Result<(Vec<C>, Seen)> {
    let began = Instant::now();
    let until = began + time;
    let mut tasks = JoinSet::new();
    for caller in callers {
        tasks.spawn(call_again_and_again(caller, body.clone(), until));
    }
    let (mut callers, mut latencies) = (Vec::new(), Latencies::default());
    let mut ended = began;
    while let Some(done) = tasks.join_next().await {
        let (caller, mut of_caller, end) = done.context("a caller panicked")??;
        callers.push(caller);
        latencies.0.append(&mut of_caller.0);
        ended = ended.max(end);
    }
    Ok((callers, Seen { from_due: latencies, from_call: None, elapsed: ended - began }))
}

/// Calls, and calls again with each answer. Returns the time of the last answer, too.
async fn call_again_and_again<C: Caller>(
    mut caller: C,
    body: Bytes,
    until: Instant,
) -> anyhow::Result<(C, Latencies, Instant)> {
    let mut latencies = Latencies(Vec::with_capacity(1 << 12));
    let mut last = Instant::now();
    while last < until {
        let answer = caller.echo(body.clone()).await?;
        let now = Instant::now();
        latencies.note(now - last);
        last = now;
        check(&answer, &body, latencies.count() == 1)?;
    }
    Ok((caller, latencies, last))
}

/// Calls at a rate from one task, which waits for each answer. A call that is late because the answer
/// before was late has its latency measured from when the call was due all the same.
async fn open<C: Caller>(
    mut callers: Vec<C>,
    body: Bytes,
    rate: u32,
    time: Duration,
) -> anyhow::Result<(Vec<C>, Seen)> {
    let task = tokio::spawn(async move {
        let caller = callers.first_mut().context("a load without a caller")?;
        let (mut from_due, mut from_call) = (Latencies::default(), Latencies::default());
        let mut beats = interval(Duration::from_secs(1) / rate);
        beats.set_missed_tick_behavior(MissedTickBehavior::Burst);
        let began = Instant::now();
        let mut last = began;
        while last - began < time {
            let due = beats.tick().await.into_std();
            let called = Instant::now();
            let answer = caller.echo(body.clone()).await?;
            last = Instant::now();
            from_due.note(last - due);
            from_call.note(last - called);
            check(&answer, &body, from_due.count() == 1)?;
        }
        anyhow::Ok((callers, Seen { from_due, from_call: Some(from_call), elapsed: last - began }))
    });
    task.await.context("the caller panicked")?
}

/// Checks an answer: the first one whole, further ones by their length, which costs nothing.
fn check(answer: &Bytes, body: &Bytes, whole: bool) -> anyhow::Result<()> {
    let (found, sent) = (answer.len(), body.len());
    ensure!(found == sent, "an echo of {found} bytes came back for {sent} bytes");
    ensure!(!whole || answer == body, "an echo of {sent} bytes differs from what was sent");
    Ok(())
}
