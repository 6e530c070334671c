//! A file, from one process to another by writes with immediate: the receiver lends memory, the
//! sender writes a piece into each part of it and says which, and the receiver gives the part back
//! when the piece is in its file.
//!
//! `cargo run --release --example transfer` sends a file of 64 MiB from one end to another in
//! shared memory, and compares. Between two processes, or machines:
//!
//! ```text
//! cargo run --release --example transfer -- receive --device udp:127.0.0.1 copy.bin
//! cargo run --release --example transfer -- send --device udp:127.0.0.2 --to udp:127.0.0.1:4791 file.bin
//! ```

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, ensure};
use clap::{Parser, Subcommand};
use doorbell::verbs::{
    Buf, Imm, Listener, Name, Nic, QueuePair, QueuePairConfig, Region, RemoteMemory, Rights,
    ServiceId,
};

const TRANSFER: ServiceId = ServiceId(0xF11E);

/// The memory that is lent, in parts.
const PART: usize = 256 << 10;
const PARTS: usize = 8;

#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Receives one file.
    Receive {
        #[arg(long)]
        device: String,
        path: PathBuf,
    },
    /// Sends one.
    Send {
        #[arg(long)]
        device: String,
        #[arg(long)]
        to: String,
        path: PathBuf,
    },
}

/// Receives a file. How many bytes it has.
async fn receive(nic: Nic, mut listener: Listener, path: &Path) -> anyhow::Result<u64> {
    writeln!(io::stdout(), "waiting at {}", nic.address())?;
    let domain = nic.domain();
    let memory = domain.register(Region::new(PARTS * PART), Rights::REMOTE)?;
    let pair = domain.queue_pair(&QueuePairConfig::default())?;
    for _ in 0..PARTS {
        pair.post_receive(Buf::default())?;
    }
    let told = memory.remote().to_bytes();
    let (pair, _) = pair.accept(listener.accept().await?, &told).await?;

    let (mut file, mut bytes, mut received) = (File::create(path)?, vec![0; PART], 0);
    loop {
        let piece = pair.receive().await?;
        let len = piece.len as usize;
        // A piece of nothing is the end.
        if len == 0 {
            pair.send_inline(&[]).await?;
            pair.connection().ended().await;
            return Ok(received);
        }
        let part = piece.imm().context("a piece without its number")?.0 as usize;
        ensure!(part < PARTS && len <= PART, "a piece of {len} bytes in part {part}");
        memory.read_at(part * PART, &mut bytes[..len])?;
        pair.post_receive(piece.data)?;
        pair.send_inline(&[]).await?;
        file.write_all(&bytes[..len])?;
        received += len as u64;
    }
}

/// Sends a file. How many bytes it has.
async fn send(nic: Nic, to: &str, path: &Path) -> anyhow::Result<u64> {
    let mut file = File::open(path)?;
    let pair = nic.domain().queue_pair(&QueuePairConfig::default())?;
    for _ in 0..=PARTS {
        pair.post_receive(Buf::default())?;
    }
    let (pair, told) = pair.connect(Name::at(to, TRANSFER.0), &[]).await?;
    let memory = RemoteMemory::from_prefix(&told).context("the receiver told no key")?;

    let mut sent = 0;
    let mut under_way = 0;
    for part in (0..PARTS).cycle() {
        if under_way == PARTS {
            given_back(&pair).await?;
            under_way -= 1;
        }
        let mut buf = Buf::with_capacity(PART);
        let len = fill(&mut file, buf.capacity_mut())?;
        buf.set_len(len)?;
        let place = memory.at((part * PART) as u64, len as u64)?;
        pair.write_imm(buf, place, Imm(part as u32)).await?;
        under_way += 1;
        sent += len as u64;
        if len == 0 {
            break;
        }
    }
    for _ in 0..under_way {
        given_back(&pair).await?;
    }
    pair.connection().disconnect(&[]).await?;
    Ok(sent)
}

/// Waits until the receiver has taken a piece.
async fn given_back(pair: &QueuePair) -> anyhow::Result<()> {
    let told = pair.receive().await?;
    Ok(pair.post_receive(told.data)?)
}

/// Reads as much as there is room for, or all that is left.
fn fill(file: &mut File, room: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while filled < room.len() {
        match file.read(&mut room[filled..])? {
            0 => break,
            more => filled += more,
        }
    }
    Ok(filled)
}

/// Sends a file from one end to another, and compares.
async fn demonstrate() -> anyhow::Result<()> {
    let name = |end| format!("shm:transfer/{}/{end}", std::process::id());
    let folder = std::env::temp_dir().join(format!("doorbell-transfer-{}", std::process::id()));
    std::fs::create_dir(&folder)?;
    let (from, to) = (folder.join("file"), folder.join("copy"));
    let bytes: Vec<u8> = (0..64_u64 << 17).flat_map(|word| (word * word).to_le_bytes()).collect();
    std::fs::write(&from, &bytes)?;

    let receiver = Nic::open(&name(0)).await?;
    let address = receiver.address().to_string();
    let (copy, listener) = (to.clone(), receiver.listen(TRANSFER).await?);
    let received = tokio::spawn(async move { receive(receiver, listener, &copy).await });
    let begun = Instant::now();
    let sent = send(Nic::open(&name(1)).await?, &address, &from).await;
    let received = received.await?;
    let seconds = begun.elapsed().as_secs_f64();
    let same = std::fs::read(&to)? == bytes;
    std::fs::remove_dir_all(&folder)?;
    ensure!(sent? == received? && same, "the copy is not the file");
    let rate = bytes.len() as f64 / seconds / 1e9;
    writeln!(
        io::stdout(),
        "{} bytes in {seconds:.3} s, {rate:.2} GB/s from file to file",
        bytes.len()
    )?;
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    match Args::parse().command {
        None => demonstrate().await,
        Some(Command::Receive { device, path }) => {
            let nic = Nic::open(&device).await?;
            let listener = nic.listen(TRANSFER).await?;
            let received = receive(nic, listener, &path).await?;
            writeln!(io::stdout(), "{received} bytes received")?;
            Ok(())
        }
        Some(Command::Send { device, to, path }) => {
            let sent = send(Nic::open(&device).await?, &to, &path).await?;
            writeln!(io::stdout(), "{sent} bytes sent")?;
            Ok(())
        }
    }
}
