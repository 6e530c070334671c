//! Hosts whose system says that a port is closed, truly or not.

use std::time::Duration;

use doorbell_core::nic::*;
use doorbell_core::wire::cm::{Mad, QuotedRequest, Rep, Req};
use doorbell_core::wire::{Bth, CommId, Opcode, Psn, Qpn, TransactionId};

use crate::reliable::common::{Setup, Two, outcomes, short};

/// What a peer at a closed port ends a connection with.
const CLOSED: Cause = Cause::PeerSilent { millis: 500, limit: Silence::Closed };

/// Two nodes as programs configure them by default, and the number of the first packet from `a`.
fn two() -> (Two, Psn) {
    let busy = KeepAlive::default().busy;
    let (mut first, mut ends) = (Psn::new(0), 0);
    let config = Config { queue_pairs: 16, registrations: 16, ..Config::default() };
    let two = Setup { config, ..Setup::default() }.connected(|_, sending| {
        sending.patience = busy;
        if ends == 0 {
            first = sending.first;
        }
        ends += 1;
    });
    (two, first)
}

fn events(two: &mut Two) -> Vec<Event> {
    let nic = two.fabric.nic(two.a.node);
    std::iter::from_fn(|| nic.event()).collect()
}

/// Has the NIC of `a` hear that the port of `b` is closed, as of a packet with these numbers.
fn hears_of_closed_port(two: &mut Two, to: Qpn, psn: Psn) {
    let (_, host) = two.fabric.path(two.a.node, two.b.node).outer().hosts();
    let quoted = Bth::new(Opcode::RcSendOnly, to, psn).to_bytes();
    two.fabric.nic(two.a.node).port_closed(host, &quoted);
}

fn cut_off(two: &mut Two) {
    let station = two.fabric.station(two.b.node);
    two.fabric.network.partition(&[station]);
}

/// With a busy time of five seconds, who waited for a peer that was killed was told only after
/// those, although the peer's system says at once that nobody is at the port.
#[test]
fn a_peer_whose_port_is_closed_is_gone_half_a_second_after_its_system_has_said_so() {
    let (mut two, first) = two();
    cut_off(&mut two);
    let before = two.fabric.now();
    two.a.post(short(1));
    two.run_for(Duration::from_millis(1));
    let to = two.b.qpn;
    hears_of_closed_port(&mut two, to, first);
    let (done, _) = two.run(1, 0);
    assert_eq!(outcomes(&done), [(1, Err(Failure::Broke(CLOSED)))]);
    let took = two.fabric.now().since(before);
    assert!((500..520).contains(&took.as_millis()), "{took:?}");
}

/// A connection by which nothing is under way is asked after half of the idle time: the message
/// quotes the question.
#[test]
fn a_question_that_finds_a_closed_port_ends_an_idle_connection() {
    let (mut two, first) = two();
    cut_off(&mut two);
    two.run_for(KeepAlive::default().idle / 2 + Duration::from_millis(10));
    assert_eq!(two.counters().0.questions_sent, 1);
    let to = two.b.qpn;
    hears_of_closed_port(&mut two, to, first.before());
    two.run_for(Duration::from_millis(520));
    assert_eq!(events(&mut two), [Event::Broken(two.a.qpn, CLOSED)]);
}

#[test]
fn a_peer_that_lives_answers_whatever_is_said_of_its_port_and_is_asked_twice_a_second() {
    let (mut two, first) = two();
    two.b.receives(1, 10);
    two.a.post(short(1));
    assert!(two.run(1, 1).0[0].outcome.is_ok());
    let to = two.b.qpn;
    for _ in 0..5_000 {
        // The number of the question that was asked last, as who sees all packets could quote it.
        hears_of_closed_port(&mut two, to, first);
        two.run_for(Duration::from_millis(1));
    }
    assert_eq!(events(&mut two), []);
    let asked = two.counters().0.questions_sent;
    assert!((1..=11).contains(&asked), "{asked} questions in five seconds");
}

/// A peer that is stopped answers nothing. So a forged message would end its connections after half
/// a second, if the message had not to quote a packet that is under way.
#[test]
fn a_message_that_quotes_no_packet_under_way_ends_nothing_of_a_peer_that_is_stopped() {
    let (mut two, first) = two();
    two.b.receives(1, 10);
    two.fabric.stop(two.b.node);
    two.a.post(short(1).awaited());
    two.run_for(Duration::from_millis(1));
    let (to, other) = (two.b.qpn, Qpn::new(two.b.qpn.get() ^ 1 << 12));
    for millis in 0..4_000 {
        let wrong = Psn::new(first.get().wrapping_add(1 + millis) & 0xff_ffff);
        match millis % 2 {
            0 => hears_of_closed_port(&mut two, to, wrong),
            _ => hears_of_closed_port(&mut two, other, first),
        }
        two.run_for(Duration::from_millis(1));
    }
    assert_eq!(two.counters().0.closed_ports, 0);
    two.fabric.resume(two.b.node);
    let (done, _) = two.run(1, 1);
    assert_eq!(outcomes(&done), [(1, Ok(Done::Sent))]);
}

/// How a packet with this datagram for queue pair 1 begins.
fn managed(datagram: &[u8]) -> Vec<u8> {
    let bth = Bth::new(Opcode::UdSendOnly, Qpn::GSI, Psn::new(0)).to_bytes();
    [&bth[..], &[0; 8], datagram].concat()
}

#[test]
fn a_request_for_a_connection_that_a_closed_port_sends_back_is_told_if_enough_of_it_is_quoted() {
    let (mut two, _) = two();
    let (_, host) = two.fabric.path(two.a.node, two.b.node).outer().hosts();
    let mut datagram = [0; Mad::LEN];
    let transaction = TransactionId(7);
    let request = Req { local: CommId(9), ..Req::default() };
    Mad { transaction, message: request.into() }.emit(&mut datagram);
    let quoted = managed(&datagram);
    let told = Event::RequestBounced(QuotedRequest { transaction, id: CommId(9) });
    for len in 0..=quoted.len() {
        two.fabric.nic(two.a.node).port_closed(host, &quoted[..len]);
        let expected = if len < 12 + 8 + 28 { vec![] } else { vec![told] };
        assert_eq!(events(&mut two), expected, "{len} bytes");
    }
    Mad { transaction, message: Rep::default().into() }.emit(&mut datagram);
    two.fabric.nic(two.a.node).port_closed(host, &managed(&datagram));
    assert_eq!(events(&mut two), [], "an answer is no request");
    // Of a program that takes no events, they are bounded, and counted anew when they are taken.
    for _ in 0..2 {
        for _ in 0..1000 {
            two.fabric.nic(two.a.node).port_closed(host, &quoted);
        }
        assert_eq!(events(&mut two), vec![told; 256]);
    }
}

/// A busy time that is shorter than half a second holds for closed ports, too.
#[test]
fn a_shorter_busy_time_is_not_prolonged_by_a_closed_port() {
    let busy = Duration::from_millis(100);
    let keep_alive = KeepAlive { busy, ..KeepAlive::default() };
    let config = Config { keep_alive, ..Setup::default().config };
    let mut two = Setup { config, ..Setup::default() }.connected(|_, _| {});
    cut_off(&mut two);
    two.fabric.nic(two.a.node).probe(two.a.qpn);
    two.run_for(Duration::from_millis(110));
    let silent = Cause::PeerSilent { millis: 100, limit: Silence::Busy };
    assert_eq!(events(&mut two), [Event::Broken(two.a.qpn, silent)]);
}

/// A quota of processor time or a live migration stops a healthy process for some seconds. With a
/// busy time of one second its peers ended its connections.
#[test]
fn a_peer_that_is_stopped_for_four_seconds_keeps_its_busy_connections_by_default() {
    let (mut two, _) = two();
    two.b.receives(2, 10);
    two.fabric.stop(two.b.node);
    two.a.post(short(1).awaited());
    two.fabric.nic(two.a.node).probe(two.a.qpn);
    two.run_for(Duration::from_secs(4));
    two.fabric.resume(two.b.node);
    let (done, _) = two.run(1, 1);
    assert_eq!(outcomes(&done), [(1, Ok(Done::Sent))]);
    assert_eq!(events(&mut two), []);
}
