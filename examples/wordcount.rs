//! A distributed word count: processes that count parts of a text, and then send each word's count to
//! the one process that adds up those.
//!
//! `cargo run --release --example wordcount [FILE [PROCESSES]]` starts the others itself, on shared
//! memory; on several machines, start each with `--worker DEVICE NAME`, as this one prints.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard};

use anyhow::{Context, Result};
use doorbell::am::{Bundle, BundleConfig, Endpoint, EndpointConfig, Handlers, Kept, Name};
use doorbell::am::{ReplyId, RequestId};
use doorbell::verbs::{Config, Nic};
use tokio::process::{Child, Command};
use tokio::sync::{Notify, mpsc};

/// A worker is there; its name is the payload.
const JOIN: RequestId<()> = RequestId::new(0, "join");
/// All workers are there, and this is the one of that number; their names are the payload.
const MEET: RequestId<u64> = RequestId::new(1, "meet");
/// A part of the text, to be counted.
const TEXT: RequestId<()> = RequestId::new(2, "text");
/// There is no more: what was counted goes to whoever adds it up.
const SHUFFLE: RequestId<()> = RequestId::new(3, "shuffle");
/// So many of the word in the payload.
const ADD: RequestId<u64> = RequestId::new(4, "add");
/// Whether all is added up that was sent before.
const ADDED: RequestId<()> = RequestId::new(5, "added");
/// The most frequent so many words.
const TOP: RequestId<u64> = RequestId::new(6, "top");
const END: RequestId<()> = RequestId::new(7, "end");
const YES: ReplyId<()> = ReplyId::new(0, "yes");
/// How many words there are in all; those asked for are the payload, a line each.
const WORDS: ReplyId<u64> = ReplyId::new(1, "words");

type Counts = HashMap<String, u64>;

#[derive(Default)]
struct Worker {
    counted: Mutex<Counts>,
    added: Mutex<Counts>,
    ended: Notify,
}

fn held(counts: &Mutex<Counts>) -> MutexGuard<'_, Counts> {
    counts.lock().expect("nobody panics while counting")
}

async fn endpoint(device: &str, handlers: Handlers) -> Result<Endpoint> {
    let nic = Nic::open(device, Config::default())?;
    let bundle = Bundle::new(&nic, &BundleConfig::default())?;
    let config = EndpointConfig { credits: 64, ..EndpointConfig::default() };
    Ok(bundle.endpoint(handlers, config).await?)
}

/// Where the others are in a worker's table: the coordinator is at 0.
fn place(worker: u64) -> usize {
    worker as usize + 1
}

async fn meet(worker: Arc<Mutex<Option<Endpoint>>>, request: Kept) -> Result<()> {
    let endpoint = worker.lock().expect("nobody panics").clone().context("it is open")?;
    for (number, name) in (0..).zip(std::str::from_utf8(request.payload())?.lines()) {
        endpoint.map(place(number), &name.parse()?, None).await?;
    }
    request.reply(YES, ());
    Ok(())
}

/// Sends each word's count to whoever adds it up, and waits until all are.
async fn shuffle(own: Arc<Worker>, endpoint: Endpoint, workers: u64) -> Result<()> {
    let counted = std::mem::take(&mut *held(&own.counted));
    for (word, count) in counted {
        let mut hash = DefaultHasher::new();
        word.hash(&mut hash);
        let peer = endpoint.peer(place(hash.finish() % workers))?;
        peer.request_with(ADD, count, word.as_bytes()).await?;
    }
    for worker in 0..workers {
        endpoint.call(place(worker), ADDED, ()).await?;
    }
    Ok(())
}

fn tell(what: &str, result: Result<()>) {
    if let Err(why) = result {
        eprintln!("{what}: {why}");
    }
}

async fn work(device: &str, coordinator: &Name) -> Result<()> {
    let worker = Arc::new(Worker::default());
    let slot: Arc<Mutex<Option<Endpoint>>> = Arc::default();
    let own = || worker.clone();
    let (counts, adds, tops, ends, shuffles) = (own(), own(), own(), own(), own());
    let (meets, sends) = (slot.clone(), slot.clone());
    let workers = Arc::new(Mutex::new(0));
    let (all, known) = (workers.clone(), workers);
    let handlers = Handlers::new()
        .request_async(MEET, move |request, count| {
            *all.lock().expect("nobody panics") = count;
            let met = meet(meets.clone(), request);
            async move { tell("meeting the others", met.await) }
        })
        .request(TEXT, move |request, ()| {
            let text = String::from_utf8_lossy(request.payload());
            let mut counts = held(&counts.counted);
            for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
                *counts.entry(word.to_lowercase()).or_default() += 1;
            }
        })
        .request_async(SHUFFLE, move |request, ()| {
            let endpoint = sends.lock().expect("nobody panics").clone().expect("it is open");
            let count = *known.lock().expect("nobody panics");
            let sent = shuffle(shuffles.clone(), endpoint, count);
            async move {
                tell("sending counts", sent.await);
                request.reply(YES, ());
            }
        })
        .request(ADD, move |request, count| {
            let word = String::from_utf8_lossy(request.payload()).into_owned();
            *held(&adds.added).entry(word).or_default() += count;
        })
        .request(ADDED, |request, ()| request.reply(YES, ()))
        .request(TOP, move |request, most| {
            let counts = held(&tops.added);
            let mut words: Vec<_> = counts.iter().map(|(word, count)| (*count, word)).collect();
            words.sort_unstable_by(|one, other| other.cmp(one));
            let lines =
                words.iter().take(most as usize).map(|(count, word)| format!("{count} {word}\n"));
            let lines: String = lines.collect();
            let total = counts.values().sum::<u64>();
            request.reply_with(WORDS, total, lines.as_bytes()).expect("a few lines");
        })
        .request(END, move |_, ()| ends.ended.notify_one());
    let endpoint = endpoint(device, handlers).await?;
    *slot.lock().expect("nobody panics") = Some(endpoint.clone());
    let name = endpoint.name().to_string();
    endpoint.map(0, coordinator, None).await?.call_with(JOIN, (), name.as_bytes()).await?;
    worker.ended.notified().await;
    Ok(())
}

/// Parts of a text that fit a payload, each to the end of a word.
fn parts(mut text: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let most = text.len().min(4096);
        let end = match text[..most].iter().rposition(u8::is_ascii_whitespace) {
            Some(end) if most < text.len() => end + 1,
            _ => most,
        };
        let (part, rest) = text.split_at(end);
        text = rest;
        (!part.is_empty()).then_some(part)
    })
}

async fn coordinate(file: &str, workers: u64) -> Result<()> {
    let text = std::fs::read(file).with_context(|| format!("reading {file}"))?;
    let (joins, mut joined) = mpsc::unbounded_channel();
    let handlers = Handlers::new().request(JOIN, move |request, ()| {
        let name = String::from_utf8_lossy(request.payload()).into_owned();
        // Whoever waits for it has gone only if all is over.
        let _ = joins.send(name);
        request.reply(YES, ());
    });
    let own = std::process::id();
    let endpoint = endpoint(&format!("shm:wordcount-{own}/all"), handlers).await?;
    println!("{workers} processes, with --worker DEVICE '{}'", endpoint.name());
    let started: Result<Vec<Child>> = (0..workers)
        .map(|number| {
            let device = format!("shm:wordcount-{own}/{number}");
            let mut command = Command::new(std::env::current_exe()?);
            Ok(command
                .args(["--worker", &device, &endpoint.name().to_string()])
                .kill_on_drop(true)
                .spawn()?)
        })
        .collect();
    let mut names = String::new();
    for number in 0..workers {
        let name: String = joined.recv().await.context("all workers join")?;
        endpoint.map(place(number), &name.parse()?, None).await?;
        names += &format!("{name}\n");
    }
    for number in 0..workers {
        endpoint.peer(place(number))?.call_with(MEET, workers, names.as_bytes()).await?;
    }
    for (number, part) in parts(&text).enumerate() {
        let peer = endpoint.peer(place(number as u64 % workers))?;
        peer.request_with(TEXT, (), part).await?;
    }
    let shuffled = (0..workers).map(|number| {
        let endpoint = endpoint.clone();
        tokio::spawn(async move { endpoint.call(place(number), SHUFFLE, ()).await })
    });
    for shuffled in shuffled.collect::<Vec<_>>() {
        shuffled.await??;
    }
    let (mut total, mut top) = (0, Vec::new());
    for number in 0..workers {
        let reply = endpoint.call(place(number), TOP, 10).await?;
        total += reply.arguments(WORDS)?;
        for line in std::str::from_utf8(reply.payload())?.lines() {
            let (count, word) = line.split_once(' ').context("a count and a word")?;
            top.push((count.parse::<u64>()?, word.to_owned()));
        }
        endpoint.request(place(number), END, ()).await?;
    }
    top.sort_unstable_by(|one, other| other.cmp(one));
    println!("{total} words in {file}; most often");
    top.iter().take(10).for_each(|(count, word)| println!("{count:>8} {word}"));
    for mut worker in started? {
        worker.wait().await?;
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--worker", device, coordinator] => work(device, &coordinator.parse()?).await,
        [] => coordinate("LICENSE-APACHE", 3).await,
        [file] => coordinate(file, 3).await,
        [file, workers, ..] => coordinate(file, workers.parse()?).await,
    }
}
