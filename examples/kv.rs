//! A key–value cache in remote memory. The server registers a table, tells its key, and has nothing to
//! do any more: clients look entries up by reading its memory, and change them by compare-and-swap.
//!
//! `cargo run --release --example kv` starts a server and three clients in shared memory, who all
//! change the same entries, and checks what came of it. For a server and clients of their own:
//!
//! ```text
//! cargo run --release --example kv -- serve --device udp:127.0.0.1
//! cargo run --release --example kv -- put   --device udp:127.0.0.2 --server udp:127.0.0.1:4791 sky blue
//! cargo run --release --example kv -- get   --device udp:127.0.0.2 --server udp:127.0.0.1:4791 sky
//! ```

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::time::Instant;

use anyhow::{Context, bail, ensure};
use clap::{Parser, Subcommand};
use doorbell::verbs::{
    Buf, Config, Listener, Nic, QueuePair, QueuePairConfig, Region, RemoteMemory, Rights, ServiceId,
};

const CACHE: ServiceId = ServiceId(0xCAC4E);

/// Entries of the table, each of which holds one of the keys that belong there.
const ENTRIES: u64 = 1 << 14;

/// An entry: a version, and then the key and the value, each behind its length. The version is odd
/// while somebody changes it.
const ENTRY: usize = 128;
const ROOM: usize = ENTRY - 8 - 2;

#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Holds the table, until interrupted.
    Serve {
        #[arg(long)]
        device: String,
    },
    /// Looks a key up.
    Get {
        #[arg(long)]
        device: String,
        #[arg(long)]
        server: String,
        key: String,
    },
    /// Changes what a key stands for.
    Put {
        #[arg(long)]
        device: String,
        #[arg(long)]
        server: String,
        key: String,
        value: String,
    },
}

/// Holds the table, and takes up whoever asks for a connection.
async fn serve(nic: Nic, mut listener: Listener) -> anyhow::Result<()> {
    let domain = nic.domain();
    let table = domain.register(Region::new(ENTRIES as usize * ENTRY), Rights::REMOTE)?;
    println!("a table of {ENTRIES} entries at {}", nic.address());
    loop {
        let incoming = listener.accept().await;
        let pair = domain.queue_pair(&QueuePairConfig::default())?;
        let key = table.remote().to_bytes();
        tokio::spawn(async move {
            match pair.accept(incoming, &key).await {
                // It is served by being there.
                Ok((pair, _)) => drop(pair.connection().ended().await),
                Err(why) => eprintln!("a client did not come: {why}"),
            }
        });
    }
}

/// Somebody who uses the table.
struct Client {
    pair: QueuePair,
    table: RemoteMemory,
}

/// What an entry holds at a moment.
struct Entry {
    place: RemoteMemory,
    version: u64,
    bytes: Buf,
}

impl Entry {
    /// The value, if it is this key's.
    fn value(&self, key: &[u8]) -> Option<&[u8]> {
        let [key_len, value_len, rest @ ..] = &self.bytes[8..] else { return None };
        let (found, rest) = rest.split_at_checked(usize::from(*key_len))?;
        (found == key).then(|| rest.get(..usize::from(*value_len)))?
    }
}

impl Client {
    async fn connect(nic: &Nic, server: &str) -> anyhow::Result<Self> {
        let pair = nic.domain().queue_pair(&QueuePairConfig::default())?;
        let (pair, told) = pair.connect(server, CACHE, &[]).await?;
        let table = RemoteMemory::from_prefix(&told).context("the server told no key")?;
        Ok(Self { pair, table })
    }

    /// An entry as it stood at one moment: whoever changes it meanwhile leaves another version, or
    /// an odd one.
    async fn entry(&self, key: &[u8]) -> anyhow::Result<Entry> {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(key);
        let place = self.table.at(hash % ENTRIES * ENTRY as u64, ENTRY as u64)?;
        loop {
            let bytes = self.pair.read(Buf::with_capacity(ENTRY), place).await?;
            let after = self.pair.read(Buf::with_capacity(8), place.at(0, 8)?).await?;
            let version = u64::from_le_bytes(bytes[..8].try_into()?);
            if version.is_multiple_of(2) && bytes[..8] == after[..] {
                return Ok(Entry { place, version, bytes });
            }
        }
    }

    async fn get(&self, key: &str) -> anyhow::Result<Option<Vec<u8>>> {
        Ok(self.entry(key.as_bytes()).await?.value(key.as_bytes()).map(<[u8]>::to_vec))
    }

    /// Changes what a key stands for, by what it stands for now.
    async fn update(
        &self,
        key: &str,
        value: impl Fn(Option<&[u8]>) -> Vec<u8>,
    ) -> anyhow::Result<()> {
        loop {
            let entry = self.entry(key.as_bytes()).await?;
            let (place, version) = (entry.place, entry.version);
            let value = value(entry.value(key.as_bytes()));
            ensure!(key.len() + value.len() <= ROOM, "more than {ROOM} bytes");
            // Whoever makes the version odd has the entry to himself.
            let word = place.at(0, 8)?;
            if self.pair.compare_swap(word, version, version + 1).await? != version {
                continue;
            }
            let mut bytes = vec![key.len() as u8, value.len() as u8];
            bytes.extend_from_slice(key.as_bytes());
            bytes.extend_from_slice(&value);
            let len = bytes.len() as u64;
            self.pair.write(Buf::from(bytes), place.at(8, len)?).await?;
            let released = self.pair.compare_swap(word, version + 1, version + 2).await?;
            ensure!(released == version + 1, "somebody has changed an entry that was not his");
            return Ok(());
        }
    }
}

/// A server, and clients who count together.
async fn demonstrate() -> anyhow::Result<()> {
    const CLIENTS: u64 = 3;
    const COUNTS: u64 = 10_000;
    const KEYS: u64 = 16;
    let name = |end| format!("shm:kv/{}/{end}", std::process::id());
    let server = Nic::open(&name(0), Config::default())?;
    let address = server.address().to_string();
    let listener = server.listen(CACHE).await?;
    tokio::spawn(serve(server, listener));

    let begun = Instant::now();
    let clients: Vec<_> = (1..=CLIENTS)
        .map(|number| {
            let (nic, address) = (Nic::open(&name(number), Config::default()), address.clone());
            tokio::spawn(async move {
                let client = Client::connect(&nic?, &address).await?;
                for count in 0..COUNTS {
                    let key = format!("counter {}", count % KEYS);
                    client.update(&key, |found| (number_in(found) + 1).to_string().into()).await?;
                }
                anyhow::Ok(client)
            })
        })
        .collect();
    let mut last = None;
    for client in clients {
        last = Some(client.await??);
    }
    let Some(client) = last else { bail!("there is a client") };
    let mut sum = 0;
    for key in 0..KEYS {
        sum += number_in(client.get(&format!("counter {key}")).await?.as_deref());
    }
    ensure!(sum == CLIENTS * COUNTS, "{sum} counted, of {}", CLIENTS * COUNTS);
    let seconds = begun.elapsed().as_secs_f64();
    println!("{CLIENTS} clients counted to {sum} in {KEYS} entries, in {seconds:.2} s");
    Ok(())
}

fn number_in(value: Option<&[u8]>) -> u64 {
    value.and_then(|text| std::str::from_utf8(text).ok()?.parse().ok()).unwrap_or(0)
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let open = |device: String| Nic::open(&device, Config::default());
    match Args::parse().command {
        None => demonstrate().await,
        Some(Command::Serve { device }) => {
            let nic = open(device)?;
            let listener = nic.listen(CACHE).await?;
            serve(nic, listener).await
        }
        Some(Command::Get { device, server, key }) => {
            let client = Client::connect(&open(device)?, &server).await?;
            let value = client.get(&key).await?.with_context(|| format!("no `{key}` is there"))?;
            println!("{}", String::from_utf8_lossy(&value));
            Ok(())
        }
        Some(Command::Put { device, server, key, value }) => {
            let client = Client::connect(&open(device)?, &server).await?;
            client.update(&key, |_| value.clone().into_bytes()).await
        }
    }
}
