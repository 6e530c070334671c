//! A server of files: a message asks for one, and the file comes back as another message, read and
//! written while it is on its way. Many come at once, and a long one holds up no others.
//!
//! `cargo run --release --example file_server` serves a few files of up to 64 MiB to a client in
//! shared memory, and compares. Between processes, or machines:
//!
//! ```text
//! cargo run --release --example file_server -- serve --device udp:127.0.0.1 .
//! cargo run --release --example file_server -- get --device udp:127.0.0.2 --from udp:127.0.0.1:4791#46494c4500000001 LICENSE-MIT copy
//! ```

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use clap::{Parser, Subcommand};
use doorbell::messages::streams::{Endpoint, HandlerError, Incoming, Message, Peer, StreamId};
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;

/// Asks for a file: 8 bytes with a number, and the path.
const GET: StreamId = StreamId::new("get");
/// A file: the number by which it was asked for, a byte that is 1 if it is there, and its bytes, or
/// why it is not.
const FILE: StreamId = StreamId::new("file");

/// The number by which servers are known at their address.
const SERVICE: u64 = u64::from_be_bytes(*b"FILE\0\0\0\x01");

/// How many bytes are read from a file at a time.
const AT_A_TIME: usize = 256 << 10;
/// The longest path that may be asked for.
const LONGEST_PATH: usize = 4096;

#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Serves the files of a folder.
    Serve {
        #[arg(long)]
        device: String,
        folder: PathBuf,
    },
    /// Gets one.
    Get {
        #[arg(long)]
        device: String,
        #[arg(long)]
        from: String,
        path: String,
        copy: PathBuf,
    },
}

/// Opens a server of the files of a folder.
async fn serve(device: &str, folder: PathBuf) -> anyhow::Result<Endpoint> {
    let folder = Arc::new(folder);
    let server = Endpoint::builder()
        .endpoint(|endpoint| endpoint.service(SERVICE))
        .handler(GET, move |message| answer(message, folder.clone()));
    Ok(server.open(device).await?)
}

/// Sends the file that a message asks for, or why there is none.
async fn answer(mut message: Incoming, folder: Arc<PathBuf>) -> Result<(), HandlerError> {
    let number = message.receive(8).await?;
    let path = message.receive_rest(LONGEST_PATH).await?;
    let mut back = message.peer().begin(FILE).await?;
    back.send_bytes(number).await?;
    let opened = spawn_blocking(move || open(&folder, &path)).await?;
    match opened {
        Ok(file) => {
            back.send([1]).await?;
            send_file(&mut back, file).await?;
        }
        Err(why) => {
            back.send([0]).await?;
            back.send(format!("{why:#}")).await?;
        }
    }
    Ok(back.end().await?)
}

/// Opens a file of a folder, and none that is elsewhere.
fn open(folder: &Path, path: &[u8]) -> anyhow::Result<File> {
    let path = Path::new(std::str::from_utf8(path).context("the path is no text")?);
    let is_inside = path.components().all(|part| matches!(part, Component::Normal(_)));
    ensure!(is_inside, "{} is not below the folder that is served", path.display());
    File::open(folder.join(path)).with_context(|| path.display().to_string())
}

/// Sends a file piece by piece. Reading blocks, so a thread for such things does that.
async fn send_file(message: &mut Message, mut file: File) -> Result<(), HandlerError> {
    loop {
        let (back, read) = spawn_blocking(move || {
            let mut bytes = Vec::new();
            let read = (&mut file).take(AT_A_TIME as u64).read_to_end(&mut bytes);
            (file, read.map(|_| bytes))
        })
        .await?;
        file = back;
        let bytes = read?;
        if bytes.is_empty() {
            return Ok(());
        }
        message.send_bytes(bytes).await?;
    }
}

/// The files that a client waits for: where each is to be, and who is told.
#[derive(Clone, Default)]
struct Waiting(Arc<Mutex<HashMap<u64, Wanted>>>);

struct Wanted {
    copy: PathBuf,
    done: oneshot::Sender<anyhow::Result<u64>>,
}

#[derive(Clone)]
struct Client {
    _endpoint: Endpoint,
    server: Peer,
    waiting: Waiting,
}

impl Client {
    async fn connect(device: &str, server: &str) -> anyhow::Result<Self> {
        let waiting = Waiting::default();
        let wanted = waiting.clone();
        let endpoint =
            Endpoint::builder().handler(FILE, move |message| take(message, wanted.clone()));
        let endpoint = endpoint.open(device).await?;
        let server = endpoint.connect(server).await?;
        Ok(Self { _endpoint: endpoint, server, waiting })
    }

    /// Gets a file. Returns how many bytes it has.
    async fn get(&self, number: u64, path: &str, copy: PathBuf) -> anyhow::Result<u64> {
        let (done, is_done) = oneshot::channel();
        self.waiting.0.lock().expect("no panic").insert(number, Wanted { copy, done });
        let mut message = self.server.begin(GET).await?;
        message.send(number.to_be_bytes()).await?;
        message.send(path).await?;
        message.end_handled().await?;
        is_done.await.context("the server has sent no file")?
    }
}

/// Writes a file that comes.
async fn take(mut message: Incoming, waiting: Waiting) -> Result<(), HandlerError> {
    let mut head = [0; 9];
    message.receive_into(&mut head).await?;
    let (number, is_there) = (u64::from_be_bytes(*head.first_chunk().expect("9")), head[8] == 1);
    let wanted = waiting.0.lock().expect("no panic").remove(&number);
    let Wanted { copy, done } = wanted.ok_or("nobody waits for that file")?;
    let outcome = match is_there {
        true => receive_file(&mut message, copy).await,
        false => Err(why_not(&mut message).await),
    };
    let _ = done.send(outcome);
    Ok(())
}

async fn receive_file(message: &mut Incoming, copy: PathBuf) -> anyhow::Result<u64> {
    let mut file = spawn_blocking(move || File::create(copy)).await??;
    let mut len = 0;
    loop {
        let pieces = some_pieces(message).await?;
        if pieces.is_empty() {
            return Ok(len);
        }
        len += pieces.iter().map(|piece| piece.len() as u64).sum::<u64>();
        file = spawn_blocking(move || {
            pieces.iter().try_for_each(|piece| file.write_all(piece)).map(|()| file)
        })
        .await??;
    }
}

/// Receives pieces as they have come, enough for a write.
async fn some_pieces(message: &mut Incoming) -> anyhow::Result<Vec<Bytes>> {
    let (mut pieces, mut len) = (Vec::new(), 0);
    while len < AT_A_TIME / 4
        && let Some(piece) = message.receive_some().await?
    {
        len += piece.len();
        pieces.push(piece);
    }
    Ok(pieces)
}

async fn why_not(message: &mut Incoming) -> anyhow::Error {
    match message.receive_rest(LONGEST_PATH).await {
        Ok(text) => anyhow::anyhow!("the server: {}", String::from_utf8_lossy(&text)),
        Err(why) => why.into(),
    }
}

/// Gets files from a server all at once, and compares.
async fn demonstrate() -> anyhow::Result<()> {
    let folder = std::env::temp_dir().join(format!("doorbell-files-{}", std::process::id()));
    let copies = folder.join("copies");
    std::fs::create_dir_all(&copies)?;
    let lens = [0, 7, 100_000, 3 << 20, 64 << 20];
    for len in lens {
        let bytes: Vec<u8> = (0..len as u32).map(|at| (at ^ at >> 9) as u8).collect();
        std::fs::write(folder.join(len.to_string()), bytes)?;
    }
    let server = serve("shm", folder.clone()).await?;
    let client = Client::connect("shm", &server.name().to_string()).await?;
    let begun = Instant::now();
    let gets = lens.map(|len| {
        let name = len.to_string();
        let (client, copy) = (client.clone(), copies.join(&name));
        tokio::spawn(async move { client.get(len as u64, &name, copy).await })
    });
    let mut all = 0;
    for get in gets {
        all += get.await??;
    }
    let seconds = begun.elapsed().as_secs_f64();
    let missing = client.get(1, "none", copies.join("none")).await;
    let outside = client.get(2, "../etc/passwd", copies.join("none")).await;
    for len in lens {
        let same = std::fs::read(folder.join(len.to_string()))?
            == std::fs::read(copies.join(len.to_string()))?;
        ensure!(same, "the copy of {len} bytes is not the file");
    }
    std::fs::remove_dir_all(&folder)?;
    if missing.is_ok() || outside.is_ok() {
        bail!("there is no such file");
    }
    let rate = all as f64 / seconds / 1e9;
    writeln!(
        io::stdout(),
        "{} files of {all} bytes in {seconds:.3} s, {rate:.2} GB/s from file to file",
        lens.len()
    )?;
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    match Args::parse().command {
        None => demonstrate().await,
        Some(Command::Serve { device, folder }) => {
            let server = serve(&device, folder).await?;
            writeln!(io::stdout(), "serving as {}", server.name())?;
            std::future::pending().await
        }
        Some(Command::Get { device, from, path, copy }) => {
            let client = Client::connect(&device, &from).await?;
            writeln!(io::stdout(), "{} bytes received", client.get(0, &path, copy).await?)?;
            Ok(())
        }
    }
}
