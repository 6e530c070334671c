//! Names of devices and peers: those that the system chooses, and those of hosts.

use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

use doorbell_kit::{chain, lab};
use doorbell_transports::{DeviceError, LookUpError};
use doorbell_verbs::{Buf, Config, ConnectError, Domain, Name, Nic, OpenError, Qkey, Qpn};

use crate::common::{Runs, SERVICE, address, brief, run};
use crate::errors::says;

const EVERYWHERE: [Runs; 3] = [Runs::CurrentThread, Runs::MultiThread, Runs::Nowhere];

fn open(name: &str) -> Nic {
    Nic::builder().config(brief()).open_blocking(name).expect("nobody else has it")
}

async fn open_async(name: &str) -> Nic {
    Nic::builder().config(brief()).open(name).await.expect("nobody else has it")
}

/// Connects to a NIC by the given address, and sends a message.
pub async fn say_hello(near: &Nic, far: &Nic, to: &str) {
    let (one, other): (Domain, Domain) = (near.domain(), far.domain());
    let mut listener = far.listen(SERVICE).await.expect("nobody else does");
    let accepted = async { listener.accept().await.expect("a request").accept(&other).await };
    let connected = tokio::try_join!(one.connect(Name::at(to, SERVICE.0)), accepted);
    let (asked, accepted) = connected.expect("it listens");
    let receive = accepted.recv(Buf::with_capacity(5));
    let (sent, received) = tokio::join!(asked.send(Buf::from(&b"hello"[..])), receive);
    sent.expect("it is received");
    assert_eq!(&received.expect("it is sent").data[..], b"hello");
}

/// Returns the error of a connection to an address that must fail.
async fn refused(nic: &Nic, to: &str) -> ConnectError {
    nic.domain().connect(Name::at(to, SERVICE.0)).await.map(drop).expect_err("nobody is there")
}

/// Returns an address of a host name and the port of a NIC.
fn named(host: &str, nic: &Nic) -> String {
    let address = address(nic);
    format!("udp:{host}:{}", address.rsplit(':').next().expect("a port"))
}

#[test]
fn shared_memory_nics_opened_without_a_name_get_unique_names() {
    for runs in EVERYWHERE {
        run(runs, || async {
            let (near, far) = (open("shm"), open_async("shm:").await);
            assert_ne!(address(&near), address(&far));
            say_hello(&near, &far, &address(&far)).await;
        });
    }
}

#[test]
fn a_peer_is_connected_to_and_sent_datagrams_by_the_name_of_its_host() {
    for runs in EVERYWHERE {
        run(runs, || async {
            let (near, far) = (open("udp:127.0.0.1:0"), open_async("udp:localhost:0").await);
            assert_ne!(near.address(), far.address());
            let to = named("localhost", &far);
            say_hello(&near, &far, &to).await;
            let datagrams = near.destination(&to, Qpn::new(9), Qkey(1)).await;
            datagrams.map(drop).expect("it can be reached");
        });
    }
}

#[test]
fn a_host_name_without_a_port_means_the_port_of_roce() {
    lab::test(|_| {
        run(Runs::CurrentThread, || async {
            let [near, far] = ["udp:127.0.0.2:4791", "udp:127.0.0.1"].map(open);
            assert_eq!(address(&far), "udp:127.0.0.1:4791");
            say_hello(&near, &far, "udp:localhost").await;
        });
    });
}

/// Serves a resolver that knows one host, in tasks of a runtime.
async fn serve_names(server: tokio::net::UdpSocket, known: &str, address: Ipv4Addr) {
    const HEADER: usize = 12;
    loop {
        let mut query = [0; 512];
        let (len, from) = server.recv_from(&mut query).await.expect("the resolver's");
        let question = &query[HEADER..len];
        let name_len = question.iter().position(|&byte| byte == 0).expect("it ends") + 1;
        let (name, kind) = (&question[..name_len], question[name_len + 1]);
        let encoded = [&[known.len() as u8], known.as_bytes(), &[0]].concat();
        let (known, is_v4) = (name == encoded, kind == 1);
        let mut answer = query[..2].to_vec();
        // An answer, with recursion; without an error, or of a name that nobody has.
        answer.extend([0x81, if known { 0x80 } else { 0x83 }, 0, 1]);
        answer.extend([0, u8::from(known && is_v4), 0, 0, 0, 0]);
        answer.extend(&question[..name_len + 4]);
        if known && is_v4 {
            // The name of the question, one address, for a minute.
            answer.extend([0xC0, HEADER as u8, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
            answer.extend(address.octets());
        }
        server.send_to(&answer, from).await.expect("it waits");
    }
}

/// The one thread of the runtime also answers the resolver: if the look-up blocked it, no answer
/// would come.
#[test]
fn a_name_is_looked_up_while_other_tasks_of_the_thread_go_on() {
    lab::test(|_| {
        lab::with_names("", || {
            run(Runs::CurrentThread, || async {
                let server = tokio::net::UdpSocket::bind("127.0.0.1:53").await;
                let server = server.expect("nobody else has it");
                let served = serve_names(server, "node7", Ipv4Addr::new(127, 0, 0, 7));
                let served = tokio::spawn(served);
                let (near, far) = (open("udp:127.0.0.1:0"), open_async("udp:node7:0").await);
                assert!(address(&far).starts_with("udp:127.0.0.7:"), "{}", address(&far));
                say_hello(&near, &far, &named("node7", &far)).await;
                let unknown = refused(&near, "udp:node8").await;
                let is_told = matches!(unknown, ConnectError::LookUp(LookUpError::Failed { .. }));
                assert!(is_told, "{unknown:?}");
                says(&unknown, &["`node8`", "check its spelling"]);
                served.abort();
            });
        });
    });
}

#[test]
fn a_name_that_is_not_known_or_of_the_other_family_is_an_error_with_what_was_found() {
    lab::test(|_| {
        lab::with_names("fd00::8 six8\n", || {
            for runs in EVERYWHERE {
                run(runs, || async {
                    let near = open("udp:127.0.0.1:0");
                    let unknown = refused(&near, "udp:nobody.invalid:5000").await;
                    let ConnectError::LookUp(LookUpError::Failed { source, .. }) = &unknown else {
                        panic!("{unknown:?}")
                    };
                    says(&unknown, &["`nobody.invalid`", "`getent ahosts nobody.invalid`"]);
                    assert!(chain(&unknown).ends_with(&source.to_string()), "{unknown}");

                    let other = refused(&near, "udp:six8:5000").await;
                    let is_told =
                        matches!(other, ConnectError::LookUp(LookUpError::OtherFamily { .. }));
                    assert!(is_told, "{other:?}");
                    says(&other, &["`six8` has no IPv4 address, only fd00::8", "`udp:[::]:0`"]);
                });
            }
            let why = Nic::builder()
                .config(brief())
                .open_blocking("udp:nobody.invalid")
                .expect_err("it is nobody's");
            assert!(matches!(why, OpenError::Device(DeviceError::LookUp(_))), "{why:?}");
            says(&why, &["`nobody.invalid`", "check its spelling"]);
        });
    });
    let shm = open("shm");
    run(Runs::CurrentThread, || async move {
        says(&refused(&shm, "udp:localhost:5000").await, &["only `udp` devices", "shm:auto/"]);
    });
}

#[test]
fn a_nic_at_a_wildcard_is_connected_to_at_the_address_that_it_tells_from_here_and_elsewhere() {
    lab::test(|lab| {
        lab.cable("a0", "b0", 1500).expect("a cable");
        let wildcards = ["udp:0.0.0.0:0", "udp:[::]:0"];
        for (wildcard, own) in wildcards.into_iter().zip(["udp:10.219.0.1:", "udp:[fd00:db::1]:"]) {
            let server = open(wildcard);
            assert!(address(&server).starts_with(own), "{}", address(&server));
            let here = open(wildcard);
            let loopback = open(if own.contains('[') { "udp:[::1]:0" } else { "udp:127.0.0.1:0" });
            // Its thread stays in the namespace in which it is opened.
            let elsewhere = lab.far.within(|| {
                Nic::builder()
                    .config(crate::common::dedicated())
                    .open_blocking(wildcard)
                    .expect("nobody else has it")
            });
            run(Runs::Nowhere, move || async move {
                for client in [here, loopback, elsewhere] {
                    say_hello(&client, &server, &address(&server)).await;
                }
            });
        }
    });
}

/// No NIC listens at the address, so the request is given up after its time, and not before: the
/// server may be about to start.
#[test]
fn the_error_for_a_silent_loopback_address_explains_wildcards() {
    run(Runs::CurrentThread, || async {
        let silent = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let config = Config { connect_timeout: Duration::from_millis(50), ..brief() };
        let near = Nic::builder()
            .config(config)
            .open("udp:127.0.0.1:0")
            .await
            .expect("nobody else has it");
        let port = silent.local_addr().expect("it is bound").port();
        for (to, asked) in [
            (format!("udp:127.0.0.1:{port}"), format!("of udp:127.0.0.1:{port}, asked")),
            (format!("udp:localhost:{port}"), format!("(udp:localhost:{port}), asked")),
        ] {
            let why = refused(&near, &to).await;
            assert!(matches!(why, ConnectError::TimedOut { .. }), "{why:?}");
            says(&why, &[&asked, "opened at a wildcard", "`Nic::address`"]);
        }
    });
}
