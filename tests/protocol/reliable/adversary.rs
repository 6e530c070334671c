//! Somebody who knows a connection's numbers sends valid packets into it: whatever arrives, each
//! request completes or fails, once, and in bounded time.

use std::collections::BTreeMap;
use std::time::Duration;

use doorbell_core::memory::{Buf, Region};
use doorbell_core::nic::*;
use doorbell_core::wire::{
    Aeth, AtomicEth, AtomicValue, Bth, Credits, DmaLength, Extensions, Headers, Msn, Nak, Opcode,
    Packet, Psn, Qpn, RemoteAddr, Reth, RnrTimer, Syndrome,
};
use doorbell_kit::effort;
use doorbell_simulation::NodeId;

use crate::reliable::common::{End, Setup, Two, at, outcomes, short};
use crate::reliable::random::dice::Dice;

/// The numbers of one end of a connection.
#[derive(Clone, Copy)]
struct Numbers {
    qpn: Qpn,
    /// The first packet that it sends.
    sends: Psn,
    /// The first packet that it expects.
    expects: Psn,
}

/// A connection, and the numbers of its ends, which an adversary knows.
fn known(settle: impl Fn(&mut Sending)) -> (Two, [Numbers; 2]) {
    let keep_alive = KeepAlive { busy: Duration::from_millis(200), ..KeepAlive::default() };
    let config = Config { keep_alive, ..Setup::default().config };
    let mut firsts = Vec::new();
    let two = Setup { config, ..Setup::default() }.connected(|connection, sending| {
        firsts.push((sending.first, connection.expected));
        settle(sending);
    });
    let qpns = [two.a.qpn, two.b.qpn];
    let numbers =
        [0, 1].map(|end| Numbers { qpn: qpns[end], sends: firsts[end].0, expects: firsts[end].1 });
    (two, numbers)
}

/// Hands a packet to a node as one of its peer's.
fn inject(two: &mut Two, to: NodeId, (bth, extensions): (Bth, Extensions), payload: &[u8]) {
    let flow = Flow::Link(two.fabric.path(to, 1 - to).id());
    two.fabric.turn(to);
    let headers = Headers { bth, extensions };
    two.fabric.nic(to).packet(flow, &Packet { headers, payload });
    two.fabric.turn(to);
}

fn empty_write(to: Numbers, psn: Psn) -> (Bth, Extensions) {
    let reth =
        Reth { address: RemoteAddr(0), rkey: doorbell_core::wire::Rkey(0), length: DmaLength(0) };
    let bth = Bth::new(Opcode::RcWriteOnly, to.qpn, psn).with_ack_request(true);
    (bth, Extensions::Reth(reth))
}

/// Acknowledgements ran ahead of what was sent. They were passed over, and yet each of them put off
/// the end, so that the request was sent again and again for ever.
#[test]
fn a_request_whose_numbers_somebody_else_has_used_up_fails_in_time() {
    for patience in [Duration::ZERO, Duration::from_millis(150)] {
        let (mut two, [_, b]) = known(|sending| sending.patience = patience);
        for further in 0..3 {
            let write = empty_write(b, b.expects.add(further));
            let node = two.b.node;
            inject(&mut two, node, write, &[]);
        }
        // Their acknowledgements come before anything is under way.
        two.run_for(Duration::from_millis(1));
        two.b.receives(1, 10);
        let before = two.fabric.now();
        two.a.post(short(1));
        let (done, _) = two.run(1, 0);
        let Err(Failure::Broke(Cause::NoProgress { tries: 8.. })) = done[0].outcome else {
            panic!("{:?}", done[0].outcome);
        };
        let took = two.fabric.now().since(before);
        assert!((patience..Duration::from_millis(800)).contains(&took), "{took:?}");
    }
}

/// Who had no retries began to be patient anew with each of them.
#[test]
fn a_request_without_retries_has_its_patience_once() {
    let patience = Duration::from_millis(150);
    let (mut two, _) = known(|sending| (sending.patience, sending.retries) = (patience, 0));
    let station = two.fabric.station(two.b.node);
    two.fabric.network.partition(&[station]);
    let before = two.fabric.now();
    two.a.post(short(1));
    let (done, _) = two.run(1, 0);
    let Err(Failure::Broke(Cause::NoAnswer { .. } | Cause::PeerSilent { .. })) = done[0].outcome
    else {
        panic!("{:?}", done[0].outcome);
    };
    let took = two.fabric.now().since(before);
    assert!((patience..Duration::from_millis(250)).contains(&took), "{took:?}");
}

/// Refusals for want of a receive are counted, however many come and whatever comes between.
#[test]
fn a_receiver_that_is_never_ready_is_given_up_though_stray_answers_come() {
    let (mut two, [a, _]) = known(|sending| sending.rnr_retries = 3);
    let node = two.a.node;
    two.a.post(short(1));
    for _ in 0..100 {
        two.run_for(Duration::from_micros(100));
        let aeth = Aeth { syndrome: Syndrome::ACK, msn: Msn::new(0) };
        let bth = Bth::new(Opcode::RcAcknowledge, a.qpn, a.sends.add(7));
        inject(&mut two, node, (bth, Extensions::Aeth(aeth)), &[]);
    }
    let (done, _) = two.run(1, 0);
    let Err(Failure::Broke(Cause::ReceiverNotReady { tries: 4, .. })) = done[0].outcome else {
        panic!("{:?}", done[0].outcome);
    };
}

/// What another connection to the same host heard put off the end of one whose peer was gone.
#[test]
fn a_request_to_a_queue_pair_that_is_gone_fails_in_time_while_its_host_speaks() {
    let patience = Duration::from_millis(150);
    let (mut two, _) = known(|sending| sending.patience = patience);
    let [mut speaks, mut hears] =
        [two.a.node, two.b.node].map(|node| End::new(&mut two.fabric, node, 64, 64));
    let ends = ((speaks.node, speaks.qpn), (hears.node, hears.qpn));
    two.fabric.connect(ends.0, ends.1, doorbell_core::wire::PathMtu::Mtu1024, |_, _| {});
    two.fabric.nic(two.b.node).change(two.b.qpn, Change::Error).unwrap();
    two.a.post(short(1));
    for id in 0..40 {
        hears.receives(1, 10);
        speaks.post(short(id).awaited());
        two.run_for(Duration::from_millis(10));
    }
    let done = two.a.poll();
    assert_eq!(outcomes(&done).len(), 1, "it fails in time");
    assert!(matches!(done[0].outcome, Err(Failure::Broke(Cause::NoAnswer { tries: 8.. }))));
    assert_eq!(speaks.poll().len(), 40);
}

/// Of the kinds of packets below: requests alone, acknowledgements alone, all but refusals for
/// good, all.
const MOODS: [(usize, usize); 4] = [(0, 7), (7, 13), (0, 19), (0, 20)];

/// A packet that fits somewhere near what the ends of the connection send now.
fn any(
    dice: &mut Dice,
    kinds: (usize, usize),
    to: Numbers,
    sent: u32,
    place: &Registration,
) -> ((Bth, Extensions), Vec<u8>) {
    let near = |dice: &mut Dice, first: Psn| {
        first.add(sent + dice.below(8) as u32).before().before().before().before()
    };
    let (request, answer) = (near(dice, to.expects), near(dice, to.sends));
    let msn = Msn::new(dice.below(60) as u32);
    let address = at(place, 8 * dice.below(8) as u64);
    let reth = |length| Reth { address, rkey: place.rkey, length: DmaLength(length) };
    let aeth = |syndrome| Extensions::Aeth(Aeth { syndrome, msn });
    let bth = |opcode, psn| Bth::new(opcode, to.qpn, psn).with_ack_request(true);
    match dice.between(kinds.0, kinds.1 - 1) {
        0..5 => (empty_write(to, request), vec![]),
        5 => {
            let read = bth(Opcode::RcReadRequest, request);
            ((read, Extensions::Reth(reth(dice.below(5000) as u32))), vec![])
        }
        6 => {
            let word = AtomicValue(0);
            let rkey = place.rkey;
            let atomic = AtomicEth { address, rkey, swap_or_add: word, compare: word };
            ((bth(Opcode::RcFetchAdd, request), Extensions::Atomic(atomic)), vec![])
        }
        7..12 => ((bth(Opcode::RcAcknowledge, answer), aeth(Syndrome::ACK)), vec![]),
        12 => {
            let credits = Syndrome::ack_with(Credits::at_most(dice.below(4)));
            ((bth(Opcode::RcAcknowledge, answer), aeth(credits)), vec![])
        }
        13..16 => {
            let missing = Syndrome::nak(Nak::SequenceError);
            ((bth(Opcode::RcAcknowledge, answer), aeth(missing)), vec![])
        }
        16..18 => {
            let wait = RnrTimer::at_least(Duration::from_micros(dice.below(3000) as u64));
            ((bth(Opcode::RcAcknowledge, answer), aeth(Syndrome::not_ready(wait))), vec![])
        }
        18 => {
            let data = vec![0; [0, 8, 64, 1024][dice.below(4)]];
            ((bth(Opcode::RcReadResponseOnly, answer), aeth(Syndrome::ACK)), data)
        }
        _ => {
            let nak = Syndrome::nak([Nak::RemoteAccess, Nak::RemoteOperation][dice.below(2)]);
            // Seldom, for that is the end.
            let syndrome = if dice.percent(5) { nak } else { Syndrome::ACK };
            ((bth(Opcode::RcAcknowledge, answer), aeth(syndrome)), vec![])
        }
    }
}

/// Each of these changes its own part of the peer's memory, if it changes any.
const PART: usize = 2048;

fn request(dice: &mut Dice, id: u64, place: &Registration) -> WorkRequest {
    let (address, rkey) = (at(place, id * PART as u64), place.rkey);
    match dice.below(5) {
        0 | 1 => {
            let bytes = Buf::from(vec![id as u8 + 1; 1 + dice.below(PART)]);
            WorkRequest::write(id, address, rkey, Memory::Buf(bytes))
        }
        2 => WorkRequest::read(id, address, rkey, Buf::with_capacity(1 + dice.below(PART))),
        3 => WorkRequest::fetch_add(id, address, rkey, 0),
        _ => short(id),
    }
}

const REQUESTS: u64 = 24;

/// What is in memory is what was there before, or what was to be written.
fn is_intact(region: &Region) -> bool {
    (0..REQUESTS).all(|id| {
        let mut bytes = vec![0; PART];
        region.read_at(id as usize * PART, &mut bytes).expect("it is within");
        bytes.iter().all(|&byte| byte == 0 || byte == id as u8 + 1)
    })
}

fn attacked(seed: u64) {
    let mut dice = Dice::new(seed);
    let patience = Duration::from_millis(dice.below(3) as u64 * 60);
    let retries = dice.below(8) as u8;
    let (mut two, numbers) = known(|sending| {
        (sending.patience, sending.retries, sending.rnr_retries) = (patience, retries, 5);
    });
    let len = REQUESTS as usize * PART;
    let memory = [two.a.open(&mut two.fabric, len), two.b.open(&mut two.fabric, len)];
    let mut outcomes: [BTreeMap<u64, bool>; 2] = Default::default();
    let (most, mood) = (dice.between(20, 400), dice.pick(&MOODS));
    let mut posted = 0;
    // Longer than all of them may take, one after another, each with all of its patience.
    let end = two.fabric.now() + Duration::from_secs(20);
    while two.fabric.now() < end {
        if posted < REQUESTS && dice.percent(20) {
            let requests = [
                request(&mut dice, posted, &memory[1].1),
                request(&mut dice, posted, &memory[0].1),
            ];
            for (end, request) in [&mut two.a, &mut two.b].into_iter().zip(requests) {
                let receive = Buf::with_capacity(16);
                let _ =
                    end.receive.post(ReceiveRequest { id: 1000 + posted, memory: receive.into() });
                let _ = end.send.post(request).inspect_err(|_| panic!("there is room"));
                end.send.ring();
            }
            posted += 1;
        }
        two.run_for(Duration::from_micros(dice.below(most) as u64));
        let to = dice.below(2);
        let sent = (posted + posted * dice.below(10) as u64 / 16) as u32;
        let ((bth, extensions), payload) = any(&mut dice, mood, numbers[to], sent, &memory[to].1);
        // Several, one behind the other, get ahead of what the peer sends.
        for further in 0..=dice.below(4) as u32 {
            let packet = (bth.with_psn(bth.psn().add(further)), extensions);
            inject(&mut two, to, packet, &payload);
        }
        for (end, outcomes) in [&mut two.a, &mut two.b].into_iter().zip(&mut outcomes) {
            for done in end.poll() {
                if done.id < 1000 {
                    let again = outcomes.insert(done.id, done.outcome.is_ok());
                    assert_eq!(again, None, "seed {seed}: {} is complete twice", done.id);
                }
            }
        }
        let all = outcomes.iter().all(|outcomes| outcomes.len() as u64 == REQUESTS);
        if all {
            let whole = memory.iter().all(|(region, _)| is_intact(region));
            assert!(whole, "seed {seed}: there is something in memory that nobody wrote");
            return;
        }
    }
    let counters = two.counters();
    panic!("seed {seed}: something neither completes nor fails: {outcomes:?} {counters:#?}");
}

#[test]
fn whatever_valid_packets_somebody_sends_into_a_connection_each_request_ends_in_time() {
    (0..effort(60, 2000)).for_each(attacked);
}
