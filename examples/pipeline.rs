//! A pipeline of asynchronous handlers, each in a process of its own: what comes to one is worked on,
//! handed to the next, and answered with what that answers.
//!
//! `cargo run --release --example pipeline` starts the processes itself, and sends a hundred items
//! through them. Each stage takes 2 ms an item, and has 16 under way at a time: credits hold up
//! whoever sends more, and so nothing piles up anywhere.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use doorbell::am::{Bundle, BundleConfig, Endpoint, EndpointConfig, Handlers, Kept, Peer};
use doorbell::am::{ReplyId, RequestId};
use doorbell::verbs::{Config, Nic};
use tokio::process::{Child, Command};
use tokio::sync::{Notify, mpsc};

/// A stage is there; its name is the payload.
const JOIN: RequestId<u64> = RequestId::new(0, "join");
/// An item, which is answered when all stages behind have had it.
const ITEM: RequestId<(u64, f64)> = RequestId::new(1, "item");
const END: RequestId<()> = RequestId::new(2, "end");
const DONE: ReplyId<(u64, f64)> = ReplyId::new(0, "done");

const STAGES: u64 = 3;
const ITEMS: u64 = 100;
const AT_A_TIME: usize = 16;

async fn endpoint(device: &str, handlers: Handlers) -> Result<Endpoint> {
    let nic = Nic::open(device, Config::default())?;
    let bundle = Bundle::new(&nic, &BundleConfig::default())?;
    let config =
        EndpointConfig { credits: AT_A_TIME, tasks: AT_A_TIME, ..EndpointConfig::default() };
    Ok(bundle.endpoint(handlers, config).await?)
}

/// Works on an item, and has the next stage go on.
async fn stage(next: Option<Peer>, request: Kept, number: u64, value: f64) -> Result<()> {
    tokio::time::sleep(Duration::from_millis(2)).await;
    let worked = value * 2.0 + 1.0;
    let (number, value) = match next {
        Some(next) => next.call(ITEM, (number, worked)).await?.arguments(DONE)?,
        None => (number, worked),
    };
    request.reply(DONE, (number, value));
    Ok(())
}

async fn work(which: u64, device: &str, feeder: &str, next: Option<&str>) -> Result<()> {
    let (ended, behind) = (Arc::new(Notify::new()), Arc::new(OnceLock::<Peer>::new()));
    let (ends, calls) = (ended.clone(), behind.clone());
    let handlers = Handlers::new()
        .request_async(ITEM, move |request, (number, value)| {
            let worked = stage(calls.get().cloned(), request, number, value);
            async move {
                if let Err(why) = worked.await {
                    eprintln!("item {number}: {why}");
                }
            }
        })
        .request(END, move |_, ()| ends.notify_one());
    let endpoint = endpoint(device, handlers).await?;
    if let Some(next) = next {
        let _ = behind.set(endpoint.map(1, &next.parse()?, None).await?);
    }
    let name = endpoint.name().to_string();
    let feeder = endpoint.map(0, &feeder.parse()?, None).await?;
    feeder.call_with(JOIN, which, name.as_bytes()).await?;
    ended.notified().await;
    Ok(())
}

async fn feed() -> Result<()> {
    let (joins, mut joined) = mpsc::unbounded_channel();
    let handlers = Handlers::new().request(JOIN, move |request, which| {
        let name = String::from_utf8_lossy(request.payload()).into_owned();
        // Whoever waits for it has gone only if all is over.
        let _ = joins.send(name);
        request.reply(DONE, (which, 0.0));
    });
    let own = std::process::id();
    let endpoint = endpoint(&format!("shm:pipeline-{own}/feeder"), handlers).await?;
    let feeder = endpoint.name().to_string();
    let (mut stages, mut names): (Vec<Child>, Vec<String>) = Default::default();
    // The last first, for each must know the one behind it.
    for which in (0..STAGES).rev() {
        let device = format!("shm:pipeline-{own}/{which}");
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["--stage", &which.to_string(), &device, &feeder]).args(names.last());
        stages.push(command.kill_on_drop(true).spawn()?);
        names.push(joined.recv().await.context("each stage joins")?);
    }
    for (place, name) in names.iter().rev().enumerate() {
        endpoint.map(place, &name.parse()?, None).await?;
    }
    let start = Instant::now();
    let first = endpoint.peer(0)?;
    let items: Vec<_> = (0..ITEMS)
        .map(|number| {
            let first = first.clone();
            tokio::spawn(async move { first.call(ITEM, (number, number as f64)).await })
        })
        .collect();
    for (number, item) in (0..ITEMS).zip(items) {
        let (which, value) = item.await??.arguments(DONE)?;
        assert_eq!((which, value), (number, 8.0 * number as f64 + 7.0));
    }
    let took = start.elapsed().as_secs_f64();
    println!("{ITEMS} items went through {STAGES} stages in {:.0} ms", took * 1e3);
    for place in 0..names.len() {
        endpoint.request(place, END, ()).await?;
    }
    for mut stage in stages {
        stage.wait().await?;
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--stage", which, device, feeder, next @ ..] => {
            work(which.parse()?, device, feeder, next.first().copied()).await
        }
        _ => feed().await,
    }
}
