//! Selective repeat: what is sent again, and what peers and programs see of that.

use std::time::Duration;

use doorbell_core::memory::Buf;
use doorbell_core::nic::*;
use doorbell_core::wire::{
    Aeth, Bth, Extensions, Headers, Msn, Opcode, Packet, Psn, Qpn, Report, Syndrome,
};
use doorbell_kit::effort;
use doorbell_simulation::{Bandwidth, Faults, LinkConfig};

use crate::reliable::common::{Setup, Two, at, content, outcomes, pattern};

/// Two nodes on a cable of 10 Gbit/s and 20 µs, whose frames from the first to the second, or back,
/// suffer these faults. Their connection is `settle`d, and has selective repeat.
fn selective(
    seed: u64,
    [forth, back]: [Faults; 2],
    config: Config,
    settle: impl Fn(&mut Connection, &mut Sending),
) -> Two {
    let cable = LinkConfig {
        latency: Duration::from_micros(20),
        bandwidth: Bandwidth::gigabits_per_second(10),
        mtu: 9000,
        forth,
        back,
    };
    Setup { seed, cable, config, ..Setup::default() }.connected(|connection, sending| {
        (connection.selective, sending.selective) = (true, true);
        settle(connection, sending);
    })
}

fn losing(loss: f64) -> Faults {
    Faults { loss, ..Faults::NONE }
}

fn config() -> Config {
    Setup::default().config
}

/// Writes messages of 20 packets, and checks them.
fn write_all(two: &mut Two, messages: u64) {
    const LEN: u32 = 20 * 1024;
    let ((from, source), (to, target)) =
        (two.a.open(&mut two.fabric, LEN as usize), two.b.open(&mut two.fabric, LEN as usize));
    from.write_at(0, &pattern(LEN as usize)).unwrap();
    let (mut done, mut next) = (0, 0);
    while done < messages {
        while next < messages && two.a.send.room() > 0 {
            let write =
                WorkRequest::write(next, target.address, target.rkey, source.segment(0, LEN));
            two.a.post(write);
            next += 1;
        }
        let (found, _) = two.run(1, 0);
        for completion in found {
            assert_eq!((completion.id, completion.outcome), (done, Ok(Done::Written)));
            done += 1;
        }
    }
    assert_eq!(content(&to), pattern(LEN as usize));
}

#[test]
fn what_is_lost_is_sent_again_and_nothing_else() {
    for loss in [0.001, 0.01, 0.05] {
        let mut two = selective(3, [losing(loss), Faults::NONE], config(), |_, _| {});
        write_all(&mut two, 200);
        let (lost, (sender, receiver)) = (two.fabric.counters().lost, two.counters());
        assert!(lost > 0);
        assert_eq!(sender.timeouts, 0, "{sender:?}");
        // A probe may be sent in vain, where an acknowledgement was to come just then.
        let in_vain = sender.retransmitted.checked_sub(lost);
        assert!(in_vain.is_some_and(|count| count <= sender.tail_probes), "{lost}: {sender:?}");
        assert_eq!(receiver.sequence_naks_sent, 0, "{receiver:?}");
    }
}

#[test]
fn reordering_alone_has_nothing_sent_again() {
    let held_back = Faults {
        reordering: 0.02,
        reordering_delay: Duration::from_nanos(10 * 880),
        ..Faults::NONE
    };
    let mut two = selective(4, [held_back; 2], config(), |_, _| {});
    write_all(&mut two, 200);
    let (sender, receiver) = two.counters();
    assert!(receiver.out_of_sequence > 0, "{receiver:?}");
    assert_eq!((sender.retransmitted, sender.timeouts), (0, 0), "{sender:?}");
}

#[test]
fn the_last_packet_is_asked_for_before_its_time_out() {
    let mut two = selective(5, [Faults::NONE; 2], config(), |_, _| {});
    write_all(&mut two, 20);
    let (_, target) = two.b.open(&mut two.fabric, 8);
    let station = two.fabric.station(two.b.node);
    for id in 0..10 {
        two.fabric.network.partition(&[station]);
        let data = Inline::new(&[7; 8]).unwrap();
        two.a.post(WorkRequest::write(id, target.address, target.rkey, data).awaited());
        two.run_for(Duration::from_micros(30));
        two.fabric.network.heal_partitions();
        let before = two.fabric.now();
        two.run(1, 0);
        let took = two.fabric.now().since(before);
        assert!(took < Duration::from_millis(1), "{took:?}");
    }
    let (sender, _) = two.counters();
    assert_eq!((sender.timeouts, sender.retransmitted), (0, 10), "{sender:?}");
    assert!(sender.tail_probes >= 10);
}

/// Each was once waited for by a time-out of its own.
#[test]
fn the_last_packets_are_asked_for_together() {
    let mut two = selective(5, [Faults::NONE; 2], config(), |_, _| {});
    write_all(&mut two, 20);
    let (_, target) = two.b.open(&mut two.fabric, 8);
    let station = two.fabric.station(two.b.node);
    two.fabric.network.partition(&[station]);
    for id in 0..30 {
        let data = Inline::new(&[7; 8]).unwrap();
        two.a.post(WorkRequest::write(id, target.address, target.rkey, data));
    }
    two.run_for(Duration::from_micros(30));
    two.fabric.network.heal_partitions();
    let before = two.fabric.now();
    two.run(30, 0);
    let took = two.fabric.now().since(before);
    assert!(took < Duration::from_millis(1), "{took:?}");
    let (sender, _) = two.counters();
    assert_eq!(
        (sender.timeouts, sender.retransmitted, sender.tail_probes),
        (0, 30, 1),
        "{sender:?}"
    );
}

#[test]
fn of_a_read_only_the_responses_that_were_lost_are_requested_again() {
    for packets in [20, 200, 800] {
        let len = packets * 1024;
        let mut two = selective(6, [Faults::NONE, losing(0.02)], config(), |_, _| {});
        let ((own, mine), (held, place)) =
            (two.a.open(&mut two.fabric, len), two.b.open(&mut two.fabric, len));
        held.write_at(0, &pattern(len)).unwrap();
        for id in 0..10 {
            let memory = mine.segment(0, len as u32);
            two.a.post(WorkRequest::read(id, place.address, place.rkey, memory));
        }
        let (done, _) = two.run(10, 0);
        assert!(done.iter().all(|completion| completion.outcome == Ok(Done::Read)), "{done:?}");
        assert_eq!(content(&own), pattern(len));
        let (lost, (sender, receiver)) = (two.fabric.counters().lost, two.counters());
        let needed = 10 * packets as u64;
        assert!(lost > 0 && receiver.answers_sent >= needed + lost, "{lost}: {receiver:?}");
        // Where the last ones of a part are lost, all that is left of the part is asked for.
        let in_vain = receiver.answers_sent - needed - lost;
        assert!(in_vain < needed / 20, "{in_vain} of {needed}, {lost} lost: {sender:?}");
        assert_eq!(sender.timeouts, 0, "{sender:?}");
    }
}

/// A read that was asked for again while its response waited was answered twice, and the next one
/// was refused as one too many.
#[test]
fn reads_of_a_peer_that_is_slow_to_respond_are_answered_once() {
    for reads in [1, 2, 16] {
        let mut two = selective(10, [Faults::NONE; 2], config(), |connection, sending| {
            (connection.reads, sending.reads) = (reads, reads);
        });
        // The path is known to be fast; then the peer is busy for longer than it takes to ask again,
        // and a packet a microsecond leaves.
        write_all(&mut two, 20);
        two.fabric.room = 1;
        let len = 200 * 1024;
        let ((own, mine), (held, place)) =
            (two.a.open(&mut two.fabric, len), two.b.open(&mut two.fabric, len));
        held.write_at(0, &pattern(len)).unwrap();
        for id in 0..20 {
            let memory = mine.segment(0, len as u32);
            two.a.post(WorkRequest::read(id, place.address, place.rkey, memory));
        }
        let node = two.b.node;
        two.fabric.work(node, Duration::from_micros(900));
        let (done, _) = two.run(20, 0);
        assert!(done.iter().all(|completion| completion.outcome == Ok(Done::Read)), "{done:?}");
        assert_eq!(content(&own), pattern(len));
        assert!(two.counters().0.tail_probes > 0);
    }
}

/// A program polls a word that is written behind the data, or looks at what it was told of.
#[test]
fn what_was_posted_first_is_there_first_whatever_is_lost_or_late() {
    for seed in 0..effort(10, 100) {
        let faults = Faults {
            loss: 0.05,
            reordering: 0.2,
            reordering_delay: Duration::from_micros(15),
            ..Faults::NONE
        };
        let mut two = selective(seed, [faults; 2], config(), |_, _| {});
        let (region, place) = two.b.open(&mut two.fabric, 16);
        let (rounds, mut next, mut done) = (300, 1_u64, 0);
        let reached = two.fabric.run_until(Duration::from_secs(5), |fabric| {
            let [data, flag] = [0, 8].map(|offset| region.load(offset).unwrap());
            assert!(data >= flag && data <= flag + 1, "seed {seed}: {data} behind {flag}");
            for completion in two.a.poll() {
                assert!(completion.outcome.is_ok(), "{completion:?}");
                done += 1;
            }
            let before = next;
            while next <= rounds && two.a.send.room() > 1 {
                for offset in [0, 8] {
                    let value = Inline::new(&next.to_ne_bytes()).unwrap();
                    let write = WorkRequest::write(next, at(&place, offset), place.rkey, value);
                    two.a.send.post(write).unwrap();
                }
                next += 1;
            }
            if next > before {
                two.a.send.ring();
                fabric.turn(two.a.node);
            }
            done == 2 * rounds
        });
        assert!(reached, "seed {seed}: {done} of {}", 2 * rounds);
    }
}

#[test]
fn atomic_operations_are_carried_out_once_and_in_order() {
    for seed in 0..effort(10, 100) {
        let mut two = selective(seed, [losing(0.1); 2], config(), |_, _| {});
        let (region, place) = two.b.open(&mut two.fabric, 8);
        let ids = 0..50;
        for id in ids.clone() {
            two.a.post(WorkRequest::fetch_add(id, place.address, place.rkey, 1));
        }
        let (done, _) = two.run(50, 0);
        let expected: Vec<_> = ids.map(|id| (id, Ok(Done::Atomic { before: id }))).collect();
        assert_eq!(outcomes(&done), expected);
        assert_eq!(region.load(0), Ok(50));
    }
}

#[test]
fn what_there_is_no_memory_for_is_dropped_and_comes_again() {
    for held_packets in [0, 1, 5] {
        let config = Config { held_packets, ..config() };
        let mut two = selective(7, [losing(0.02), Faults::NONE], config, |_, _| {});
        write_all(&mut two, 50);
        let (_, receiver) = two.counters();
        assert!(receiver.dropped_beyond_gaps > 0, "{receiver:?}");
        assert!(held_packets > 0 || receiver.kept_beyond_gaps == 0, "{receiver:?}");
    }
}

#[test]
fn a_refusal_for_want_of_a_receive_has_one_message_sent_again() {
    let mut two = selective(8, [Faults::NONE; 2], config(), |connection, _| {
        connection.credits = false;
    });
    for id in 0..20 {
        two.a.post(WorkRequest::send(id, Inline::new(&[id as u8]).unwrap()));
    }
    two.run_for(Duration::from_millis(1));
    two.b.receives(20, 8);
    let (sent, received) = two.run(20, 20);
    assert!(sent.iter().chain(&received).all(|completion| completion.outcome.is_ok()));
    let (sender, receiver) = two.counters();
    assert_eq!(sender.retransmitted, receiver.rnr_naks_sent, "{sender:?} {receiver:?}");
}

/// Hands the first node a report, as one of the second node's.
pub fn report(two: &mut Two, qpn: Qpn, psn: Psn, newest: Psn, bits: &[u8]) {
    let report = Report { newest, held: u32::MAX, marked: u32::MAX, repeated: 255 };
    hand_over(two, qpn, psn, report, bits);
}

fn hand_over(two: &mut Two, qpn: Qpn, psn: Psn, report: Report, bits: &[u8]) {
    let flow = Flow::Link(two.fabric.path(two.a.node, two.b.node).id());
    let aeth = Aeth { syndrome: Syndrome::ACK, msn: Msn::new(0) };
    let bth = Bth::new(Opcode::RcAcknowledgeSelective, qpn, psn);
    let headers = Headers { bth, extensions: Extensions::AethReport(aeth, report) };
    two.fabric.nic(two.a.node).packet(flow, &Packet { headers, payload: bits });
}

/// A peer says that it keeps what was never sent, or what it had not to keep; or it keeps all, and
/// never says that it has carried anything out.
#[test]
fn reports_that_make_no_sense_complete_nothing_and_cost_bounded_memory() {
    for seed in 0..effort(20, 200) {
        let mut first = Psn::new(0);
        let mut two = {
            let cable = LinkConfig { latency: Duration::from_micros(5), ..LinkConfig::default() };
            let setup = Setup { seed, cable, ..Setup::default() };
            let mut connected = setup.unconnected();
            let Two { fabric, a, b, .. } = &mut connected;
            let ends = [(a.node, a.qpn), (b.node, b.qpn)];
            fabric.connect(ends[0], ends[1], setup.mtu, |connection, sending| {
                (connection.selective, sending.selective) = (true, true);
                (sending.congestion, sending.paths) =
                    (seed % 2 == 1, 1 + 15 * (seed % 3 / 2) as u8);
                if first == Psn::new(0) {
                    first = sending.first;
                }
            });
            connected
        };
        let mut luck = doorbell_simulation::Luck::new(seed);
        let station = two.fabric.station(two.b.node);
        two.fabric.network.partition(&[station]);
        for id in 0..30 {
            two.a.post(WorkRequest::send(id, Inline::new(&[1]).unwrap()));
        }
        let (node, qpn) = (two.a.node, two.a.qpn);
        two.fabric.turn(node);
        let mut completed = 0;
        for _ in 0..200 {
            let [psn, newest] =
                [0, 1].map(|_| first.add((luck.below(80) as u32).wrapping_sub(20) & 0xFF_FFFF));
            let bits: Vec<_> = (0..luck.below(200)).map(|_| luck.below(256) as u8).collect();
            let held = [0, 1, 1_000_000, u32::MAX - 1, u32::MAX][luck.below(5) as usize];
            let (marked, repeated) = (luck.below(1 << 32) as u32, luck.below(256) as u8);
            let told = Report { newest, held, marked, repeated };
            hand_over(&mut two, qpn, psn, told, &bits);
            two.run_for(Duration::from_micros(luck.below(300)));
            for completion in two.a.poll() {
                assert_eq!(completion.id, completed, "each once, and in order");
                completed += 1;
            }
        }
        // All end, whatever was made of them.
        let (rest, _) = two.run(30 - completed as usize, 0);
        for completion in rest {
            assert_eq!(completion.id, completed);
            completed += 1;
        }
        assert_eq!(completed, 30);
    }
}

#[test]
fn a_message_to_a_peer_that_keeps_all_and_carries_out_nothing_fails_in_time() {
    let mut two = selective(9, [Faults::NONE; 2], config(), |_, sending| {
        sending.patience = Duration::from_millis(100);
    });
    let station = two.fabric.station(two.b.node);
    two.fabric.network.partition(&[station]);
    let qpn = two.a.qpn;
    two.a.receive(0, Buf::with_capacity(1));
    for id in 0..10 {
        two.a.post(WorkRequest::send(id, Inline::new(&[1]).unwrap()));
    }
    let before = two.fabric.now();
    let mut failed = None;
    while failed.is_none() && two.fabric.now().since(before) < Duration::from_secs(20) {
        // Nobody can tell the first number from here, so every report is tried.
        report(&mut two, qpn, Psn::new(0), Psn::new(0), &[0xFF; 128]);
        two.run_for(Duration::from_millis(1));
        failed = two.a.poll().into_iter().next();
    }
    assert!(matches!(failed.map(|failed| failed.outcome), Some(Err(Failure::Broke(_)))));
}

// The second of two requests for one part was lost, and so was the response to the first. Both were
// requested again in one go, which reached beyond what the responder knew of, for ever.
#[test]
fn what_is_requested_again_of_a_read_is_of_one_request() {
    const LEN: u32 = 64 * 1024;
    for seed in 0..effort(20, 200) as u64 {
        let mut two = selective(seed, [losing(0.2); 2], config(), |_, sending| {
            sending.congestion = true;
        });
        let (to, target) = two.a.open(&mut two.fabric, LEN as usize);
        let (from, source) = two.b.open(&mut two.fabric, LEN as usize);
        from.write_at(0, &pattern(LEN as usize)).unwrap();
        for id in 0..4 {
            let read = WorkRequest::read(id, source.address, source.rkey, target.segment(0, LEN));
            two.a.post(read);
        }
        let (done, _) = two.run(4, 0);
        let expected: Vec<_> = (0..4).map(|id| (id, Ok(Done::Read))).collect();
        assert_eq!(outcomes(&done), expected, "seed {seed}");
        assert_eq!(content(&to), pattern(LEN as usize));
    }
}
