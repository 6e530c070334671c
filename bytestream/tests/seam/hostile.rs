//! Peers that speak verbs and no byte streams, or another version, or what makes no sense. What
//! they say is written out here as it is on the wire.

use std::io::{self, ErrorKind};

use doorbell_bytestream::{Config, Endpoint, Listener, Stream};
use doorbell_verbs::{
    Buf, ConnectError, Domain, Imm, Name, Nic, QueuePair, QueuePairConfig, Region, RemoteMemory,
    Rights, work,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::common::{Over, Runs, SERVICE, inline, nics, run};

/// The version of byte streams that this side speaks.
const VERSION: u8 = 2;

/// A hello of a version: that 16 KiB are taken, in messages of 4096 bytes.
fn hello(version: u8) -> Vec<u8> {
    let mut hello = b"DB-BYTES".to_vec();
    hello.extend([0, version, 0, 0, 0x40, 0, 0, 0, 0x10, 0]);
    hello
}

/// A hello of the first version, which said how many messages are taken.
fn first_hello() -> Vec<u8> {
    let mut hello = b"DB-BYTES".to_vec();
    hello.extend([0, 1, 0, 4, 0, 0, 0x10, 0]);
    hello
}

/// The bit of an immediate that ends a stream.
const END: u32 = 1 << 31;

fn config() -> Config {
    Config { segment: 4096, window: 4 * 4096, ..Config::default() }
}

/// A queue pair with receives.
fn pair(domain: &Domain) -> doorbell_verbs::Unconnected<QueuePair> {
    let pair = domain.queue_pair(&QueuePairConfig::default()).expect("room");
    for _ in 0..16 {
        pair.post_receive(Buf::with_capacity(4096)).expect("room");
    }
    pair
}

/// Asks a listener for a stream with such private data.
async fn asks(nic: &Nic, of: &Nic, private: &[u8]) -> Result<QueuePair, ConnectError> {
    let address = of.address().to_string();
    pair(&nic.domain()).connect(Name::at(&*address, SERVICE.0), private).await.map(|(pair, _)| pair)
}

/// Has a queue pair that says a proper hello accepted as a stream.
async fn accepted(near: &Nic, far: &Nic, listener: &mut Listener) -> (QueuePair, Stream) {
    let hello = hello(VERSION);
    let (pair, taken) = tokio::join!(asks(near, far, &hello), listener.accept());
    (pair.expect("it says hello"), taken.expect("a peer asks"))
}

async fn listener(nic: &Nic) -> Listener {
    let endpoint = Endpoint::builder().config(config()).on(nic).await.expect("room");
    endpoint.listen(SERVICE).await.expect("nobody else listens")
}

#[test]
fn a_peer_of_another_protocol_or_version_is_refused_by_a_listener_and_told_why() {
    run(Runs::CurrentThread, || async {
        let [near, far] = nics(Over::Udp, &inline());
        let mut listener = listener(&far).await;
        let mut nonsense = hello(VERSION);
        nonsense[12] = 0;
        for (private, which) in [
            (vec![], 1),
            (b"hello".to_vec(), 1),
            (hello(VERSION + 1), 2),
            (first_hello(), 2),
            (nonsense, 3),
        ] {
            let why = asks(&near, &far, &private).await.expect_err("it is refused");
            let ConnectError::Refused { private, .. } = why else { panic!("{why}") };
            assert_eq!(private[..11], [b"DB-BYTES".as_slice(), &[0, VERSION, which]].concat());
        }
        // The listener goes on.
        accepted(&near, &far, &mut listener).await;
    });
}

/// Connects to a service that answers, or refuses, with such private data. What comes of it.
async fn answered(refuses: bool, private: Vec<u8>) -> io::Error {
    let [near, far] = nics(Over::Udp, &inline());
    let mut listener = far.listen(SERVICE).await.expect("nobody else listens");
    let name = format!("{}#7", far.address());
    let serves = async {
        let incoming = listener.accept().await.expect("a request");
        if refuses {
            incoming.reject(&private).expect("it waits");
            return None;
        }
        Some(pair(&far.domain()).accept(incoming, &private).await.expect("it waits"))
    };
    let near = Endpoint::builder().config(config()).on(&near).await.expect("room");
    let (asked, _served) = tokio::join!(near.connect(&name), serves);
    asked.expect_err("that is no listener of byte streams")
}

#[test]
fn a_service_that_speaks_no_byte_streams_or_another_version_is_no_listener() {
    run(Runs::CurrentThread, || async {
        let why = answered(false, b"welcome".to_vec()).await;
        assert_eq!(why.kind(), ErrorKind::InvalidData);
        assert!(why.to_string().contains("does not speak byte streams"), "{why}");
        for (hello, text) in [(hello(VERSION + 1), "version 3"), (first_hello(), "version 1")] {
            let why = answered(false, hello).await;
            assert_eq!(why.kind(), ErrorKind::InvalidData);
            assert!(why.to_string().contains(text), "{why}");
        }
        let why = answered(true, [b"DB-BYTES".as_slice(), &[0, 9, 2]].concat()).await;
        assert_eq!(why.kind(), ErrorKind::ConnectionRefused);
        assert!(why.to_string().contains("version 9"), "{why}");
        let why = answered(true, b"go away".to_vec()).await;
        assert_eq!(why.kind(), ErrorKind::ConnectionRefused, "{why}");
    });
}

/// A stream whose peer is a queue pair that has said a proper hello.
async fn stream() -> (QueuePair, Stream) {
    let [near, far] = nics(Over::Udp, &inline());
    let mut listener = listener(&far).await;
    accepted(&near, &far, &mut listener).await
}

/// How long a message is, and its immediate, if it has one.
type Sent = (usize, Option<u32>);

/// Sends such messages to a stream whose program does not read before. What it reads, and how that
/// ends.
async fn receives(messages: &[Sent]) -> (usize, io::Result<()>) {
    let (pair, mut stream) = stream().await;
    for &(len, imm) in messages {
        let mut send = work::Send::new(Buf::from(vec![7; len]));
        if let Some(imm) = imm {
            send = send.imm(Imm(imm));
        }
        // The stream may have left before the last of them.
        let _ = pair.perform(send.awaited()).await;
    }
    let mut found = Vec::new();
    let ended = stream.read_to_end(&mut found).await.map(drop);
    (found.len(), ended)
}

#[test]
fn garbage_of_a_peer_ends_the_stream_with_an_error_that_says_what_came() {
    run(Runs::CurrentThread, || async {
        let cases: [(&[Sent], usize, &str); 8] = [
            (&[(10, None), (0, None)], 10, "a message without bytes and without a signal"),
            (&[(10, None), (0, Some(0))], 10, "a message without bytes and without a signal"),
            (&[(10, None), (5, Some(1))], 10, "word that 1 bytes were read, of 0 that were sent"),
            (&[(10, Some(1 << 30)), (1, None)], 0, "word that 1073741824 bytes were read"),
            (&[(10, Some(END)), (10, None)], 10, ""),
            (&[(4096, None); 5], 16384, "of 4096 bytes while its window had room for 0"),
            (&[(4000, None); 5], 16000, "of 4000 bytes while its window had room for 384"),
            (&[(5000, None)], 0, "more than 4096 bytes"),
        ];
        for (messages, before, text) in cases {
            let (found, ended) = receives(messages).await;
            assert_eq!(found, before, "{messages:?}");
            match ended {
                // What comes behind an end that was read is of no concern to a reader.
                Ok(()) => assert_eq!(text, ""),
                Err(why) => {
                    assert_eq!(why.kind(), ErrorKind::InvalidData, "{why}");
                    assert!(!text.is_empty() && why.to_string().contains(text), "{why}");
                }
            }
        }
    });
}

#[test]
fn bytes_behind_the_end_of_a_peers_stream_are_an_error_to_a_writer() {
    run(Runs::CurrentThread, || async {
        let (pair, mut stream) = stream().await;
        pair.perform(work::Send::new(b"end").imm(Imm(END)).awaited()).await.expect("it is there");
        let _ = pair.perform(work::Send::new(b"more").awaited()).await;
        let why = loop {
            if let Err(why) = stream.write(b"x").await {
                break why;
            }
            tokio::task::yield_now().await;
        };
        assert_eq!(why.kind(), ErrorKind::InvalidData);
        assert!(why.to_string().contains("behind the end"), "{why}");
    });
}

#[test]
fn a_peer_that_writes_memory_instead_of_sending_reaches_none() {
    run(Runs::CurrentThread, || async {
        let (pair, mut stream) = stream().await;
        let domain = stream.endpoint().nic().domain();
        let lent = domain.register(Region::new(8), Rights::REMOTE).expect("room");
        let memory: RemoteMemory = lent.remote();
        let write = work::Write::new(b"8 bytes!", memory).expect("they fit").imm(Imm(1));
        let failed = pair.perform(write).await;
        assert!(failed.is_err(), "a stream's queue pair lends nothing");
        assert_eq!(lent.load(0).expect("a word"), 0);
        assert!(stream.read(&mut [0; 8]).await.is_err());
    });
}
