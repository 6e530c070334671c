//! A key–value server, whose clients put, get and count by calling it.
//!
//! `cargo run --release --example kv` starts a server and three clients in shared memory. The
//! clients count in the same keys at the same time, and the sum shows that no count is lost. As
//! processes of their own, on one machine or several:
//!
//! ```text
//! cargo run --release --example kv -- serve --device udp:127.0.0.1
//! cargo run --release --example kv -- put --device udp:127.0.0.2 --server udp:127.0.0.1:4791#7 sky blue
//! cargo run --release --example kv -- get --device udp:127.0.0.2 --server udp:127.0.0.1:4791#7 sky
//! ```

use std::collections::HashMap;
use std::io::{self, Write};
use std::num::ParseIntError;
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::{Args, Parser};
use doorbell::am::{Call, Endpoint, Handlers, Name, Peer};
use tokio::task::JoinSet;

/// Stores a value. The arguments are the length of the key, and the text of the key and the value.
const PUT: Call<(u64, String)> = Call::new("put");
/// Looks up the value of a key.
const GET: Call<String, Option<String>> = Call::new("get");
/// Adds one to the number that is the value of a key, and answers with the new number.
const COUNT: Call<String, u64> = Call::new("count");

/// The number of the server at its address, which is the end of its name.
const SERVICE: u64 = 7;

/// The keys and their values.
#[derive(Default)]
struct Table(Mutex<HashMap<String, String>>);

impl Table {
    fn entries(&self) -> MutexGuard<'_, HashMap<String, String>> {
        self.0.lock().expect("no handler panics")
    }

    fn put(&self, key_len: u64, text: &str) -> Result<()> {
        let split = text.split_at_checked(key_len as usize);
        let (key, value) = split.context("the key is longer than the text")?;
        self.entries().insert(key.to_owned(), value.to_owned());
        Ok(())
    }

    fn get(&self, key: &str) -> Option<String> {
        self.entries().get(key).cloned()
    }

    fn count(&self, key: String) -> Result<u64, ParseIntError> {
        let mut entries = self.entries();
        let value = entries.entry(key).or_insert_with(|| "0".to_owned());
        let count = value.parse::<u64>()?.saturating_add(1);
        *value = count.to_string();
        Ok(count)
    }
}

/// Opens a server, and prints the name by which clients find it.
async fn serve(device: &str) -> Result<Endpoint> {
    let handlers = Handlers::with(Table::default())
        .on(PUT, |table, _, (key_len, text)| table.put(key_len, &text))
        .on(GET, |table, _, key| table.get(&key))
        .on(COUNT, |table, _, key| table.count(key));
    let server = Endpoint::builder().service(SERVICE).open(device, handlers).await?;
    writeln!(io::stdout(), "serving as {}", server.name())?;
    Ok(server)
}

/// Opens a client, and connects it to a server. The connection lasts as long as the endpoint.
async fn connect(Ends { device, server }: &Ends) -> Result<(Endpoint, Peer)> {
    let client = Endpoint::open(device, Handlers::new()).await?;
    let server = client.connect(server).await?;
    Ok((client, server))
}

/// Runs a server and clients that count together, and checks the sum of their counts.
async fn demonstrate() -> Result<()> {
    const CLIENTS: u64 = 3;
    const COUNTS: u64 = 10_000;
    const KEYS: u64 = 16;
    let key = |count| format!("counter {}", count % KEYS);
    let device = |end| format!("shm:kv/{}/{end}", std::process::id());
    let server = serve(&device(0)).await?;

    let begun = Instant::now();
    let mut clients = JoinSet::new();
    for number in 1..=CLIENTS {
        let ends = Ends { device: device(number), server: server.name().clone() };
        clients.spawn(async move {
            let (client, server) = connect(&ends).await?;
            for count in 0..COUNTS {
                server.call(COUNT, key(count)).await?;
            }
            anyhow::Ok((client, server))
        });
    }
    let clients: Vec<_> = clients.join_all().await.into_iter().collect::<Result<_>>()?;
    let seconds = begun.elapsed().as_secs_f64();

    let (_, server) = &clients[0];
    let mut sum = 0;
    for count in 0..KEYS {
        sum += server.call(GET, key(count)).await?.context("it was counted")?.parse::<u64>()?;
    }
    ensure!(sum == CLIENTS * COUNTS, "{sum} counted, of {}", CLIENTS * COUNTS);
    writeln!(io::stdout(), "{CLIENTS} clients counted to {sum} in {KEYS} keys, in {seconds:.2} s")?;
    Ok(())
}

#[derive(Parser)]
enum Command {
    /// Keeps the keys and their values, until interrupted.
    Serve {
        #[arg(long)]
        device: String,
    },
    /// Prints the value of a key.
    Get {
        #[command(flatten)]
        ends: Ends,
        key: String,
    },
    /// Stores a value.
    Put {
        #[command(flatten)]
        ends: Ends,
        key: String,
        value: String,
    },
}

/// The two ends of a client's connection.
#[derive(Args)]
struct Ends {
    #[arg(long)]
    device: String,
    /// The name that the server has printed.
    #[arg(long)]
    server: Name,
}

#[tokio::main]
async fn main() -> Result<()> {
    if std::env::args().len() == 1 {
        return demonstrate().await;
    }
    match Command::parse() {
        Command::Serve { device } => {
            let _server = serve(&device).await?;
            std::future::pending::<()>().await;
        }
        Command::Get { ends, key } => {
            let (_client, server) = connect(&ends).await?;
            let value = server.call(GET, key.clone()).await?;
            writeln!(io::stdout(), "{}", value.with_context(|| format!("there is no `{key}`"))?)?;
        }
        Command::Put { ends, key, value } => {
            let (_client, server) = connect(&ends).await?;
            server.call(PUT, (key.len() as u64, key + &value)).await?;
        }
    }
    Ok(())
}
