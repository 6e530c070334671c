//! Two NICs in shared memory: one writes into the other's memory, and tells it so.
//!
//! `cargo run --release --example hello`, or over the loopback device, as between two machines:
//! `cargo run --release --example hello -- udp:127.0.0.1 udp:127.0.0.2`

use std::io::{self, Write};

use doorbell::verbs::{Buf, Imm, Nic, QueuePairConfig, Region, RemoteMemory, Rights, ServiceId};

const HELLO: ServiceId = ServiceId(7);

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let devices: Vec<String> = std::env::args().skip(1).collect();
    let [here, there] = devices.try_into().unwrap_or_else(|_| ["shm".into(), "shm".into()]);

    let server = Nic::open(&there).await?;
    let mut listener = server.listen(HELLO).await?;
    let name = listener.name();
    let served = tokio::spawn(async move {
        let domain = server.domain();
        let memory = domain.register(Region::new(64), Rights::REMOTE)?;
        let pair = domain.queue_pair(&QueuePairConfig::default())?;
        pair.post_receive(Buf::default())?;
        // The key goes with the answer to whoever asks for a connection.
        let key = memory.remote().to_bytes();
        let (pair, _) = pair.accept(listener.accept().await?, &key).await?;

        let told = pair.receive().await?;
        let mut text = vec![0; told.len as usize];
        memory.read_at(0, &mut text)?;
        writeln!(
            io::stdout(),
            "{} bytes were written here: {}",
            told.len,
            String::from_utf8_lossy(&text)
        )?;
        anyhow::Ok(())
    });

    let client = Nic::open(&here).await?;
    let pair = client.domain().queue_pair(&QueuePairConfig::default())?;
    let (pair, key) = pair.connect(&name, &[]).await?;
    let memory = RemoteMemory::from_prefix(&key).expect("20 bytes, from the server");
    pair.write_imm(Buf::from(&b"hello, neighbour"[..]), memory, Imm(1)).await?;
    served.await?
}
