//! The exchange of addresses by TCP of `ibv_rc_pingpong`.

use std::net::SocketAddr;

use doorbell_verbs::work::{Send, Write};
use doorbell_verbs::{
    Buf, Cause, DatagramsConfig, Ending, FailedWhy, Failure, Memory, Metadata, Name, Nic, PathMtu,
    Qkey, QueuePairConfig, QueuesConfig, Side,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::common::{Over, Runs, brief, buf, bytes, first, lent, names, run};
use crate::errors::says;

/// Returns the two ends of a TCP connection: the client's first.
pub async fn streams() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.expect("a port");
    let to = listener.local_addr().expect("it is bound");
    let (near, far) = tokio::join!(TcpStream::connect(to), listener.accept());
    (near.expect("it listens"), far.expect("it was asked").0)
}

/// Opens two NICs at the same port of two addresses, as GIDs carry no ports.
fn opened() -> (Nic, Nic) {
    let near = Nic::builder().config(brief()).open_blocking("udp:127.0.0.1:0").expect("a port");
    let port = near.address().to_string();
    let (_, port) = port.rsplit_once(':').expect("an address has a port");
    let far = Nic::builder().config(brief()).open_blocking(&format!("udp:127.0.0.2:{port}"));
    (near, far.expect("nobody else has it there"))
}

#[test]
fn two_queue_pairs_that_exchange_addresses_are_connected() {
    for runs in [Runs::CurrentThread, Runs::MultiThread] {
        run(runs, || async {
            let (near, far) = opened();
            let (mut client, mut server) = streams().await;
            let (here, there) = (near.domain(), far.domain());
            let pair = |domain: &doorbell_verbs::Domain| {
                domain.queue_pair(&QueuePairConfig::default()).expect("room")
            };
            let (one, other) = (pair(&here), pair(&there));
            other.post_receive(Buf::with_capacity(2000)).expect("room");
            let (one, other) = tokio::join!(
                one.exchange(&mut client, Side::Client, PathMtu::Mtu1024),
                other.exchange(&mut server, Side::Server, PathMtu::Mtu1024)
            );
            let (one, other) = (one.expect("they agree"), other.expect("they agree"));
            one.send(buf(1, 2000)).await.expect("it is received");
            assert!(other.receive().await.expect("one comes").data[..] == bytes(1, 2000));
            let memory = lent(&here);
            other.write(buf(2, 5000), memory.remote()).await.expect("it may");
            let read = other.read(Buf::with_capacity(5000), memory.remote()).await;
            assert!(read.expect("it may")[..] == bytes(2, 5000));
            let ending = one.connection().disconnect(&[]).await.expect("it stands");
            assert!(matches!(ending, Ending::Left { .. }), "{ending:?}");
            assert!(one.send(buf(3, 8)).await.is_err(), "it is over");
        });
    }
}

/// The exchange can't express metadata, so neither side has offered to take any.
#[test]
fn metadata_is_not_sent_to_a_peer_that_has_not_agreed_to_it() {
    run(Runs::CurrentThread, || async {
        let (near, far) = opened();
        let (mut client, mut server) = streams().await;
        let pair = |nic: &Nic| nic.domain().queue_pair(&QueuePairConfig::default()).expect("room");
        let domain = far.domain();
        let one = pair(&near).exchange(&mut client, Side::Client, PathMtu::Mtu1024);
        let other = domain.queue_pair(&QueuePairConfig::default()).expect("room");
        let other = other.exchange(&mut server, Side::Server, PathMtu::Mtu1024);
        let (one, other) = tokio::join!(one, other);
        let (one, other) = (one.expect("they agree"), other.expect("they agree"));
        other.post_receive(Buf::with_capacity(8)).expect("room");
        let memory = lent(&domain);
        let write = Write::new(buf(1, 64), memory.remote()).expect("within");
        let write = write.metadata(Metadata::new(b"more").expect("sixteen at most"));
        let failed = one.perform(write).await.map(drop).expect_err("it is not sent");
        assert_eq!(failed.why(), FailedWhy::Carried(Failure::Broke(Cause::NoMetadata)));
        says(&failed, &["the peer has not offered to take metadata", "in a message of its own"]);
        assert_eq!(failed.into_buf()[..], bytes(1, 64), "the buffer comes back");
        assert_eq!(first(&memory, 64), [0; 64], "nothing was written");
        drop((one, other));
    });
}

/// On an unreliable connection a send completes once it is sent, and here nothing loses it.
#[test]
fn unreliable_queue_pairs_are_connected_by_exchange_and_not_in_band() {
    run(Runs::CurrentThread, || async {
        let (near, far) = opened();
        let (mut client, mut server) = streams().await;
        let mut arrived = far.completion_queue(16).expect("a capacity");
        let mut left = near.completion_queue(16).expect("a capacity");
        let one = near.domain().queues(&QueuesConfig::new(&left).unreliable()).expect("room");
        let other = far.domain().queues(&QueuesConfig::new(&arrived).unreliable());
        let mut other = other.expect("room");
        other.post_receive(1, Buf::with_capacity(5000)).expect("room");
        let mtu = PathMtu::Mtu2048;
        let (one, other) = tokio::join!(
            one.exchange(&mut client, Side::Client, mtu),
            other.exchange(&mut server, Side::Server, mtu)
        );
        let (mut one, _other) = (one.expect("they agree"), other.expect("they agree"));
        one.send.post(Send::new(buf(1, 5000)).id(7)).expect("room");
        assert_eq!(left.completion().await.id, 7);
        let received = arrived.completion().await;
        let Memory::Buf(data) = received.memory else { panic!("it was a buffer") };
        assert!((received.id, &data[..]) == (1, &bytes(1, 5000)[..]));

        let third = near.domain().queues(&QueuesConfig::new(&left).unreliable()).expect("room");
        let why = third.connect(Name::at(&*far.address().to_string(), 7), &[]).await;
        let why = why.expect_err("not in band").to_string();
        assert!(why.contains("exchange addresses by TCP"), "{why}");
    });
}

/// Tasks of several threads may run the exchange, which its types must allow.
#[test]
fn every_exchange_may_be_spawned() {
    fn is_send<F: Future + std::marker::Send>(future: F) {
        drop(future);
    }
    run(Runs::CurrentThread, || async {
        let (near, _far) = opened();
        let (mut stream, _other) = streams().await;
        let completions = near.completion_queue(16).expect("a capacity");
        let (side, mtu) = (Side::Client, PathMtu::Mtu1024);
        let pair = near.domain().queue_pair(&QueuePairConfig::default()).expect("room");
        is_send(pair.exchange(&mut stream, side, mtu));
        let queues = near.domain().queues(&QueuesConfig::new(&completions)).expect("room");
        is_send(queues.exchange(&mut stream, side, mtu));
        let config = DatagramsConfig::new(&completions, Qkey(1));
        is_send(near.domain().datagrams(&config).expect("room").exchange(&mut stream, side));
    });
}

/// Plays the peer, and checks what it says and hears to the byte.
#[test]
fn the_lines_are_those_of_ibv_rc_pingpong() {
    const PEER: &[u8; 52] = b"0000:00012a:0f1e2d:00000000000000000000ffff7f000002\0";
    run(Runs::CurrentThread, || async {
        let (near, _far) = opened();
        for side in [Side::Client, Side::Server] {
            let (mut own, mut peer) = streams().await;
            let pair = near.domain().queue_pair(&QueuePairConfig::default()).expect("room");
            let qpn = pair.qpn().get();
            let says = async {
                let mut line = [0; 52];
                if side == Side::Server {
                    peer.write_all(PEER).await.expect("it is there");
                }
                peer.read_exact(&mut line).await.expect("it tells its own");
                match side {
                    Side::Client => {
                        peer.write_all(PEER).await.expect("it is there");
                        let mut done = [0; 5];
                        peer.read_exact(&mut done).await.expect("it is ready");
                        assert_eq!(&done, b"done\0");
                    }
                    Side::Server => peer.write_all(b"done\0").await.expect("it is there"),
                }
                line
            };
            let (connected, line) =
                tokio::join!(pair.exchange(&mut own, side, PathMtu::Mtu1024), says);
            drop(connected.expect("they agree"));
            let text = std::str::from_utf8(&line).expect("it is text");
            let fields: Vec<_> = text.split(':').collect();
            let (qpn, gid) = (format!("{qpn:06x}"), "00000000000000000000ffff7f000001\0");
            assert_eq!((fields[0], fields[1], fields[3]), ("0000", &qpn[..], gid), "{text}");
            assert_eq!((fields[2].len(), fields.len()), (6, 4), "{text}");
            assert!(u32::from_str_radix(fields[2], 16).is_ok(), "{text}");
        }
    });
}

#[test]
fn a_peer_that_breaks_the_exchange_or_leaves_is_an_error() {
    run(Runs::CurrentThread, || async {
        let (near, _far) = opened();
        let exchanged = |said: &'static [u8]| async {
            let (mut own, mut peer) = streams().await;
            let pair = near.domain().queue_pair(&QueuePairConfig::default()).expect("room");
            peer.write_all(said).await.expect("it is there");
            drop(peer.shutdown().await);
            let why = pair
                .exchange(&mut own, Side::Server, PathMtu::Mtu1024)
                .await
                .expect_err("no address");
            why.to_string()
        };
        let nonsense = b"GET / HTTP/1.1\r\nHost: localhost\r\nAccept: anything\r\n\r\n";
        let why = exchanged(nonsense).await;
        assert!(
            why.contains("said `GET / HTTP/1.1") && why.contains("which is no address"),
            "{why}"
        );
        let why = exchanged(b"0000:00012a").await;
        assert!(why.contains("exchanging addresses by TCP: hearing the peer's"), "{why}");
    });
}

/// A NIC over shared memory has no address that the exchange could carry.
#[test]
fn a_device_without_gids_says_so() {
    run(Runs::CurrentThread, || async {
        let nic = Nic::builder()
            .config(brief())
            .open(&names(Over::Shm)[0])
            .await
            .expect("nobody else has it");
        let (mut own, _peer) = streams().await;
        let pair = nic.domain().queue_pair(&QueuePairConfig::default()).expect("room");
        let why = pair
            .exchange(&mut own, Side::Client, PathMtu::Mtu1024)
            .await
            .expect_err("no GID")
            .to_string();
        assert!(why.contains("has no GID, by which it would be told: connect in band"), "{why}");
    });
}
