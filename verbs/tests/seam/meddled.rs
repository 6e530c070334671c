//! What only a faulty or moved peer sends: a device changes what arrives, before its NIC sees it.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use doorbell_core::encap::{Outer, PathId};
use doorbell_core::nic::{Flow, Inbox};
use doorbell_core::payload::Payload;
use doorbell_core::wire::{
    Aeth, Ethernet, Extensions, Mac, Malformed, Metadata, Opcode, Packet, Syndrome,
};
use doorbell_transports::Device;
use doorbell_transports::shm::Shm;
use doorbell_transports::udp::Udp;
use doorbell_verbs::{
    AsyncEvent, Buf, Cause, Config, ConnectError, Ending, FailedWhy, Failure, Imm, Name, Nic,
    PathMtu, QueuePairConfig, RemoteMemory, Side,
};

use crate::common::{
    End, Over, Runs, SERVICE, address, brief, buf, connected, first, lent, names, run, sleepy,
};
use crate::errors::says;
use crate::exchange::streams;
use crate::watched::{Watched, Watches};

/// The changes that the device makes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meddling {
    Nothing,
    /// Removes the last bytes of answers to reads.
    ShortAnswers,
    /// Gives acknowledgements a syndrome that the specification reserves.
    NoSyndromes,
    /// Makes all packets come from another Ethernet address.
    Moves,
    /// Turns the immediates of writes into metadata.
    Metadata,
    /// Loses the connection manager's datagrams.
    NoManagement,
    /// Makes the peer appear gone instead of what it says.
    Gone,
}

/// The change to be made from now on.
#[derive(Clone)]
struct How(Arc<Mutex<Meddling>>);

/// The inbox that the inner device sees: all packets go one way through it.
struct Meddles<'a, I>(&'a mut I, Meddling);

/// The Ethernet address of a peer that has moved.
const ELSEWHERE: Mac = Mac([2, 9, 9, 9, 9, 9]);

fn moved(outer: &Outer) -> Outer {
    let elsewhere = |ethernet: Ethernet| Ethernet { source: ELSEWHERE, ..ethernet };
    match *outer {
        Outer::V1(ethernet, grh) => Outer::V1(elsewhere(ethernet), grh),
        Outer::V2Ipv4(ethernet, ip, udp) => Outer::V2Ipv4(elsewhere(ethernet), ip, udp),
        Outer::V2Ipv6(ethernet, ip, udp) => Outer::V2Ipv6(elsewhere(ethernet), ip, udp),
    }
}

impl<I: Inbox> Inbox for Meddles<'_, I> {
    fn packet<P: Payload>(&mut self, flow: Flow<'_>, packet: &Packet<P>) {
        let mut changed = *packet;
        let (opcode, len) = (changed.headers.bth.opcode(), changed.payload.len());
        match (self.1, flow) {
            (Meddling::ShortAnswers, _) if opcode == Opcode::RcReadResponseOnly => {
                changed.payload = changed.payload.part(0, len - 4);
            }
            (Meddling::NoSyndromes, _) => {
                let senseless = |aeth| Aeth { syndrome: Syndrome::from_code(0x4b), ..aeth };
                match &mut changed.headers.extensions {
                    Extensions::Aeth(aeth) | Extensions::AethReport(aeth, _) => {
                        *aeth = senseless(*aeth);
                    }
                    _ => {}
                }
            }
            (Meddling::Metadata, _) if opcode == Opcode::RcWriteOnlyImmediate => {
                let Extensions::RethImm(reth, _) = changed.headers.extensions else { return };
                let metadata = Metadata::new(b"more").expect("sixteen at most");
                changed.headers.bth = changed.headers.bth.with_opcode(Opcode::RcWriteOnlyMetadata);
                changed.headers.extensions = Extensions::RethMetadata(reth, metadata);
            }
            (Meddling::Gone, Flow::Link(link)) => return self.0.gone(link),
            (Meddling::NoManagement, _) if opcode == Opcode::UdSendOnly => return,
            (Meddling::Moves, Flow::Network(number, outer)) => {
                // Another flow, for its headers are others.
                return self.0.packet(Flow::Network(number + (1 << 20), &moved(outer)), packet);
            }
            _ => {}
        }
        self.0.packet(flow, &changed);
    }

    fn malformed(&mut self, why: Malformed) {
        self.0.malformed(why);
    }

    fn gone(&mut self, link: PathId) {
        self.0.gone(link);
    }
}

impl Watches for How {
    fn receive(&mut self, device: &mut impl Device, inbox: &mut impl Inbox) -> usize {
        let how = *self.0.lock().expect("nobody panics here");
        device.receive(&mut Meddles(inbox, how))
    }
}

/// Opens a NIC whose arriving packets are changed.
fn opened(how: &How, config: Config) -> Nic {
    let inside = Udp::open(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).expect("a port");
    Nic::builder().config(config).on(Watched::by(how.clone(), inside)).expect("a NIC")
}

/// Opens a NIC whose arriving packets are not changed.
fn plain(config: Config) -> Nic {
    Nic::builder().config(config).open_blocking("udp:127.0.0.1:0").expect("a port")
}

impl How {
    fn none() -> Self {
        Self(Arc::new(Mutex::new(Meddling::Nothing)))
    }

    fn does(&self, meddling: Meddling) {
        *self.0.lock().expect("nobody panics here") = meddling;
    }
}

/// Runs a program over two connected ends, the first of which gets changed packets once they are.
fn meddled<F: Future<Output = ()>>(
    meddling: Meddling,
    program: impl Fn(End, End) -> F + Send + Copy + 'static,
) {
    for config in [brief(), sleepy()] {
        run(Runs::CurrentThread, move || async move {
            let how = How::none();
            let (near, far) = (opened(&how, config.clone()), plain(config));
            let (near, far) = connected(&near, &far).await;
            near.pair.write(buf(1, 8), near.peer).await.expect("it may");
            how.does(meddling);
            program(near, far).await;
        });
    }
}

#[test]
fn an_answer_to_a_read_that_is_too_short_breaks_the_queue_pair_which_says_so() {
    meddled(Meddling::ShortAnswers, |near, far| async move {
        let read = near.pair.read(Buf::with_capacity(64), near.peer).await;
        let failed = read.expect_err("not all of it came");
        let cause = Cause::AnswerLength { found: 60, expected: 64 };
        assert_eq!(failed.why(), FailedWhy::Carried(Failure::Broke(cause)));
        says(&failed, &["an answer to the read carried 60 bytes where 64 were to come"]);
        assert_eq!(near.pair.connection().ended().await, Ending::Broken(cause));
        says(&far.pair.connection().ended().await, &["the peer ended the connection"]);
        drop((near, far));
    });
}

#[test]
fn an_acknowledgement_that_makes_no_sense_breaks_the_queue_pair_which_says_so() {
    meddled(Meddling::NoSyndromes, |near, far| async move {
        let written = near.pair.write(buf(1, 64), near.peer).await;
        let failed = written.expect_err("nobody knows whether it was carried out");
        assert_eq!(failed.why(), FailedWhy::Carried(Failure::Broke(Cause::BadAnswer(0x4b))));
        says(&failed, &["the peer's answer makes no sense (syndrome 0x4b)"]);
        says(&far.pair.connection().ended().await, &["the peer ended the connection"]);
        drop((near, far));
    });
}

/// A move does not end the connection: requests of the peer are answered at its old address.
#[test]
fn a_move_of_the_peer_is_announced_and_the_connection_goes_on() {
    meddled(Meddling::Moves, |near, far| async move {
        let mut events = near.domain.nic().events();
        near.pair.write(buf(1, 64), near.peer).await.expect("it is answered");
        let moved = events.recv().await.expect("the NIC is there");
        assert_eq!(moved, AsyncEvent::PathChanged(near.pair.qpn()));
        far.pair.write(buf(2, 64), far.peer).await.expect("it is answered");
        drop((near, far));
    });
}

/// Peers of this kind agree on metadata when they connect, so no honest peer sends it unasked.
#[test]
fn unsolicited_metadata_is_refused_and_breaks_the_queue_pair() {
    for config in [brief(), sleepy()] {
        run(Runs::CurrentThread, move || async move {
            let how = How::none();
            let near = opened(&how, config.clone());
            // As GIDs tell no ports, the other has the same one at another address.
            let port = address(&near).rsplit_once(':').expect("an address has one").1.to_owned();
            let far = Nic::builder().config(config).open(&format!("udp:127.0.0.2:{port}")).await;
            let far = far.expect("nobody else has it there");
            let (mut client, mut server) = streams().await;
            let domain = near.domain();
            let one = domain.queue_pair(&QueuePairConfig::default()).expect("room");
            let other = far.domain().queue_pair(&QueuePairConfig::default()).expect("room");
            one.post_receive(Buf::with_capacity(8)).expect("room");
            let (one, other) = tokio::join!(
                one.exchange(&mut client, Side::Client, PathMtu::Mtu1024),
                other.exchange(&mut server, Side::Server, PathMtu::Mtu1024)
            );
            let (one, other) = (one.expect("they agree"), other.expect("they agree"));
            let memory = lent(&domain);
            how.does(Meddling::Metadata);
            let written = other.write_imm(buf(1, 64), memory.remote(), Imm(7)).await;
            let failed = written.expect_err("it was not offered");
            let refused = Failure::Broke(Cause::PeerInvalidRequest);
            assert_eq!(failed.why(), FailedWhy::Carried(refused));
            let ending = one.connection().ended().await;
            assert_eq!(ending, Ending::Broken(Cause::MetadataNotOffered));
            says(&ending, &["sent metadata", "has not offered to take: it was refused"]);
            assert_eq!(first(&memory, 64), [0; 64], "nothing was written");
            drop((one, other));
        });
    }
}

/// The peer's confirmation is lost, and its first request is refused: the queue pair learns by that
/// request that the connection is established, and breaks.
#[test]
fn a_queue_pair_that_breaks_before_its_connection_is_established_is_not_connected_and_says_so() {
    for config in [brief(), sleepy()] {
        run(Runs::CurrentThread, move || async move {
            let how = How::none();
            let (near, far) = (opened(&how, config.clone()), plain(config));
            let (takes, asks) = (near.domain(), far.domain());
            let mut listener = near.listen(SERVICE).await.expect("nobody else listens");
            let to = address(&near);
            let accepts = async {
                let incoming = listener.accept().await.expect("a request");
                how.does(Meddling::NoManagement);
                incoming.accept(&takes).await
            };
            let writes = async {
                let pair =
                    asks.connect(Name::at(&*to, SERVICE.0)).await.expect("the peer takes it up");
                let nowhere = "0+8@deadbeef".parse::<RemoteMemory>().expect("it is text");
                pair.write(buf(1, 8), nowhere).await.expect_err("it may not")
            };
            let (accepted, failed) = tokio::join!(accepts, writes);
            // The end of the connection may be told before the refusal.
            assert!(failed.ending().is_some(), "{failed}");
            let why = accepted.map(drop).expect_err("it is broken");
            assert!(matches!(why, ConnectError::GivenUp { .. }), "{why:?}");
            let (peer, service) = (address(&far), SERVICE.to_string());
            says(&why, &["the queue pair broke", "while its connection", &peer, &service]);
        });
    }
}

/// The peer is killed, say, before it can confirm the connection.
#[test]
fn a_connection_whose_peer_leaves_before_it_is_established_is_given_up_and_says_so() {
    for config in [brief(), sleepy()] {
        run(Runs::CurrentThread, move || async move {
            let how = How::none();
            let [here, there] = names(Over::Shm);
            let inside = Shm::join(here.strip_prefix("shm:").expect("it begins so"));
            let device = Watched::by(how.clone(), inside.expect("nobody else has it"));
            let near = Nic::builder().config(config.clone()).on(device).expect("a NIC");
            let far = Nic::builder().config(config).open(&there).await.expect("nobody else has it");
            let (takes, asks) = (near.domain(), far.domain());
            let mut listener = near.listen(SERVICE).await.expect("nobody else listens");
            let accepts = async {
                let incoming = listener.accept().await.expect("a request");
                how.does(Meddling::Gone);
                let accepted = incoming.accept(&takes).await;
                how.does(Meddling::Nothing);
                accepted
            };
            let (accepted, _) = tokio::join!(accepts, asks.connect(Name::at(&*here, SERVICE.0)));
            let why = accepted.map(drop).expect_err("nobody is there");
            assert!(matches!(why, ConnectError::GivenUp { .. }), "{why:?}");
            says(&why, &["the queue pair broke", "while its connection", "was being made"]);
        });
    }
}
