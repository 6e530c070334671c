//! What rdma-core's `rping` does, and with it: a server reads what a client has put into its memory,
//! and writes it back.
//!
//! `cargo run --release --example rping` plays both sides. To meet the other implementation, on a
//! machine with an adapter or the kernel's driver:
//!
//! ```text
//! cargo run --release --example rping -- udp:192.0.2.7              # waits, and there:
//! rping -c -v -V -C 10 -a 192.0.2.7
//!
//! rping -s -v -a 192.0.2.8                                          # waits there, and here:
//! cargo run --release --example rping -- udp:192.0.2.7 udp:192.0.2.8
//! ```

use clap::Parser;
use doorbell::verbs::{
    Buf, CmPort, Config, Ending, Nic, QueuePair, QueuePairConfig, Region, Registered, RemoteMemory,
    Rights, ServiceId,
};
use doorbell::wire::{RemoteAddr, Rkey};

#[derive(Parser)]
struct Args {
    /// The device, as udp:IP; without, both sides are here
    device: Option<String>,

    /// The peer that waits; without, this side does
    peer: Option<String>,

    /// Bytes of a message
    #[arg(short = 'S', long, default_value_t = 64)]
    size: usize,

    /// How many there are
    #[arg(short = 'C', long, default_value_t = 10)]
    count: u32,

    /// The port, in the port space of `rdma_cm`
    #[arg(short, long, default_value_t = 7174)]
    port: u16,
}

/// Memory as the two tell each other of it: address, key and length.
const TOLD: usize = 16;

fn telling(memory: RemoteMemory) -> Buf {
    let mut told = Vec::with_capacity(TOLD);
    told.extend(memory.address().0.to_be_bytes());
    told.extend(memory.rkey().0.to_be_bytes());
    told.extend((memory.len() as u32).to_be_bytes());
    told.into()
}

fn told(bytes: &[u8]) -> anyhow::Result<RemoteMemory> {
    let bytes: [u8; TOLD] = bytes.try_into()?;
    let [address, rest] = [&bytes[..8], &bytes[8..]].map(|bytes| {
        let mut number = [0; 8];
        number.copy_from_slice(bytes);
        u64::from_be_bytes(number)
    });
    Ok(RemoteMemory::new(RemoteAddr(address), Rkey((rest >> 32) as u32), rest & 0xFFFF_FFFF))
}

/// The next thing that the peer says; none when it has ended the connection.
async fn hear(pair: &QueuePair) -> anyhow::Result<Option<Buf>> {
    match pair.recv(Buf::with_capacity(TOLD)).await {
        Ok(message) => Ok(Some(message.data)),
        Err(why) if matches!(why.ending(), Some(Ending::PeerLeft { .. })) => Ok(None),
        Err(why) => Err(why.into()),
    }
}

/// Waits for a client, and serves it until it goes. How many messages that were.
async fn serve(nic: Nic, port: u16, size: usize) -> anyhow::Result<u32> {
    let mut listener = nic.listen(ServiceId::from_tcp_port(CmPort(port))).await?;
    eprintln!("waiting at {}, port {port}", nic.address());
    let pair = nic.domain().queue_pair(&QueuePairConfig::default())?;
    // What the client says first may come before this side knows that it is connected.
    pair.post_receive(Buf::with_capacity(TOLD))?;
    let (pair, _) = pair.accept(listener.accept().await, &[]).await?;
    let mut count = 0;
    while let Some(source) = hear(&pair).await? {
        let text = pair.read(Buf::with_capacity(size), told(&source)?).await?;
        pair.send(Buf::from(vec![0; TOLD])).await?;
        let Some(sink) = hear(&pair).await? else { break };
        pair.write(text, told(&sink)?).await?;
        pair.send(Buf::from(vec![0; TOLD])).await?;
        count += 1;
    }
    Ok(count)
}

/// A text as rping makes it, with a zero at its end.
fn text(number: u32, size: usize) -> Vec<u8> {
    let mut text = format!("rdma-ping-{number}: ").into_bytes();
    let letters = (b'A'..=b'z').cycle().skip(number as usize % 58);
    text.extend(letters.take(size));
    text.truncate(size - 1);
    text.push(0);
    text
}

/// Lends a server messages, one after another, and checks what it writes back.
async fn ask(nic: Nic, server: &str, args: &Args) -> anyhow::Result<()> {
    let domain = nic.domain();
    let lend = |rights| domain.register(Region::new(args.size), rights);
    let (source, sink): (Registered, Registered) =
        (lend(Rights::REMOTE_READ)?, lend(Rights::REMOTE_WRITE)?);
    let pair = domain.queue_pair(&QueuePairConfig::default())?;
    let service = ServiceId::from_tcp_port(CmPort(args.port));
    let (pair, _) = pair.connect(server, service, &[]).await?;
    for number in 0..args.count {
        let expected = text(number, args.size);
        source.write_at(0, &expected)?;
        for memory in [&source, &sink] {
            pair.send(telling(memory.remote())).await?;
            anyhow::ensure!(hear(&pair).await?.is_some(), "the server has left");
        }
        let mut found = vec![0; args.size];
        sink.read_at(0, &mut found)?;
        anyhow::ensure!(found == expected, "message {number} came back changed");
        println!("{}", String::from_utf8_lossy(&found[..args.size - 1]));
    }
    pair.connection().disconnect(&[]).await?;
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    anyhow::ensure!(args.size >= 20, "a message takes 20 bytes or more");
    let open = |device: &str| Nic::open(device, Config::default());
    match (&args.device, &args.peer) {
        (Some(device), Some(peer)) => ask(open(device)?, peer, &args).await,
        (Some(device), None) => {
            let count = serve(open(device)?, args.port, args.size).await?;
            println!("{count} messages were read, and written back");
            Ok(())
        }
        _ => {
            let (here, there) = (open("udp:127.0.0.1:0")?, open("udp:127.0.0.1:0")?);
            let server = there.address().to_string();
            let served = tokio::spawn(serve(there, args.port, args.size));
            ask(here, &server, &args).await?;
            println!("{} messages were read, and written back", served.await??);
            Ok(())
        }
    }
}
