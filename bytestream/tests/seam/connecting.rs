//! Connecting to somebody else than a listener of byte streams, or to nobody.

use std::io::ErrorKind;
use std::net::UdpSocket;
use std::time::Duration;

use doorbell_bytestream::{Config, Endpoint, Listener, ServiceId, Stream};
use doorbell_kit::{lab, udp_sockets};
use doorbell_verbs::{Config as NicConfig, Nic};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::common::{Over, Runs, SERVICE, inline, names, nics, run};

#[test]
fn a_malformed_name_is_an_invalid_input() {
    run(Runs::CurrentThread, || async {
        for name in ["", "udp:127.0.0.1:5000", "udp:127.0.0.1:5000#x", "nothing:1#7"] {
            let why = Stream::connect(name).await.expect_err("it is none");
            assert_eq!(why.kind(), ErrorKind::InvalidInput, "{why}");
        }
        let why = Stream::connect("packet:02:00:00:00:00:01#7").await.expect_err("from where?");
        assert!(why.to_string().contains("open an Endpoint"), "{why}");
    });
}

#[test]
fn a_stream_to_a_service_that_nobody_listens_to_is_refused() {
    run(Runs::CurrentThread, || async {
        for over in [Over::Shm, Over::Udp] {
            let [near, far] = nics(over, &inline());
            let near = Endpoint::on(&near).await.expect("room");
            let name = format!("{}#2a", far.address());
            let why = near.connect(&name).await.expect_err("nobody listens");
            assert_eq!(why.kind(), ErrorKind::ConnectionRefused, "{why}");
            assert!(why.to_string().contains("does its program listen"), "{why}");
        }
    });
}

#[test]
fn a_stream_to_a_device_that_is_not_there_is_refused_or_times_out() {
    run(Runs::CurrentThread, || async {
        let [near, nobody] = names(Over::Shm);
        let near = Endpoint::open(&near).await.expect("nobody has it");
        let why = near.connect(&format!("{nobody}#7")).await.expect_err("nobody is there");
        assert_eq!(why.kind(), ErrorKind::ConnectionRefused, "{why}");

        let connect_timeout = Duration::from_millis(100);
        let config = NicConfig { connect_timeout, ..inline() };
        let nic =
            Nic::builder().config(config).open("udp:127.0.0.1:0").await.expect("any port will do");
        let near = Endpoint::on(&nic).await.expect("room");
        // The system says of a closed port what it says of one of TCP.
        let silent = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let to = silent.local_addr().expect("it is bound");
        for (to, kind) in [
            (to.to_string(), ErrorKind::TimedOut),
            ("127.0.0.1:9".to_owned(), ErrorKind::ConnectionRefused),
        ] {
            let why = near.connect(&format!("udp:{to}#7")).await.expect_err("nobody is there");
            assert_eq!(why.kind(), kind, "{why}");
        }
        for name in ["udp:127.0.0.1:9#7", "udp:[::1]:9#7"] {
            let why = Stream::connect(name).await.expect_err("nobody is there");
            assert_eq!(why.kind(), ErrorKind::ConnectionRefused, "{why}");
            assert!(why.to_string().contains("the port is closed"), "{why}");
        }
    });
}

#[test]
fn a_stream_to_a_listener_at_a_loopback_address_has_no_socket_at_an_outer_address() {
    lab::test(|lab| {
        lab.cable("a0", "b0", 1500).expect("a cable");
        for device in ["udp:127.0.0.1:0", "udp:[::1]:0"] {
            run(Runs::CurrentThread, move || async move {
                let mut listener = Listener::open(device, SERVICE).await.expect("any port");
                let name = listener.name().clone();
                let (asks, takes) = tokio::join!(Stream::connect(&name), listener.accept());
                let (mut asks, _takes) = (asks.expect("it listens"), takes.expect("it asks"));
                asks.write_all(b"hello").await.expect("there is room");
                let all = udp_sockets();
                assert!(all.len() >= 4 && all.iter().all(|own| own.ip().is_loopback()), "{all:?}");
            });
        }
    });
}

#[test]
fn a_service_is_listened_to_once_and_again_when_the_listener_is_dropped() {
    run(Runs::CurrentThread, || async {
        let endpoint = Endpoint::open("shm").await.expect("a device");
        let listener = endpoint.listen(SERVICE).await.expect("nobody else listens");
        let why = endpoint.listen(SERVICE).await.expect_err("somebody listens");
        assert_eq!(why.kind(), ErrorKind::AddrInUse, "{why}");
        drop(listener);
        while endpoint.listen(SERVICE).await.is_err() {
            tokio::task::yield_now().await;
        }
    });
}

#[test]
fn a_stream_outlives_its_listener_and_the_handles_of_its_endpoint() {
    run(Runs::MultiThread, || async {
        let mut listener = Listener::open("udp:127.0.0.1:0", ServiceId(1)).await.expect("a port");
        let name = listener.name().clone();
        let (asked, taken) = tokio::join!(Stream::connect(&name), listener.accept());
        let (mut near, mut far) = (asked.expect("it listens"), taken.expect("a peer asks"));
        drop(listener);
        assert_eq!(far.peer_addr().map(|address| address.ip().is_loopback()), Some(true));
        assert!(far.peer_name().starts_with("udp:127.0.0.1:"), "{}", far.peer_name());
        near.write_all(b"still here").await.expect("the peer is there");
        near.shutdown().await.expect("the peer is there");
        let mut found = String::new();
        far.read_to_string(&mut found).await.expect("it ends");
        assert_eq!(found, "still here");
    });
}

#[test]
fn an_endpoint_that_is_opened_outside_of_a_runtime_is_an_error() {
    let nic = Nic::builder().open_blocking("shm").expect("a device");
    let opened = nic.block_on(Endpoint::on(&nic));
    let why = opened.expect_err("there is no runtime");
    assert!(why.to_string().contains("Tokio runtime"), "{why}");
}

/// Peers that have asked and are not accepted wait, and none is lost.
#[test]
fn more_peers_than_the_backlog_wait_until_they_are_accepted() {
    run(Runs::MultiThread, || async {
        const PEERS: usize = 10;
        let [near, far] = nics(Over::Udp, &inline());
        let near = Endpoint::on(&near).await.expect("room");
        let narrow = Config { backlog: 2, ..Config::default() };
        let far = Endpoint::builder().config(narrow.clone()).on(&far).await.expect("room");
        let mut listener = far.listen(SERVICE).await.expect("nobody else listens");
        let name = listener.name().clone();
        let asks: Vec<_> = (0..PEERS)
            .map(|_| {
                let (near, name) = (near.clone(), name.clone());
                tokio::spawn(async move { near.connect(&name).await })
            })
            .collect();
        let mut taken = Vec::new();
        for _ in 0..PEERS {
            taken.push(listener.accept().await.expect("a peer asks"));
        }
        for asked in asks {
            asked.await.expect("it does not panic").expect("it is accepted in the end");
        }
    });
}
