//! Channels to servers on `udp`: from which address, and to servers that are not there yet.

use std::net::UdpSocket;
use std::time::Duration;

use doorbell_kit::{datagrams_to_closed_ports, lab, udp_sockets};
use doorbell_rpc::{Channel, Client, Code, Method, Router, Server};
use doorbell_verbs::Config;

use crate::peers::common::LONG;

const DOUBLE: Method<u64, u64> = Method::new("double").idempotent();

async fn server(device: &str) -> Server {
    let router = Router::new().unary(DOUBLE, |request| {
        let number = request.into_inner();
        async move { Ok(2 * number) }
    });
    let server = Server::builder().service(7).add_service(router).open(device).await;
    server.expect("nobody has it")
}

async fn calls(channel: Channel) {
    let answer = Client::new(channel).unary(DOUBLE, 21).await.expect("an answer");
    assert_eq!(answer.into_inner(), 42);
}

/// Runs a program on one thread, which is in a lab's namespace.
fn run(program: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        tokio::time::timeout(LONG, program).await.expect("it does not hang");
    });
}

/// The client opened the address by which other machines come, whoever its server was.
#[test]
fn the_channel_to_a_loopback_server_has_no_socket_at_an_outer_address() {
    lab::test(|lab| {
        lab.cable("a0", "b0", 1500).expect("a cable");
        for device in ["udp:127.0.0.1:0", "udp:[::1]:0", "udp:127.0.0.1:4791"] {
            run(async {
                let server = server(device).await;
                for _ in 0..2 {
                    calls(Channel::connect(server.name()).await.expect("it is there")).await;
                }
                let channel = Channel::connect(server.name()).await.expect("it is there");
                calls(channel.clone()).await;
                let all = udp_sockets();
                assert!(all.len() >= 4 && all.iter().all(|own| own.ip().is_loopback()), "{all:?}");
            });
        }
    });
}

#[test]
fn a_channel_waits_for_a_server_whose_port_is_still_closed() {
    lab::test(|_| {
        run(async {
            let channel = Channel::builder().connect_timeout(LONG);
            // Nobody else has addresses in this namespace.
            let connects = channel.connect("udp:127.0.0.1:5000#7");
            let comes_later = async {
                while datagrams_to_closed_ports() < 4 {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                server("udp:127.0.0.1:5000").await
            };
            let (channel, _server) = tokio::join!(connects, comes_later);
            calls(channel.expect("it has come")).await;
        });
    });
}

#[test]
fn a_channel_that_finds_a_closed_port_says_so() {
    run(async {
        let nobody = UdpSocket::bind("127.0.0.9:0").expect("a port").local_addr().expect("bound");
        let patient = Config { connect_timeout: Duration::from_secs(600), ..Config::default() };
        let channel = Channel::builder()
            .connect_timeout(Duration::from_millis(200))
            .endpoint(|endpoint| endpoint.nic(patient))
            .connect(format!("udp:{nobody}#7"));
        let why = channel.await.expect_err("nobody is there");
        assert_eq!(why.code(), Code::Unavailable, "{why}");
        assert!(why.message().contains("the port is closed"), "{why}");
    });
}

#[test]
fn a_channel_to_which_no_way_is_known_is_told_why_and_waits_for_names_to_be_known() {
    run(async {
        for (name, code, said) in [
            ("packet:02:00:00:00:00:01#7", Code::InvalidArgument, "which interface leads to"),
            ("somewhere#7", Code::InvalidArgument, "`somewhere` names no device"),
            ("udp:[fe80::1]:5000#7", Code::Unavailable, "a link-local address means nothing"),
        ] {
            let why = Channel::builder().connect_lazily(name).await.expect_err("there is no way");
            assert_eq!(why.code(), code, "{why}");
            assert!(why.message().contains(said), "{why}");
        }
        let channel = Channel::builder().connect_lazily("udp:nobody.invalid:5000#7").await;
        channel.expect("somebody may have that name later");
    });
}
