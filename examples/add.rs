//! A function that is called over the network: the shortest program with Active Messages.
//!
//! `cargo run --release --example add` runs both ends here, over UDP.

use doorbell::am::{Call, Endpoint, Handlers};

const ADD: Call<(u64, u64), u64> = Call::new("add");

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server =
        Endpoint::open("udp:127.0.0.1:0", Handlers::new().on(ADD, |_, (a, b)| a + b)).await?;
    let client = Endpoint::open("udp:127.0.0.1:0", Handlers::new()).await?;
    let peer = client.connect(server.name()).await?;
    let sum = peer.call(ADD, (2, 3)).await?;
    println!("2 + 3 = {sum}, says {}", server.name());
    Ok(())
}
