//! Endpoints that are opened as clients of a peer.

use std::net::UdpSocket;
use std::time::Duration;

use doorbell_am::{ConnectError, Endpoint, Handlers, Name, OpenError};
use doorbell_kit::{chain, lab, udp_sockets};
use doorbell_verbs::Config;

use crate::common::{ADD, SUM, runtime};

async fn server(device: &str) -> Endpoint {
    let adds = Handlers::new().request(ADD, |request, (a, b)| request.reply(SUM, a + b));
    Endpoint::open(device, adds).await.expect("nobody has it")
}

#[test]
fn the_client_of_a_loopback_server_has_no_socket_at_an_outer_address() {
    lab::test(|lab| {
        lab.cable("a0", "b0", 1500).expect("a cable");
        for device in ["udp:127.0.0.1:0", "udp:[::1]:0"] {
            runtime().block_on(async {
                let server = server(device).await;
                let client = Endpoint::open_towards(server.name(), Handlers::new()).await;
                let client = client.expect("it is on this machine");
                client.connect(server.name()).await.expect("it is there");
                let all = udp_sockets();
                assert!(all.len() >= 4 && all.iter().all(|own| own.ip().is_loopback()), "{all:?}");
            });
        }
    });
}

#[test]
fn a_client_is_heard_by_its_server_and_hears_no_other_endpoint() {
    runtime().block_on(async {
        let server = server("udp:127.0.0.1:0").await;
        let client = Endpoint::open_towards(server.name(), Handlers::new()).await;
        let client = client.expect("it is on this machine");
        client.connect(server.name()).await.expect("it is there");
        let brief = Config { connect_timeout: Duration::from_millis(50), ..Config::default() };
        let other = Endpoint::builder().nic(brief).open("udp:127.0.0.1:0", Handlers::new()).await;
        let why = other.expect("any port").connect(client.name()).await.expect_err("no answer");
        let ConnectError::TimedOut { .. } = why else {
            panic!("{why:?}");
        };
        assert!(client.nic().statistics().device.strangers > 0);
        server.connect(client.name()).await.expect("the server is the client's peer");
    });
}

#[test]
fn a_peer_whose_port_is_closed_is_told_at_once() {
    runtime().block_on(async {
        let nobody = UdpSocket::bind("127.0.0.9:0").expect("a port").local_addr().expect("bound");
        let name = Name::at(format!("udp:{nobody}"), 7);
        let patient = Config { connect_timeout: Duration::from_secs(600), ..Config::default() };
        let client = Endpoint::builder().nic(patient).open_towards(&name, Handlers::new()).await;
        let why = client.expect("a route").connect(&name).await.expect_err("nobody is there");
        let ConnectError::PortClosed { .. } = why else {
            panic!("{why:?}");
        };
        assert!(chain(&why).contains("the port is closed"), "{}", chain(&why));
    });
}

#[test]
fn a_client_of_a_peer_to_which_no_way_is_known_is_told_why() {
    runtime().block_on(async {
        let opened = async |name: &str| {
            let opened = Endpoint::open_towards(name, Handlers::new()).await;
            opened.map(drop).expect_err("there is no way")
        };
        let why = opened("udp:127.0.0.1:5000").await;
        assert!(matches!(why, OpenError::Name(_)), "{why:?}");
        let why = opened("packet:02:00:00:00:00:01#7").await;
        assert!(matches!(why, OpenError::Interface { .. }), "{why:?}");
        assert!(why.to_string().contains("open(\"packet:eth0\")"), "{why}");
        let why = opened("udp:nobody.invalid:5000#7").await;
        let OpenError::Towards { why: ref towards, .. } = why else { panic!("{why:?}") };
        assert!(matches!(**towards, ConnectError::LookUp(_)), "{why:?}");
        assert!(chain(&why).contains("looking up the host name"), "{}", chain(&why));
    });
}
