//! Datagrams that no endpoint sends: they are counted, and messages of honest peers arrive.

use doorbell_messages::frames::{Endpoint, Match, Peer};
use doorbell_simulation::Luck;
use doorbell_verbs::work::Datagram;
use doorbell_verbs::{Datagrams, DatagramsConfig, Destination, Name, Nic, Qkey, Qpn};

use crate::frames::common::{body, emp, in_time, receive_offloaded, received, rmpp, sent};
use crate::frames::everywhere::run;

/// A frame with headers as they should be, of a sender that says that it is `name`.
fn frame(luck: &mut Luck, name: &str, sender: u64) -> Vec<u8> {
    let number = |luck: &mut Luck| [0, 1, 2, 63, 64, 1 << 20, u32::MAX][luck.below(7) as usize];
    let mut bytes =
        vec![1 + luck.below(8) as u8, 0x80 | luck.below(32) as u8, 0, luck.below(3) as u8];
    bytes.extend((luck.below(2) as u32).to_be_bytes());
    bytes.extend(sender.to_be_bytes());
    bytes.extend((luck.below(4) as u32).to_be_bytes());
    bytes.extend(number(luck).to_be_bytes());
    if bytes[0] == 1 {
        let frames = number(luck);
        let stride = [0_u16, 63, 64, 1000, u16::MAX][luck.below(5) as usize];
        let len = u64::from(frames).wrapping_mul(u64::from(stride));
        bytes.extend(len.to_be_bytes());
        bytes.extend(luck.below(4).to_be_bytes());
        bytes.extend(frames.to_be_bytes());
        bytes.extend(stride.to_be_bytes());
        bytes.extend([luck.below(3) as u8, 0]);
    }
    if bytes[0] == 5 {
        bytes.extend((0..28).map(|_| luck.below(256) as u8));
    }
    bytes.push(name.len() as u8);
    bytes.extend(name.as_bytes());
    bytes.extend((0..[0, 63, 64, 1000][luck.below(4) as usize]).map(|at: u32| at as u8));
    bytes
}

/// A NIC that sends datagrams to an endpoint.
struct Forger {
    nic: Nic,
    datagrams: Datagrams,
    to: Destination,
}

impl Forger {
    async fn to(far: &Endpoint) -> Self {
        let nic = Nic::open("udp:127.0.0.1:0").await.expect("it opens");
        let completions = nic.completion_queue(256).expect("there is room");
        let config = DatagramsConfig::new(&completions, Qkey(7));
        let datagrams = nic.domain().datagrams(&config).expect("there is room");
        let [qpn, key] = [32, 0].map(|shift| (far.name().service().0 >> shift) as u32);
        let to = nic.destination(far.name().address(), Qpn::new(qpn), Qkey(key)).await;
        Self { nic, datagrams, to: to.expect("there is a way") }
    }
}

/// A name that a forger may have, and its identity.
fn name(nic: &Nic, datagrams: &Datagrams, key: u32) -> (String, u64) {
    let qpn = datagrams.qpn().get();
    let identity = u64::from(qpn) << 32 | u64::from(key);
    (Name::at(nic.address().to_string(), identity).to_string(), identity)
}

#[test]
fn an_endpoint_knows_no_more_peers_than_it_may_and_those_go_on() {
    run(async {
        let open = || Endpoint::builder().policy(emp()).peers(4);
        let near = open().open("udp:127.0.0.1:0").await.expect("it opens");
        let far = open().open("udp:127.0.0.1:0").await.expect("it opens");
        let peer = near.connect(far.name()).await.expect("there is a way");
        sent_and_received(&peer, &far, 1).await;
        let Forger { nic, mut datagrams, to } = Forger::to(&far).await;
        for key in 0..20 {
            let (own, identity) = name(&nic, &datagrams, key);
            // The acknowledgement of a message, with the name of its sender.
            let mut bytes = vec![6, 0x80, 0, 0, 0, 0, 0, 0];
            bytes.extend(identity.to_be_bytes());
            bytes.extend([0; 8]);
            bytes.push(own.len() as u8);
            bytes.extend(own.as_bytes());
            let datagram = Datagram::new(bytes, &to).unsignalled();
            datagrams.send.post(datagram).expect("there is room");
        }
        let refused = async {
            while far.statistics().strangers < 17 {
                tokio::task::yield_now().await;
            }
        };
        in_time(refused).await;
        sent_and_received(&peer, &far, 2).await;
    });
}

async fn sent_and_received(peer: &Peer, far: &Endpoint, number: u64) {
    let receiving = far.receive_at_most(1 << 20, Match::exactly(99));
    let sending = peer.send(99, body(number, 5000));
    assert!(received(receiving).await.body == body(number, 5000));
    sent(sending).await;
}

#[test]
fn forged_frames_are_counted_and_messages_of_others_arrive() {
    for policy in [emp(), rmpp(), receive_offloaded()] {
        run(async {
            let open = || Endpoint::builder().policy(policy).longest(1 << 20).notes(16);
            let near = open().open("udp:127.0.0.1:0").await.expect("it opens");
            let far = open().open("udp:127.0.0.1:0").await.expect("it opens");
            let peer = near.connect(far.name()).await.expect("there is a way");

            let Forger { nic, mut datagrams, to } = Forger::to(&far).await;
            let (own, identity) = name(&nic, &datagrams, 7);

            let mut luck = Luck::new(3);
            // Without its name, nobody can be answered.
            let mut unnamed = vec![6, 0, 0, 0, 0, 0, 0, 0];
            unnamed.extend(identity.to_be_bytes());
            unnamed.extend([0; 8]);
            let posted = datagrams.send.post(Datagram::new(unnamed, &to).unsignalled());
            posted.expect("there is room");
            while far.statistics().strangers == 0 {
                tokio::task::yield_now().await;
            }
            for round in 0..300 {
                // Some receives are met by what is forged, and wait for the rest.
                let forged = far.receive_at_most(1 << 16, Match::exactly(luck.below(4)));
                for _ in 0..10 {
                    let mut bytes = frame(&mut luck, &own, identity);
                    match luck.below(4) {
                        0 => bytes.truncate(luck.below(60) as usize),
                        1 => bytes = (0..luck.below(90)).map(|_| luck.below(256) as u8).collect(),
                        _ => {}
                    }
                    let _ = datagrams.send.post(Datagram::new(bytes, &to).unsignalled());
                    tokio::task::yield_now().await;
                }
                drop(forged);
                if round % 10 == 0 {
                    sent_and_received(&peer, &far, round).await;
                }
            }
            let counted = far.statistics();
            assert!(counted.malformed > 0, "{counted:?}");
        });
    }
}
