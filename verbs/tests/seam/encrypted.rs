//! Encrypted connections over sockets: who is let in, and what each side is told.

use doorbell_kit::lab;
use doorbell_secure::{
    Allowed, FirstUse, Policy, PrivateKey, PublicKey, Secret, Security, Suite, Trust,
};
use tokio::net::{TcpListener, TcpStream};

use doorbell_verbs::{
    Buf, Config, ConnectError, Domain, Encryption, Nic, PathMtu, QueuePair, QueuePairConfig,
    Region, Rights, Side,
};

use crate::common::{Over, Runs, SERVICE, brief, names, run};
use crate::errors::says;

const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef";

/// A key, and what trusts it alone.
fn key() -> (PrivateKey, PublicKey) {
    let key = PrivateKey::generate().expect("random numbers");
    let public = key.public();
    (key, public)
}

fn only(key: PublicKey) -> Trust {
    Trust::Allowed([key].into_iter().collect::<Allowed>())
}

fn secret(bytes: &[u8]) -> Secret {
    Secret::new(bytes).expect("it is long enough")
}

async fn nic(device: &str, encryption: impl Into<Encryption>) -> Nic {
    let config = Config { encryption: encryption.into(), ..brief() };
    Nic::builder().config(config).open(device).await.expect("it opens")
}

/// What the two sides are told of a connection between NICs with these encryptions.
struct Met {
    requester: Result<QueuePair, ConnectError>,
    /// What the peer has proved, as the acceptor sees it; nothing if the acceptor was not asked.
    proved: Option<Option<String>>,
    acceptor: Option<Result<QueuePair, ConnectError>>,
    /// The acceptor's domain.
    domain: Domain,
    _nics: [Nic; 2],
}

async fn meet(requester: impl Into<Encryption>, acceptor: impl Into<Encryption>) -> Met {
    meet_over(Over::Udp, requester, acceptor).await
}

async fn meet_over(
    over: Over,
    requester: impl Into<Encryption>,
    acceptor: impl Into<Encryption>,
) -> Met {
    let [one, other] = names(over);
    let nics = [nic(&one, requester).await, nic(&other, acceptor).await];
    let mut listener = nics[1].listen(SERVICE).await.expect("nobody else listens");
    let name = listener.name();
    let domain = nics[1].domain();
    let (mut proved, mut accepted) = (None, None);
    let refused = tokio::sync::Notify::new();
    let requester = {
        let pair_in = |domain: &Domain| domain.queue_pair(&QueuePairConfig::default());
        let there = pair_in(&nics[0].domain()).expect("there is room");
        let here = pair_in(&domain).expect("there is room");
        let accepts = async {
            let incoming = listener.accept().await.expect("it listens");
            assert!(incoming.private().starts_with(b"hello"), "{:?}", incoming.private());
            proved = Some(incoming.proved().map(str::to_owned));
            let pair = here.accept(incoming, b"welcome").await;
            accepted = Some(pair.map(|(pair, _)| pair));
        };
        let asks = async {
            let (pair, told) = there.connect(name, b"hello").await?;
            assert!(told.starts_with(b"welcome"), "{told:?}");
            Ok(pair)
        };
        // Either side may be done first; and where the requester is refused, nobody is accepted.
        let (asked, _) = tokio::join!(
            async {
                let asked = asks.await;
                if asked.is_err() {
                    refused.notify_one();
                }
                asked
            },
            async {
                tokio::select! {
                    () = accepts => {}
                    () = refused.notified() => {}
                }
            }
        );
        asked
    };
    Met { requester, proved, acceptor: accepted, domain, _nics: nics }
}

/// Sends and writes over a connection.
async fn works(met: Met) {
    let Met { requester, acceptor, domain, .. } = met;
    let one = requester.expect("connected");
    let other = acceptor.expect("it was asked").expect("accepted");
    let region = Region::new(1 << 16);
    let lent = domain.register(region, Rights::REMOTE).expect("there is room");
    let (sent, received) =
        tokio::join!(one.send(&b"a secret"[..]), other.recv(Buf::with_capacity(64)));
    sent.expect("it arrives");
    assert_eq!(&received.expect("it has come").data[..], b"a secret");
    let long: Vec<u8> = (0..20_000).map(|at: u32| (at * 7) as u8).collect();
    let there = lent.remote().at(0, 20_000).expect("it is inside");
    one.write(Buf::from(&long[..]), there).await.expect("it is carried out");
    let read = one.read(Buf::with_capacity(20_000), there).await.expect("it is carried out");
    assert!(read[..] == long[..]);
}

#[test]
fn who_has_the_keys_or_the_secret_is_let_in_and_known() {
    run(Runs::CurrentThread, || async {
        let ((one, of_one), (other, of_other)) = (key(), key());
        let met = meet(
            Security::by_key(one.clone(), only(of_other)),
            Security::by_key(other.clone(), only(of_one)),
        )
        .await;
        assert_eq!(met.proved, Some(Some(format!("key {of_one}"))));
        works(met).await;

        let met = meet(
            Security::by_key_and_secret(one, secret(SECRET), only(of_other)),
            Security::by_key_and_secret(other, secret(SECRET), only(of_one)),
        )
        .await;
        works(met).await;

        for suite in Suite::ALL {
            let by = Security::by_secret(secret(SECRET));
            let met = meet(by.clone().suites(&[suite]), by).await;
            assert_eq!(met.proved, Some(Some("shared secret".to_owned())));
            works(met).await;
        }
    });
}

/// Packets are longer encrypted. On an interface that plain ones just fitted, every long one was lost.
#[test]
fn the_longest_packets_fit_the_interface_encrypted_too() {
    lab::test(|lab| {
        lab.loopback("a0", "b0", 4180).expect("a cable");
        run(Runs::CurrentThread, || async {
            for over in [Over::Packet, Over::PacketV2] {
                let by = Security::by_secret(secret(SECRET));
                works(meet_over(over, by.clone(), by).await).await;
            }
        });
    });
}

#[test]
fn private_data_that_has_no_room_beside_a_seal_is_refused_with_the_room_that_there_is() {
    run(Runs::CurrentThread, || async {
        let by = || Security::by_secret(secret(SECRET));
        let nics = [nic("udp:127.0.0.1:0", by()).await, nic("udp:127.0.0.1:0", by()).await];
        let mut listener = nics[1].listen(SERVICE).await.expect("nobody else listens");
        let name = listener.name();
        let pair = |nic: &Nic| {
            nic.domain().queue_pair(&QueuePairConfig::default()).expect("there is room")
        };
        let asked = async {
            let why = pair(&nics[0]).connect(name.clone(), &[1; 93]).await;
            says(&why.map(drop).expect_err("too long"), &["93 bytes", "92"]);
            let why = pair(&nics[0]).connect(name.clone(), &[1; 92]).await;
            assert!(why.is_err(), "the acceptor has taken it back");
        };
        let accepts = async {
            let incoming = listener.accept().await.expect("it listens");
            assert_eq!(incoming.private()[..], [1; 92]);
            let why = pair(&nics[1]).accept(incoming, &[2; 155]).await;
            says(&why.map(drop).expect_err("too long"), &["155 bytes", "154"]);
        };
        tokio::join!(asked, accepts);
    });
}

#[test]
fn who_is_not_known_is_refused_and_both_sides_say_so() {
    run(Runs::CurrentThread, || async {
        let ((one, of_one), (other, of_other), (_, stranger)) = (key(), key(), key());
        let met = meet(
            Security::by_key(one.clone(), only(of_other)),
            Security::by_key(other.clone(), only(stranger)),
        )
        .await;
        assert_eq!(met.proved, None, "the program is not asked");
        let why = met.requester.map(drop).expect_err("it is refused");
        says(&why, &["the handshake for encryption was refused", &of_one.to_string()]);

        let met =
            meet(Security::by_key(one, only(stranger)), Security::by_key(other, only(of_one)))
                .await;
        assert_eq!(met.proved, None);
        let why = met.requester.map(drop).expect_err("it refuses");
        assert!(matches!(why, ConnectError::Handshake(_)), "{why:?}");
        says(&why, &[&of_other.to_string()]);
    });
}

#[test]
fn another_secret_is_refused() {
    run(Runs::CurrentThread, || async {
        let met = meet(
            Security::by_secret(secret(SECRET)),
            Security::by_secret(secret(b"another secret of some length")),
        )
        .await;
        assert_eq!(met.proved, None);
        let why = met.requester.map(drop).expect_err("it is refused");
        says(&why, &["the handshake for encryption was refused", "the secret the same"]);
    });
}

#[test]
fn where_one_side_requires_encryption_and_the_other_has_none_each_says_so() {
    run(Runs::CurrentThread, || async {
        let by = Security::by_secret(secret(SECRET));
        let met = meet(Encryption::OFF, by.clone()).await;
        assert_eq!(met.proved, None);
        says(&met.requester.map(drop).expect_err("refused"), &["must be encrypted"]);
    });
}

#[test]
fn where_encryption_is_required_no_connection_is_made_without_keys() {
    run(Runs::CurrentThread, || async {
        let nic = nic("udp:127.0.0.1:0", Security::by_secret(secret(SECRET))).await;
        let pair = nic.domain().queue_pair(&QueuePairConfig::default()).expect("there is room");
        let (mut stream, _other) = tcp_pair().await;
        let why = pair.exchange(&mut stream, Side::Client, PathMtu::Mtu1024).await;
        says(&why.map(drop).expect_err("it is refused"), &["agrees on no keys", "in band"]);
    });
}

/// Both ends of a TCP connection of this process.
async fn tcp_pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("it has one");
    let (one, other) = tokio::join!(TcpStream::connect(address), listener.accept());
    (one.expect("connected"), other.expect("accepted").0)
}

#[test]
fn what_is_offered_is_used_where_both_can_and_else_the_connection_is_in_the_clear() {
    run(Runs::CurrentThread, || async {
        let by = Security::by_secret(secret(SECRET));
        let offers = by.clone().policy(Policy::Offered);
        for (one, other, encrypted) in [
            (Encryption::by(offers.clone()), Encryption::by(by.clone()), true),
            (Encryption::by(offers.clone()), Encryption::by(offers.clone()), true),
            (Encryption::OFF, Encryption::by(offers), false),
            (Encryption::by(by.policy(Policy::Off)), Encryption::OFF, false),
        ] {
            let met = meet(one, other).await;
            let proved = met.proved.clone().expect("it was asked");
            assert_eq!(proved.is_some(), encrypted);
            works(met).await;
        }
    });
}

#[test]
fn a_key_that_was_trusted_at_first_use_is_the_only_one_later() {
    run(Runs::CurrentThread, || async {
        let ((one, of_one), (other, _), (third, _)) = (key(), key(), key());
        let first_use = Trust::FirstUse(FirstUse::in_memory());
        let requester = Security::by_key(one, first_use);
        let acceptor = |key: &PrivateKey| Security::by_key(key.clone(), only(of_one));
        works(meet(requester.clone(), acceptor(&other)).await).await;
        works(meet(requester.clone(), acceptor(&other)).await).await;
        let met = meet(requester, acceptor(&third)).await;
        assert!(met.requester.is_err(), "another key at the same address");
    });
}
