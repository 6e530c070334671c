//! NICs of clients over `udp`: where they are opened, whom they hear, and what they are told of
//! closed ports.

use std::net::UdpSocket;
use std::time::Duration;

use doorbell_kit::lab::{self, Lab};
use doorbell_kit::{Bounce, Forger, udp_sockets};
use doorbell_transports::ReachError;
use doorbell_verbs::{Address, Config, ConnectError, Name, Nic};

use crate::common::{Runs, SERVICE, address, brief, run};
use crate::errors::says;
use crate::names::say_hello;

/// A client that waits for answers for longer than any test may take.
fn patient() -> Config {
    Config { connect_timeout: Duration::from_secs(600), strangers: false, ..brief() }
}

/// Opens the NIC by which a client reaches a peer.
async fn towards(peer: &str, config: Config) -> Nic {
    let device = Nic::device_towards(peer).await.expect("a route leads there");
    Nic::builder()
        .config(config)
        .open(&device.expect("it is told by the address"))
        .await
        .expect("it opens")
}

/// Lays a cable whose ends have link-local addresses, too. Returns the number of the near one.
fn cable(lab: &Lab) -> String {
    lab.cable("a0", "b0", 1500).expect("a cable");
    lab.near.ip("addr add fe80::7/64 dev a0 nodad").expect("`ip` does it");
    lab.far.ip("addr add fe80::8/64 dev b0 nodad").expect("`ip` does it");
    let shown = lab.near.ip("-o link show dev a0").expect("`ip` shows it");
    shown.split(':').next().expect("it begins with the number").to_owned()
}

/// Whoever connected to a port where nobody was heard so after four seconds, though the system had
/// said it at once.
#[test]
fn a_closed_port_here_or_elsewhere_ends_a_request_for_a_connection_at_once() {
    lab::test(|lab| {
        let number = cable(lab);
        for peer in [
            "udp:127.0.0.1:9".to_owned(),
            "udp:localhost:9".to_owned(),
            "udp:127.0.0.1:4791".to_owned(),
            "udp:[::1]:9".to_owned(),
            "udp:10.219.0.2:9".to_owned(),
            "udp:[fd00:db::2]:9".to_owned(),
            format!("udp:[fe80::8%{number}]:9"),
        ] {
            run(Runs::CurrentThread, || async move {
                let nic = towards(&peer, patient()).await;
                let asked = nic.domain().connect(Name::at(&*peer, SERVICE.0)).await;
                let why = asked.map(drop).expect_err("nobody is there");
                assert!(matches!(why, ConnectError::PortClosed { .. }), "{peer}: {why:?}");
                says(&why, &[&peer, "the port is closed", "Is its program running"]);
                let here = why.to_string().contains("opened at a wildcard");
                let loopback = ["127.", "localhost", "[::1]"].iter().any(|of| peer.contains(of));
                assert_eq!(here, loopback, "{why}");
                assert_eq!(nic.statistics().connections.closed_ports, 1);
            });
        }
    });
}

#[test]
fn many_requests_to_a_closed_port_at_the_same_time_are_all_told() {
    run(Runs::MultiThread, || async {
        let nobody = UdpSocket::bind("127.0.0.9:0").expect("a port").local_addr().expect("bound");
        // The kernel drops messages for which a socket has no room. Whoever asks misses one then, and
        // is told when the request is repeated.
        let config = Config { connect_timeout: Duration::from_secs(16), ..patient() };
        let nic =
            Nic::builder().config(config).open("udp:127.0.0.1:0").await.expect("any port will do");
        let asks = (0..200).map(|_| {
            let domain = nic.domain();
            tokio::spawn(async move {
                domain.connect(Name::at(&*format!("udp:{nobody}"), SERVICE.0)).await.map(drop)
            })
        });
        for asked in asks.collect::<Vec<_>>() {
            let why = asked.await.expect("no panic").expect_err("nobody is there");
            assert!(matches!(why, ConnectError::PortClosed { .. }), "{why:?}");
        }
    });
}

/// A message that quotes another datagram than the request is a stranger's, or about something
/// else.
#[test]
fn a_forged_message_of_a_closed_port_ends_no_request() {
    lab::test(|lab| {
        let cable = lab.cable("a0", "b0", 1500).expect("a cable");
        let forger = lab.far.within(Forger::new).expect("root may");
        // Somebody who does not answer: the system says nothing of the port.
        let silent = lab.far.within(|| UdpSocket::bind((cable.far.ipv4, 5000)).expect("a port"));
        run(Runs::CurrentThread, move || async move {
            let to = silent.local_addr().expect("it is bound");
            let nic = towards(&format!("udp:{to}"), patient()).await;
            let &Address::Udp(own) = nic.address() else { panic!("a socket") };
            let domain = nic.domain();
            let asks = tokio::spawn(async move {
                domain.connect(Name::at(&*format!("udp:{to}"), SERVICE.0)).await.map(drop)
            });
            while nic.statistics().device.unreachable < 20 {
                forger.bounce(to.ip(), (own, to), Bounce::PortUnreachable);
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            assert!(!asks.is_finished(), "{:?}", asks.await);
            assert_eq!(nic.statistics().connections.closed_ports, 0);
            asks.abort();
        });
    });
}

#[test]
fn a_server_that_starts_later_is_found_by_a_client_that_asks_again() {
    run(Runs::MultiThread, || async {
        let nobody = UdpSocket::bind("127.0.0.7:0").expect("a port").local_addr().expect("bound");
        let to = format!("udp:{nobody}");
        let near = towards(&to, patient()).await;
        for _ in 0..3 {
            let why = near
                .domain()
                .connect(Name::at(&*to, SERVICE.0))
                .await
                .map(drop)
                .expect_err("nobody yet");
            assert!(matches!(why, ConnectError::PortClosed { .. }), "{why:?}");
        }
        let far = Nic::builder().config(brief()).open(&to).await.expect("nobody else has it");
        say_hello(&near, &far, &to).await;
    });
}

#[test]
fn the_client_of_a_loopback_server_has_no_socket_at_an_outer_address() {
    lab::test(|lab| {
        lab.cable("a0", "b0", 1500).expect("a cable");
        for server in ["udp:127.0.0.1:0", "udp:[::1]:0"] {
            let before = udp_sockets();
            assert_eq!(before, [], "this namespace is new");
            run(Runs::CurrentThread, move || async move {
                let server =
                    Nic::builder().config(brief()).open(server).await.expect("any port will do");
                let client = towards(&address(&server), patient()).await;
                for _ in 0..8 {
                    say_hello(&client, &server, &address(&server)).await;
                }
                let all = udp_sockets();
                // Each has a socket for all, one to try ways with, and perhaps one for the other.
                assert!(all.len() >= 4, "{all:?}");
                assert!(all.iter().all(|own| own.ip().is_loopback()), "{all:?}");
            });
        }
    });
}

#[test]
fn the_client_of_a_server_elsewhere_is_at_the_address_by_which_the_route_leads_there() {
    lab::test(|lab| {
        lab.cable("a0", "b0", 1500).expect("a cable");
        lab.cable("a1", "b1", 1500).expect("a cable");
        for (server, own) in [("10.219.1.2:0", "10.219.1.1"), ("[fd00:db:1::2]:0", "fd00:db:1::1")]
        {
            // Its thread stays in the namespace in which it is opened.
            let server = lab.far.within(|| {
                Nic::builder()
                    .config(crate::common::dedicated())
                    .open_blocking(&format!("udp:{server}"))
                    .expect("a port")
            });
            run(Runs::CurrentThread, move || async move {
                let client = towards(&address(&server), patient()).await;
                say_hello(&client, &server, &address(&server)).await;
                let all = udp_sockets();
                assert!(all.iter().all(|at| at.ip().to_string() == own), "{all:?}");
            });
        }
    });
}

#[test]
fn a_client_without_strangers_hears_its_server_and_nobody_else_even_where_it_listens() {
    run(Runs::MultiThread, || async {
        let server =
            Nic::builder().config(brief()).open("udp:127.0.0.1:0").await.expect("any port will do");
        let client = Nic::builder()
            .config(patient())
            .open("udp:127.0.0.1:0")
            .await
            .expect("any port will do");
        let brief = Config { connect_timeout: Duration::from_millis(50), ..brief() };
        let stranger =
            Nic::builder().config(brief).open("udp:127.0.0.1:0").await.expect("any port will do");
        let listener = client.listen(SERVICE).await.expect("nobody else does");
        for asks in [&stranger, &server] {
            let (domain, to) = (asks.domain(), address(&client));
            let before = client.statistics().device.strangers;
            let asks =
                tokio::spawn(
                    async move { domain.connect(Name::at(&*to, SERVICE.0)).await.map(drop) },
                );
            while client.statistics().device.strangers == before {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            asks.abort();
            let counted = client.statistics();
            assert_eq!((counted.connections.received, counted.nic.received), (0, 0), "{counted:?}");
        }
        drop(listener);
        // From now on the server is its peer, which may ask, too.
        say_hello(&client, &server, &address(&server)).await;
        say_hello(&server, &client, &address(&client)).await;
        let before = client.statistics().device.strangers;
        let domain = stranger.domain();
        let asked = domain.connect(Name::at(&*address(&client), SERVICE.0)).await.map(drop);
        let why = asked.expect_err("it is not heard");
        assert!(matches!(why, ConnectError::TimedOut { .. }), "{why:?}");
        assert!(client.statistics().device.strangers > before);
        assert_eq!(stranger.statistics().connections.received, 0, "nobody answers it");
    });
}

#[test]
fn the_device_towards_a_peer_is_told_by_the_address_unless_an_interface_has_to_be_named() {
    run(Runs::CurrentThread, || async {
        let towards = async |peer: &str| Nic::device_towards(peer).await.expect("it is told");
        for (peer, device) in [
            ("shm:job/1", Some("shm")),
            ("udp:127.0.0.1:5000", Some("udp:127.0.0.1:0")),
            ("udp:localhost:5000", Some("udp:127.0.0.1:0")),
            ("udp:[::1]:5000", Some("udp:[::1]:0")),
            ("packet:02:00:00:00:00:01", None),
            ("packet-v2:192.0.2.7", None),
        ] {
            assert_eq!(towards(peer).await.as_deref(), device, "{peer}");
        }
        for peer in ["udp:127.0.0.1", "udp:localhost", "udp:localhost:4791"] {
            let device = towards(peer).await.expect("it is a socket");
            assert!(device.starts_with("udp:127.") && device.ends_with(":4791"), "{device}");
        }
        let why = Nic::device_towards("somewhere").await.expect_err("it is no address");
        assert!(matches!(why, ConnectError::Address(_)), "{why:?}");
        let why = Nic::device_towards("udp:no.such.host.invalid:5000").await;
        let why = why.expect_err("nobody knows it");
        assert!(matches!(why, ConnectError::LookUp(_)), "{why:?}");
        let why = Nic::device_towards("udp:0.0.0.0:5000").await.expect_err("it is everybody's");
        assert!(matches!(why, ConnectError::Reach(ReachError::NoPeers { .. })), "{why:?}");
    });
}
