//! What rdma-core's `rping` does, and with it: a server reads what a client has put into its
//! memory, and writes it back.
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

mod game;

use std::io::{self, Write};

use clap::Parser;
use doorbell::verbs::Nic;

use game::{ask, serve, service};

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

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    anyhow::ensure!(args.size >= 20, "a message takes 20 bytes or more");
    let open = |device: &str| Nic::builder().open_blocking(device);
    let count = match (&args.device, &args.peer) {
        (Some(device), Some(peer)) => {
            for text in ask(&open(device)?, peer, args.port, args.count, args.size).await? {
                writeln!(io::stdout(), "{text}")?;
            }
            return Ok(());
        }
        (Some(device), None) => {
            let nic = open(device)?;
            let listener = nic.listen(service(args.port)).await?;
            writeln!(io::stdout(), "waiting at {}, port {}", nic.address(), args.port)?;
            serve(&nic, listener, args.size).await?
        }
        _ => {
            let (here, there) = (open("udp:127.0.0.1:0")?, open("udp:127.0.0.1:0")?);
            let (server, port, size) = (there.address().to_string(), args.port, args.size);
            let listener = there.listen(service(port)).await?;
            let served = tokio::spawn(async move { serve(&there, listener, size).await });
            for text in ask(&here, &server, port, args.count, size).await? {
                writeln!(io::stdout(), "{text}")?;
            }
            served.await??
        }
    };
    writeln!(io::stdout(), "{count} messages were read, and written back")?;
    Ok(())
}
