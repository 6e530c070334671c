//! A pipeline of processes. The asynchronous handler of each stage works on an item, calls the next
//! stage with what has become of it, and answers with the next stage's answer.
//!
//! `cargo run --release --example pipeline` starts three stages as processes, and sends a hundred
//! items through them. Each stage needs 2 ms for an item. The feeder has 16 items under way at a
//! time, so that no items pile up anywhere.

use std::io::{self, Write};
use std::process::id;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use doorbell::am::{Call, CallError, Endpoint, Event, Handlers, Name, Peer, Received};
use tokio::process::{Child, Command};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

/// Tells the feeder the name of a stage that is open.
const JOIN: Call<String> = Call::new("join");
/// Sends an item through a stage and those behind it. The answer is what they have made of it.
const ITEM: Call<f64, f64> = Call::new("item");

const STAGES: u64 = 3;
const ITEMS: u64 = 100;
const AT_A_TIME: usize = 16;

/// Works on an item, and has the next stage go on with it.
async fn item(next: Option<Peer>, _: Received, value: f64) -> Result<f64, CallError> {
    tokio::time::sleep(Duration::from_millis(2)).await;
    let value = value * 2.0 + 1.0;
    match next {
        Some(next) => next.call(ITEM, value).await,
        None => Ok(value),
    }
}

/// Runs a stage, until the one before it has gone.
async fn stage(device: &str, feeder: &str, next: Option<&str>) -> Result<()> {
    let builder = Endpoint::builder();
    // Handlers need the next stage, so what sends to it is open before what receives.
    let sender = builder.clone().open(device, Handlers::new()).await?;
    let next = match next {
        Some(next) => Some(sender.connect(next).await?),
        None => None,
    };
    let handlers = Handlers::with(next).on_async(ITEM, item);
    let receiver = builder.on_bundle(&sender.bundle(), handlers).await?;
    let mut events = receiver.events();
    sender.connect(feeder).await?.call(JOIN, receiver.name().to_string()).await?;
    while !matches!(events.recv().await?, Event::Gone(..)) {}
    sender.unmap_all().await;
    Ok(())
}

/// Starts a stage as a process.
fn start(stage: u64, feeder: &Name, next: Option<&String>) -> Result<Child> {
    let device = format!("shm:pipeline-{}/{stage}", id());
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--stage", &device, &feeder.to_string()]).args(next);
    Ok(command.kill_on_drop(true).spawn()?)
}

/// Sends all items through the first stage, and checks what comes back.
async fn send_items(first: &Peer) -> Result<()> {
    let (mut items, places) = (JoinSet::new(), Arc::new(Semaphore::new(AT_A_TIME)));
    for number in 0..ITEMS {
        let (first, places) = (first.clone(), places.clone());
        items.spawn(async move {
            let _place = places.acquire().await?;
            let value = first.call(ITEM, number as f64).await?;
            ensure!(value == 8.0 * number as f64 + 7.0, "item {number} came back as {value}");
            Ok(())
        });
    }
    items.join_all().await.into_iter().collect()
}

/// Starts the stages, and feeds them.
async fn feed() -> Result<()> {
    let (joins, mut joined) = mpsc::unbounded_channel();
    let handlers = Handlers::new().on(JOIN, move |_, name| joins.send(name));
    let device = format!("shm:pipeline-{}/feeder", id());
    let feeder = Endpoint::open(&device, handlers).await?;
    // The last stage starts first, for each stage is told the name of the next.
    let (mut stages, mut next) = (Vec::new(), None);
    for number in (0..STAGES).rev() {
        stages.push(start(number, feeder.name(), next.as_ref())?);
        next = Some(joined.recv().await.context("no stage can join any more")?);
    }
    let first = feeder.connect(next.as_deref().context("there is no stage")?).await?;
    let begun = Instant::now();
    send_items(&first).await?;
    let took = begun.elapsed().as_secs_f64();
    writeln!(io::stdout(), "{ITEMS} items went through {STAGES} stages in {:.0} ms", took * 1e3)?;
    feeder.unmap_all().await;
    for mut stage in stages {
        ensure!(stage.wait().await?.success(), "a stage has failed");
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--stage", device, feeder, next @ ..] => {
            stage(device, feeder, next.first().copied()).await
        }
        _ => feed().await,
    }
}
