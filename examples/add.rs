//! A function that another program calls by Active Messages: the shortest program with them.
//!
//! `cargo run --release --example add` runs the server and the client in one process, over UDP.

use std::io::{self, Write};

use doorbell::am::{Call, Endpoint, Handlers};

const ADD: Call<(u64, u64), u64> = Call::new("add");

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server =
        Endpoint::open("udp:127.0.0.1:0", Handlers::new().on(ADD, |_, (a, b)| a + b)).await?;
    let client = Endpoint::open("udp:127.0.0.1:0", Handlers::new()).await?;
    let peer = client.connect(server.name()).await?;
    assert_eq!(peer.call(ADD, (2, 3)).await?, 5);
    writeln!(io::stdout(), "2 + 3 = 5")?;
    Ok(())
}
