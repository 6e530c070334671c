//! What the two sides say and do.

use doorbell::verbs::{
    Buf, CmPort, Ending, Failed, Listener, Name, Nic, QueuePair, QueuePairConfig, Region,
    RemoteAddr, RemoteMemory, Rights, Rkey, ServiceId,
};

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
        Err(why) if has_left(&why) => Ok(None),
        Err(why) => Err(why.into()),
    }
}

fn has_left(why: &Failed) -> bool {
    matches!(why.ending(), Some(Ending::PeerLeft { .. }))
}

/// The service by which a port is known to `rdma_cm`.
pub fn service(port: u16) -> ServiceId {
    ServiceId::from_tcp_port(CmPort(port))
}

/// Waits for a client, and serves it until it goes. How many messages that were.
pub async fn serve(nic: &Nic, mut listener: Listener, size: usize) -> anyhow::Result<u32> {
    let pair = nic.domain().queue_pair(&QueuePairConfig::default())?;
    // What the client says first may come before this side knows that it is connected.
    pair.post_receive(Buf::with_capacity(TOLD))?;
    let (pair, _) = pair.accept(listener.accept().await?, &[]).await?;
    let mut count = 0;
    while let Some(source) = hear(&pair).await? {
        let text = pair.read(Buf::with_capacity(size), told(&source)?).await?;
        pair.send(Buf::from(vec![0; TOLD])).await?;
        let Some(sink) = hear(&pair).await? else { break };
        pair.write(text, told(&sink)?).await?;
        let told = pair.send(Buf::from(vec![0; TOLD])).await;
        count += 1;
        match told {
            Ok(_) => {}
            // It goes when it has heard the last of this, and its acknowledgement may have been
            // lost.
            Err(why) if has_left(&why) => break,
            Err(why) => return Err(why.into()),
        }
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

/// Lends a server messages, one after another, and checks what it writes back. The messages.
pub async fn ask(
    nic: &Nic,
    server: &str,
    port: u16,
    count: u32,
    size: usize,
) -> anyhow::Result<Vec<String>> {
    let domain = nic.domain();
    let lend = |rights| domain.register(Region::new(size), rights);
    let (source, sink) = (lend(Rights::REMOTE_READ)?, lend(Rights::REMOTE_WRITE)?);
    let pair = domain.queue_pair(&QueuePairConfig::default())?;
    let (pair, _) = pair.connect(Name::at(server, service(port).0), &[]).await?;
    let mut texts = Vec::new();
    for number in 0..count {
        let expected = text(number, size);
        source.write_at(0, &expected)?;
        for memory in [&source, &sink] {
            pair.send(telling(memory.remote())).await?;
            anyhow::ensure!(hear(&pair).await?.is_some(), "the server has left");
        }
        let mut found = vec![0; size];
        sink.read_at(0, &mut found)?;
        anyhow::ensure!(found == expected, "message {number} came back changed");
        texts.push(String::from_utf8_lossy(&found[..size - 1]).into_owned());
    }
    pair.connection().disconnect(&[]).await?;
    Ok(texts)
}
