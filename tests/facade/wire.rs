//! Peers that were written from docs/reference/wire.md, on plain queue pairs: the page is enough to
//! speak to an endpoint of Active Messages and to a listener of byte streams.

use doorbell::am::{Call, Endpoint, Handlers};
use doorbell::bytestream::{self, Listener};
use doorbell::verbs::work::Send;
use doorbell::verbs::{Buf, Imm, Name, Nic, QueuePair, QueuePairConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const ADD: Call<(u64, u64), u64> = Call::new("add");

/// Connects a queue pair to a name, with private data. Returns the private data of the answer.
async fn connected(name: &Name, private: &[u8]) -> anyhow::Result<(QueuePair, Vec<u8>)> {
    let nic = Nic::open("udp:127.0.0.1:0").await?;
    let pair = nic.domain().queue_pair(&QueuePairConfig::default())?;
    for _ in 0..32 {
        pair.post_receive(Buf::with_capacity(8192))?;
    }
    let (pair, told) = pair.connect(name, private).await?;
    Ok((pair, told.to_vec()))
}

fn step(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
}

/// Continues a shape by a text.
fn and(hash: u64, text: &str) -> u64 {
    step(text.bytes().fold(hash, step), 0xFF)
}

/// Continues a shape by another shape.
fn with(hash: u64, shape: u64) -> u64 {
    step(shape.to_le_bytes().into_iter().fold(hash, step), 0xFE)
}

fn of(text: &str) -> u64 {
    and(0xCBF2_9CE4_8422_2325, text)
}

/// The greeting of the side that connects, which shows no tag and has no handlers.
fn greeting() -> Vec<u8> {
    let mut greeting = b"AM\x06\x02".to_vec();
    greeting.extend(77_u64.to_be_bytes()); // the service ID
    greeting.extend(8_u16.to_be_bytes()); // credits
    greeting.extend(8_u16.to_be_bytes()); // requests under way
    greeting.extend(4096_u32.to_be_bytes()); // the longest payload
    greeting.extend(of("handlers").to_be_bytes());
    greeting.extend(30_000_u32.to_be_bytes()); // patience
    greeting.extend([9; 16]); // a number, which a peer of more than a test draws at random
    greeting.extend([0; 16]); // no proof
    greeting
}

/// The message of a request with words: kind 0, for the handler at a place.
fn request(place: u16, call: u32, words: &[u64]) -> Vec<u8> {
    let header = (words.len() as u32) << 24 | u32::from(place) << 12 | call;
    let mut message = header.to_le_bytes().to_vec();
    message.extend([0; 4]); // no payload, and nothing taken yet
    message.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    message
}

/// A reply: the place, the number of the call, and what is behind the header.
fn reply(message: &[u8]) -> (u32, u32, Vec<u8>) {
    let (header, _) = message.split_first_chunk().expect("a header");
    let header = u32::from_le_bytes(*header);
    assert_eq!(header >> 29, 1, "it is a reply");
    (header >> 12 & 0xFFF, header & 0xFFF, message[8..].to_vec())
}

fn word(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(*bytes.first_chunk().expect("a word"))
}

#[tokio::test]
async fn a_peer_written_from_the_page_lists_the_handlers_of_an_endpoint_and_calls_one() {
    let handlers = Handlers::new().on(ADD, |_, (a, b)| a + b);
    let server = Endpoint::open("udp:127.0.0.1:0", handlers).await.expect("an endpoint");
    let (pair, told) = connected(server.name(), &greeting()).await.expect("a connection");
    assert_eq!(&told[..3], b"AM\x06");
    assert_eq!(told[20..28], greeting()[20..28], "neither side has handlers at chosen places");

    // Question 6: which named handlers are there?
    pair.send(request(4095, 1, &[6, 0])).await.expect("sent");
    let (place, call, answer) = reply(&pair.receive().await.expect("a reply").data);
    assert_eq!((place, call), (4095, 1));
    let (len, list) = (word(&answer), &answer[8..]);
    let (key, place) = (word(list), u16::from_le_bytes([list[8], list[9]]));
    assert_eq!((&list[10..14], len), (&b"\x03add"[..], list.len().min(len as usize) as u64));
    let arguments = with(and(of(""), "u64"), of("u64"));
    assert_eq!(key, and(with(with(of("call"), arguments), of("u64")), "add"));

    pair.send(request(place, 2, &[2, 3])).await.expect("sent");
    let (place, call, answer) = reply(&pair.receive().await.expect("an answer").data);
    assert_eq!((place, call, word(&answer)), (4095, 2, 5));
}

#[tokio::test]
async fn a_peer_written_from_the_page_speaks_with_a_listener_of_byte_streams() {
    let mut listener =
        Listener::open("udp:127.0.0.1:0", bytestream::ServiceId(7)).await.expect("a listener");
    let name = listener.name().clone();
    let served = tokio::spawn(async move {
        let mut stream = listener.accept().await?;
        let mut said = String::new();
        stream.read_to_string(&mut said).await?;
        stream.write_all(b"bye").await?;
        stream.shutdown().await?;
        std::io::Result::Ok((said, listener))
    });
    let mut hello = b"DB-BYTES\x00\x02".to_vec();
    hello.extend(65_536_u32.to_be_bytes()); // the window
    hello.extend(4096_u32.to_be_bytes()); // the longest message
    let (pair, told) = connected(&name, &hello).await.expect("a connection");
    assert_eq!(&told[..10], b"DB-BYTES\x00\x02");

    pair.send(b"hello".to_vec()).await.expect("sent");
    let end = Send::new(Buf::with_capacity(0)).imm(Imm(1 << 31));
    pair.perform(end).await.expect("sent");
    let (mut came, mut read) = (Vec::new(), 0);
    loop {
        let message = pair.receive().await.expect("a message");
        came.extend_from_slice(&message.data);
        let Imm(signal) = message.imm().unwrap_or(Imm(0));
        read += signal & !(1 << 31);
        if signal >> 31 == 1 {
            break;
        }
    }
    assert_eq!((came, read), (b"bye".to_vec(), 5));
    let (said, _listener) = served.await.expect("it does not panic").expect("it is served");
    assert_eq!(said, "hello");
}
