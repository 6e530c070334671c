//! A Doorbell server that is called twice as often as it can answer.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use crate::ends::ask_usage;
use crate::histogram::Histogram;
use crate::line::Line;
use crate::system::doorbell::{self, Worker};
use crate::system::{Address, Place};
use crate::usage::Usage;

/// How long a handler keeps its processor busy.
pub const WORK: Duration = Duration::from_micros(20);

/// How many callers the closed loops have of which the peak is the best, and how long each runs.
const CALLERS: [usize; 4] = [4, 8, 16, 32];
const CLOSED: Duration = Duration::from_secs(1);

/// The longest that the load is put on at half the peak.
const NORMAL: Duration = Duration::from_secs(5);

/// The most calls that wait for their answers: with more, the server does not refuse what it can't do.
const MOST_IN_FLIGHT: usize = 100_000;

/// How long everything takes beside the overload itself.
pub const REST: Duration = Duration::from_secs(10);

/// What an overloaded server does.
#[derive(Serialize, Deserialize, Debug)]
pub struct Overload {
    pub system: String,
    pub device: String,
    pub case: String,
    pub handler_us: f64,
    /// The longest that the server has calls wait.
    pub shed_after_us: f64,
    pub seconds: f64,
    /// The most calls a second that a closed loop has had answered.
    pub peak_per_s: f64,
    /// The calls a second that were made, answered by their handlers, and refused.
    pub offered_per_s: f64,
    pub accepted_per_s: f64,
    pub refused_per_s: f64,
    /// Latencies, from when a call was due, at half the peak, and of both kinds of calls in overload.
    pub normal: Latency,
    pub accepted: Latency,
    pub refused: Latency,
    /// The most calls that waited for their answers at a time.
    pub most_in_flight: usize,
    /// Resident memory, in bytes, before and after the overload.
    pub client_resident: [u64; 2],
    pub server_resident: [u64; 2],
}

#[derive(Clone, Copy, Serialize, Deserialize, Debug)]
pub struct Latency {
    pub p50_us: f64,
    pub p99_us: f64,
}

impl Latency {
    fn of(histogram: &Histogram) -> Self {
        let [p50_us, p99_us] =
            [0.5, 0.99].map(|fraction| (histogram.quantile(fraction) * 1e3).round() / 1e3);
        Self { p50_us, p99_us }
    }
}

/// Measures as the client, and prints the figures in JSON.
pub async fn client(
    place: &Place,
    server: &Address,
    time: Duration,
    line: &mut Line,
) -> anyhow::Result<()> {
    let worker = doorbell::connect_worker(place, server).await?;
    let mut peak = 0_f64;
    for callers in CALLERS {
        peak = peak.max(closed(&worker, callers, CLOSED).await?);
    }
    let normal = open(&worker, peak / 2.0, time.min(NORMAL)).await?;
    let [client, serving] = [Usage::of_this_process()?, ask_usage(line)?];
    let seen = open(&worker, peak * 2.0, time).await?;
    let [client_after, serving_after] = [Usage::of_this_process()?, ask_usage(line)?];
    let rate = |count: u64| (count as f64 / seen.elapsed.as_secs_f64()).round();
    let [accepted, refused] = [&seen.tally.accepted, &seen.tally.refused];
    let overload = Overload {
        system: place.system.to_string(),
        device: place.device.to_string(),
        case: "overload".to_owned(),
        handler_us: WORK.as_secs_f64() * 1e6,
        shed_after_us: place.shed_after.map_or(f64::NAN, |wait| wait.as_secs_f64() * 1e6),
        seconds: seen.elapsed.as_secs_f64(),
        peak_per_s: peak.round(),
        offered_per_s: rate(accepted.count() + refused.count()),
        accepted_per_s: rate(accepted.count()),
        refused_per_s: rate(refused.count()),
        normal: Latency::of(&normal.tally.accepted),
        accepted: Latency::of(accepted),
        refused: Latency::of(refused),
        most_in_flight: seen.most_in_flight,
        client_resident: [client.resident, client_after.resident],
        server_resident: [serving.resident, serving_after.resident],
    };
    println!("{}", serde_json::to_string(&overload).context("the figures in JSON")?);
    std::process::exit(0)
}

/// Calls by so many callers, each again with its answer. Returns how many calls a second were answered
/// and not refused.
async fn closed(worker: &Worker, callers: usize, time: Duration) -> anyhow::Result<f64> {
    let began = Instant::now();
    let tasks = (0..callers).map(|_| {
        let worker = worker.clone();
        tokio::spawn(async move {
            let mut answered = 0_u64;
            while began.elapsed() < time {
                answered += u64::from(worker.work().await?);
            }
            anyhow::Ok(answered)
        })
    });
    let mut answered = 0;
    for task in tasks.collect::<Vec<_>>() {
        answered += task.await.context("a caller panicked")??;
    }
    Ok(answered as f64 / began.elapsed().as_secs_f64())
}

/// What became of calls.
#[derive(Default, Debug)]
struct Tally {
    accepted: Histogram,
    refused: Histogram,
    failed: Option<anyhow::Error>,
}

/// What an open loop has seen.
struct Seen {
    tally: Tally,
    elapsed: Duration,
    most_in_flight: usize,
}

/// Calls at a rate, whatever becomes of the calls.
async fn open(worker: &Worker, rate: f64, time: Duration) -> anyhow::Result<Seen> {
    let tally = Arc::new(Mutex::new(Tally::default()));
    let room = Arc::new(Semaphore::new(MOST_IN_FLIGHT));
    let began = Instant::now();
    let (mut made, mut fewest_left) = (0_u64, MOST_IN_FLIGHT);
    loop {
        let elapsed = began.elapsed();
        if elapsed >= time {
            break;
        }
        while (made as f64) < elapsed.as_secs_f64() * rate {
            let due = began + Duration::from_secs_f64(made as f64 / rate);
            let Ok(permit) = room.clone().try_acquire_owned() else {
                bail!(
                    "{MOST_IN_FLIGHT} calls are in flight: the server neither answers nor refuses"
                );
            };
            let (worker, tally) = (worker.clone(), tally.clone());
            tokio::spawn(async move {
                let outcome = worker.work().await;
                let latency = due.elapsed();
                let mut tally = tally.lock().expect("nobody panics");
                match outcome {
                    Ok(true) => tally.accepted.note(latency),
                    Ok(false) => tally.refused.note(latency),
                    Err(why) => tally.failed = Some(why),
                }
                drop(permit);
            });
            made += 1;
        }
        fewest_left = fewest_left.min(room.available_permits());
        tokio::task::yield_now().await;
    }
    let _all = room.acquire_many(MOST_IN_FLIGHT as u32).await.context("the last answers")?;
    let elapsed = began.elapsed();
    let mut tally = std::mem::take(&mut *tally.lock().expect("nobody panics"));
    if let Some(why) = tally.failed.take() {
        return Err(why.context("a call failed that was not refused"));
    }
    ensure!(tally.accepted.count() + tally.refused.count() == made, "a call was lost");
    Ok(Seen { tally, elapsed, most_in_flight: MOST_IN_FLIGHT - fewest_left })
}
