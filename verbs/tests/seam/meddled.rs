//! What only a peer that is wrong, or that moves, sends: a device changes what comes, before its NIC
//! sees it.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use doorbell_core::encap::{Outer, PathId};
use doorbell_core::nic::{Flow, Inbox};
use doorbell_core::payload::Payload;
use doorbell_core::wire::{Aeth, Ethernet, Extensions, Mac, Malformed, Opcode, Packet, Syndrome};
use doorbell_transports::Device;
use doorbell_transports::udp::Udp;
use doorbell_verbs::{AsyncEvent, Buf, Cause, Ending, FailedWhy, Failure, Nic};

use crate::common::{End, Runs, brief, buf, connected, run, sleepy};
use crate::errors::says;
use crate::watched::{Watched, Watches};

/// What is changed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meddling {
    Nothing,
    /// The last bytes of answers to reads are missing.
    ShortAnswers,
    /// Acknowledgements have a syndrome that the specification reserves.
    NoSyndromes,
    /// All comes from another Ethernet address.
    Moves,
}

/// What is to be changed from now on.
#[derive(Clone)]
struct How(Arc<Mutex<Meddling>>);

/// The inbox that the device inside sees: all packets go one way through it.
struct Meddles<'a, I>(&'a mut I, Meddling);

/// Where a peer is that has moved.
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
            (Meddling::NoSyndromes, _) if opcode == Opcode::RcAcknowledge => {
                let Extensions::Aeth(aeth) = changed.headers.extensions else { return };
                let aeth = Aeth { syndrome: Syndrome::from_code(0x4b), ..aeth };
                changed.headers.extensions = Extensions::Aeth(aeth);
            }
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

/// Runs a program over two connected ends. To what comes to the first one this is done once they are.
fn meddled<F: Future<Output = ()>>(
    meddling: Meddling,
    program: impl Fn(End, End) -> F + Send + Copy + 'static,
) {
    for config in [brief(), sleepy()] {
        run(Runs::CurrentThread, move || async move {
            let how = How(Arc::new(Mutex::new(Meddling::Nothing)));
            let inside = Udp::open(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).expect("a port");
            let device = Watched::by(how.clone(), inside);
            let near = Nic::over(device, config.clone()).expect("a NIC");
            let far = Nic::open("udp:127.0.0.1:0", config).expect("a port");
            let (near, far) = connected(&near, &far).await;
            near.pair.write(buf(1, 8), near.peer).await.expect("it may");
            *how.0.lock().expect("nobody panics here") = meddling;
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
fn an_answer_that_makes_no_sense_breaks_the_queue_pair_which_says_so() {
    meddled(Meddling::NoSyndromes, |near, far| async move {
        let written = near.pair.write(buf(1, 64), near.peer).await;
        let failed = written.expect_err("nobody knows whether it was carried out");
        assert_eq!(failed.why(), FailedWhy::Carried(Failure::Broke(Cause::BadAnswer(0x4b))));
        says(&failed, &["the peer's answer makes no sense (syndrome 0x4b)"]);
        says(&far.pair.connection().ended().await, &["the peer ended the connection"]);
        drop((near, far));
    });
}

/// Which does not end the connection: what it asks for is answered where it was.
#[test]
fn that_a_peer_has_moved_is_told_and_its_connection_goes_on() {
    meddled(Meddling::Moves, |near, far| async move {
        let mut events = near.domain.nic().events();
        near.pair.write(buf(1, 64), near.peer).await.expect("it is answered");
        let moved = events.recv().await.expect("the NIC is there");
        assert_eq!(moved, AsyncEvent::PathChanged(near.pair.qpn()));
        far.pair.write(buf(2, 64), far.peer).await.expect("it is answered");
        drop((near, far));
    });
}
