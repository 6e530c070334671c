//! A distributed word count. Each worker is a process that counts the words in parts of a text, and
//! then sends each word's count to the one worker that adds up the counts of that word.
//!
//! `cargo run --release --example wordcount [FILE [PROCESSES]]` starts the workers as processes, on
//! shared memory.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard};

use anyhow::{Context, Result, ensure};
use doorbell::am::{Call, Endpoint, Handlers, Name, Notice, Peer, Received};
use tokio::process::{Child, Command};
use tokio::sync::Barrier;

/// Tells the coordinator the name of a worker. The answer is the names of all workers, when all
/// have joined.
const JOIN: Call<String, String> = Call::new("join");
/// Asks the coordinator for a part of the text to count, until no part is left.
const PART: Call<(), Option<String>> = Call::new("part");
/// Tells a worker how often a word was counted.
const ADD: Notice<(u64, String)> = Notice::new("add");
/// The answer comes when a worker has added all counts that it was told of before.
const ADDED: Call<()> = Call::new("added");
/// Tells the coordinator that all counts of a worker are added. The answer comes when all workers'
/// counts are.
const SHUFFLED: Call<()> = Call::new("shuffled");
/// Tells the coordinator a word that a worker has added up, and how often it was counted.
const TOP: Notice<(u64, String)> = Notice::new("top");
/// Tells the coordinator how many words a worker has added up in all.
const TOTAL: Call<u64> = Call::new("total");

type Counts = HashMap<String, u64>;

fn held<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().expect("nobody panics while holding it")
}

/// The ten most frequent words.
fn top_ten(words: impl IntoIterator<Item = (u64, String)>) -> Vec<(u64, String)> {
    let mut words: Vec<_> = words.into_iter().collect();
    words.sort_unstable_by(|one, other| other.cmp(one));
    words.truncate(10);
    words
}

/// Counts the words of parts of the text, until no part is left.
async fn count(coordinator: &Peer) -> Result<Counts> {
    let mut counts = Counts::new();
    while let Some(text) = coordinator.call(PART, ()).await? {
        for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
            *counts.entry(word.to_lowercase()).or_default() += 1;
        }
    }
    Ok(counts)
}

/// Sends each word's count to the worker that adds it up, and waits until all are added.
async fn shuffle(counts: Counts, workers: &[Peer]) -> Result<()> {
    for (word, count) in counts {
        let hash = BuildHasherDefault::<DefaultHasher>::new().hash_one(&word);
        workers[hash as usize % workers.len()].notify(ADD, (count, word)).await?;
    }
    for worker in workers {
        worker.call(ADDED, ()).await?;
    }
    Ok(())
}

/// Tells the coordinator what a worker has added up.
async fn report(added: Counts, coordinator: &Peer) -> Result<()> {
    let total = added.values().sum();
    for counted in top_ten(added.into_iter().map(|(word, count)| (count, word))) {
        coordinator.notify(TOP, counted).await?;
    }
    Ok(coordinator.call(TOTAL, total).await?)
}

/// Runs a worker.
async fn work(device: &str, coordinator: &str) -> Result<()> {
    let added = Arc::<Mutex<Counts>>::default();
    let handlers = Handlers::with(added.clone())
        .on(ADD, |added, _, (count, word)| *held(added).entry(word).or_default() += count)
        .on(ADDED, |_, _, ()| ());
    let endpoint = Endpoint::builder().credits(64).open(device, handlers).await?;
    let coordinator = endpoint.connect(coordinator).await?;
    let mut workers = Vec::new();
    for name in coordinator.call(JOIN, endpoint.name().to_string()).await?.lines() {
        workers.push(endpoint.connect(name).await?);
    }
    shuffle(count(&coordinator).await?, &workers).await?;
    coordinator.call(SHUFFLED, ()).await?;
    let added = std::mem::take(&mut *held(&added));
    report(added, &coordinator).await
}

/// What the handlers of the coordinator share.
struct Coordinator {
    parts: Mutex<std::vec::IntoIter<String>>,
    names: Mutex<Vec<String>>,
    /// Where the workers wait for each other.
    all: Barrier,
    top: Mutex<Vec<(u64, String)>>,
    total: Mutex<u64>,
}

/// Takes up a worker, and answers with the names of all workers when they are there.
async fn join(coordinator: Arc<Coordinator>, _: Received, name: String) -> String {
    held(&coordinator.names).push(name);
    coordinator.all.wait().await;
    held(&coordinator.names).join("\n")
}

/// Parts of a text that fit a message, each to the end of a word.
fn parts(mut text: &str) -> Vec<String> {
    let mut parts = Vec::new();
    while !text.is_empty() {
        let most = text.floor_char_boundary(4096);
        let end = match text[..most].rfind([' ', '\n']) {
            Some(end) if most < text.len() => end + 1,
            _ => most,
        };
        let part;
        (part, text) = text.split_at(end);
        parts.push(part.to_owned());
    }
    parts
}

/// Starts a worker as a process.
fn start(number: usize, coordinator: &Name) -> Result<Child> {
    let device = format!("shm:wordcount-{}/{number}", std::process::id());
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--worker", &device, &coordinator.to_string()]);
    Ok(command.kill_on_drop(true).spawn()?)
}

/// Has workers count the words of a file, and prints the most frequent ones.
async fn coordinate(file: &str, workers: usize) -> Result<()> {
    let text = std::fs::read_to_string(file).with_context(|| format!("reading {file}"))?;
    let shared = Arc::new(Coordinator {
        parts: Mutex::new(parts(&text).into_iter()),
        names: Mutex::default(),
        all: Barrier::new(workers),
        top: Mutex::default(),
        total: Mutex::default(),
    });
    let handlers = Handlers::with(shared.clone())
        .on_async(JOIN, join)
        .on(PART, |shared, _, ()| held(&shared.parts).next())
        .on_async(SHUFFLED, |shared, _, ()| async move {
            shared.all.wait().await;
        })
        .on(TOP, |shared, _, counted| held(&shared.top).push(counted))
        .on(TOTAL, |shared, _, total| *held(&shared.total) += total);
    let device = format!("shm:wordcount-{}/all", std::process::id());
    let endpoint = Endpoint::open(&device, handlers).await?;
    writeln!(io::stdout(), "{workers} processes, with --worker DEVICE '{}'", endpoint.name())?;
    let started = (0..workers).map(|number| start(number, endpoint.name()));
    for mut worker in started.collect::<Result<Vec<_>>>()? {
        ensure!(worker.wait().await?.success(), "a worker has failed");
    }
    writeln!(io::stdout(), "{} words in {file}; most often", held(&shared.total))?;
    for (count, word) in top_ten(held(&shared.top).drain(..)) {
        writeln!(io::stdout(), "{count:>8} {word}")?;
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--worker", device, coordinator] => work(device, coordinator).await,
        [] => coordinate("LICENSE-APACHE", 3).await,
        [file] => coordinate(file, 3).await,
        [file, workers, ..] => coordinate(file, workers.parse()?).await,
    }
}
