//! What goes through a ring comes out of it: all, in order, once.

use doorbell_core::nic::Outbox;
use doorbell_transports::Device;
use doorbell_transports::shm::{Limits, Shm};

use crate::shm::common::*;

/// Bytes that tell which message of which length they are of.
fn bytes(number: u32, len: usize) -> Vec<u8> {
    (0..len).map(|at| (number as usize * 7 + at * 13) as u8).collect()
}

#[test]
fn packets_of_every_size_arrive_whole_and_in_order() {
    let [(mut a, to_b), (mut b, _)] = pair();
    let mut heard = Heard::default();
    for len in 0..=4096 {
        send(&mut a, to_b, len as u32, &bytes(len as u32, len));
        until(|| turn(&mut b, &mut heard) > 0);
    }
    for (len, (_, number, payload)) in heard.packets.iter().enumerate() {
        assert_eq!((*number, payload), (len as u32, &bytes(*number, len)));
    }
    assert_eq!(heard.packets.len(), 4097);
}

#[test]
fn a_packet_larger_than_any_is_not_taken() {
    let [(mut a, to_b), _b] = pair();
    assert!(push(&mut a, to_b, 0, &[0; 5000]).is_err());
    assert!(push(&mut a, to_b, 0, &[0; 4096]).is_ok());
}

/// Payload that looks like a record to whoever looks at the wrong place: random words, in a ring so
/// small that each place sees many laps of short and long records.
#[test]
fn bursts_of_random_sizes_survive_many_laps_of_a_small_ring() {
    bursts(16 << 10, 60);
}

/// One of which only the beginning is used while its reader keeps up.
#[test]
fn bursts_of_random_sizes_survive_laps_of_two_lengths() {
    bursts(512 << 10, 1000);
}

fn bursts(ring: usize, most: u64) {
    let limits = Limits { ring, ..Limits::default() };
    let [mut a, mut b] = Shm::pair_within(limits).expect("a pair");
    let to_b = reach(&mut a, &mut b);
    let mut random = Random(1);
    let (mut sent, mut taken) = (0, 0);
    let mut expected = std::collections::VecDeque::new();
    while taken < 100_000 {
        for _ in 0..random.below(most) {
            // All words alike, and like the tag of some lap.
            let lap = random.below(40) + 1;
            let word = (lap | random.below(200) << 16).to_ne_bytes();
            let len = if random.below(4) == 0 { random.below(4097) } else { random.below(40) };
            let payload: Vec<u8> = word.iter().copied().cycle().take(len as usize).collect();
            if push(&mut a, to_b, sent % (1 << 24), &payload).is_err() {
                break;
            }
            expected.push_back(payload);
            sent += 1;
        }
        a.flush();
        let mut heard = Heard::default();
        for _ in 0..random.below(most / 5) {
            turn(&mut b, &mut heard);
        }
        assert_eq!(heard.malformed + heard.gone.len(), 0);
        for (_, number, payload) in heard.packets {
            assert_eq!(number, taken % (1 << 24));
            assert_eq!(Some(payload), expected.pop_front());
            taken += 1;
        }
    }
    let counted = b.statistics();
    assert_eq!((counted.frames_received, counted.broken), (u64::from(taken), 0));
}

#[test]
fn a_full_ring_takes_nothing_until_what_was_read_is_settled() {
    full(Limits { ring: 256 << 10, ..Limits::default() }, 4096);
}

#[test]
fn a_ring_is_as_long_as_its_device_may_have_it() {
    let long = Limits { ring: 4 << 20, ..Limits::default() };
    full(Limits { spare: 0, ..long }, 4096);
    full(Limits { spare: 1 << 20, ..long }, 5 * 4096);
    full(Limits { spare: usize::MAX, ..long }, 16 * 4096);
}

/// Fills a ring that takes so many records of a line.
fn full(limits: Limits, lines: usize) {
    let [mut a, mut b] = Shm::pair_within(limits).expect("a pair");
    let to_b = reach(&mut a, &mut b);
    let filled = (0..).take_while(|&n| push(&mut a, to_b, n, b"sixteen bytes...").is_ok()).count();
    a.flush();
    assert_eq!(filled, lines);
    let mut heard = Heard::default();
    while b.receive(&mut heard) > 0 {}
    assert_eq!(heard.packets.len(), filled);
    // Read, and not yet answered for.
    assert!(push(&mut a, to_b, 0, b"more").is_err());
    b.settle(|_| false);
    assert!(push(&mut a, to_b, 0, b"more").is_ok());
}

/// One that always has something else to read told its peer of too little only when that filled a
/// quarter of the ring.
#[test]
fn who_never_finds_nothing_says_how_far_it_has_come() {
    let [(mut a, to_b), (mut b, _)] = two();
    let first = send(&mut a, to_b, 0, b"one");
    let mut heard = Heard::default();
    until(|| turn(&mut b, &mut heard) > 0);
    for number in 1..100 {
        send(&mut a, to_b, number, b"more");
        assert_eq!(turn(&mut b, &mut heard), 1, "nothing is late");
    }
    assert!(a.delivered(to_b) > first);
}

#[test]
fn delivered_is_what_was_settled_and_no_more() {
    let [(mut a, to_b), (mut b, _)] = pair();
    let mut heard = Heard::default();
    let first = send(&mut a, to_b, 1, b"first");
    assert_eq!(b.receive(&mut heard), 1);
    for _ in 0..3 {
        // The NIC over there owes an answer.
        assert_eq!(b.receive(&mut heard), 0);
    }
    assert!(a.delivered(to_b) < first);
    b.settle(|_| false);
    let second = send(&mut a, to_b, 2, b"second");
    assert_eq!(b.receive(&mut heard), 1);
    assert_eq!(b.receive(&mut heard), 0);
    assert_eq!(a.delivered(to_b), first);
    b.settle(|_| false);
    b.receive(&mut heard);
    assert_eq!(a.delivered(to_b), second);
}

/// It may be what refuses the packet: the NIC must have seen that before it hears of the progress.
#[test]
fn delivered_is_what_was_answered_for_when_the_answers_have_been_read() {
    let [(mut a, to_b), (mut b, to_a)] = pair();
    let (mut at_a, mut at_b) = (Heard::default(), Heard::default());
    let ticket = send(&mut a, to_b, 1, b"a question");
    assert_eq!(b.receive(&mut at_b), 1);
    for number in 0..100 {
        send(&mut b, to_a, number, b"an answer");
    }
    b.settle(|_| false);
    assert_eq!(b.receive(&mut at_b), 0);
    while a.delivered(to_b) < ticket {
        assert!(at_a.packets.len() < 100, "nothing is left to wait for");
        a.receive(&mut at_a);
    }
    assert_eq!(at_a.packets.len(), 100);
}

/// Whoever waits for a moment when nothing is left to read waits for ever.
#[test]
fn delivered_is_told_to_who_never_reads_the_last_of_what_comes() {
    let [(mut a, to_b), (mut b, to_a)] = pair();
    let (mut at_a, mut at_b) = (Heard::default(), Heard::default());
    let mut answers = 0;
    let first = send(&mut a, to_b, 0, b"a question");
    for question in 1..100 {
        send(&mut a, to_b, question, b"a question");
        while answers < at_a.packets.len() + 1000 {
            send(&mut b, to_a, 0, b"an answer");
            answers += 1;
        }
        while turn(&mut b, &mut at_b) > 0 {}
        a.receive(&mut at_a);
        a.settle(|_| false);
        if a.delivered(to_b) >= first {
            return;
        }
    }
    panic!("{} of {answers} answers were read, and nothing is delivered", at_a.packets.len());
}

#[test]
fn among_many_peers_nobody_is_kept_waiting_by_who_never_stops() {
    let mut hub = Shm::join(&name("hub")).expect("a name");
    let mut peers: Vec<_> = (0..20)
        .map(|_| {
            let mut peer = Shm::join(&name("peer")).expect("a name");
            let link = reach(&mut peer, &mut hub);
            (peer, link)
        })
        .collect();
    let mut heard = Heard::default();
    for round in 0..100 {
        let quiet = round % 19 + 1;
        let (peer, link) = &mut peers[quiet];
        send(peer, *link, 1 << 20, b"seldom");
        let mut turns = 0;
        while heard.packets.iter().all(|(_, number, _)| *number != 1 << 20) {
            let (busy, link) = &mut peers[0];
            while push(busy, *link, 0, b"always").is_ok() {}
            busy.flush();
            turn(&mut hub, &mut heard);
            turns += 1;
            assert!(turns < 20, "kept waiting");
        }
        heard.packets.clear();
    }
}
