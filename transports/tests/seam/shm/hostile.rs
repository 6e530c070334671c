//! Peers that lie. They speak by system calls of their own, so that they can say anything.

use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicU64, Ordering};

use doorbell_core::encap::PathId;
use doorbell_core::nic::Outbox;
use doorbell_core::wire::{Bth, Opcode, Psn, Qpn};
use doorbell_kit::lab::passed_over;
use doorbell_transports::shm::{Limits, Shm};
use doorbell_transports::{Address, Device, ReachError};

use crate::shm::common::*;
use crate::shm::liar::*;

/// The first word of a record.
fn tag(lap: u16, len: u16) -> u64 {
    u64::from(lap) | u64::from(len) << 16
}

/// A device, a liar who is linked to it, and the link.
fn linked() -> (Shm, Liar, Segment, PathId) {
    let mut device = Shm::join(&name("honest")).expect("a name");
    let (liar, segment) = Liar::hello(&mut device);
    // The first link of a device.
    (device, liar, segment, PathId(0))
}

/// Asserts that a device takes a link down, says so once, and counts it.
#[track_caller]
fn is_broken(device: &mut Shm, link: PathId) -> Heard {
    let mut heard = Heard::default();
    until(|| {
        turn(device, &mut heard);
        !heard.gone.is_empty()
    });
    for _ in 0..3000 {
        turn(device, &mut heard);
    }
    assert_eq!((&heard.gone[..], device.statistics().broken), (&[link][..], 1));
    heard
}

#[test]
fn a_record_of_impossible_length_breaks_its_link_and_is_counted() {
    // Longer than any packet; longer than what is left of the ring; a skip to where it is; too
    // short for a header.
    for len in [u16::MAX, 4200, 0, 11] {
        let (mut device, _liar, segment, link) = linked();
        segment.outgoing()[32].store(tag(1, len), Ordering::Release);
        let heard = is_broken(&mut device, link);
        assert_eq!((heard.malformed, heard.packets.len()), (1, 0));
    }
}

/// The words of a packet without a payload, but for its length.
fn record(number: u32, len: u16) -> [u64; 2] {
    let bth = Bth::new(Opcode::UcSendOnly, Qpn::GSI, Psn::new(number)).to_bytes();
    let [a, b, c, d, rest @ ..] = bth;
    let first = u64::from_le_bytes([0, 0, 0, 0, a, b, c, d]);
    [tag(1, len) | first, u64::from_le_bytes(rest)]
}

/// What has no memory yet is a hole, until somebody goes there: the reader takes care of itself.
#[test]
fn a_record_in_a_hole_is_read() {
    const PART: usize = 4096;
    let mut device = Shm::join(&name("honest")).expect("a name");
    let (_liar, segment) = Liar::hello_for(&mut device, 1 << 16);
    let mut heard = Heard::default();
    let write = |place: usize, [first, second]: [u64; 2]| {
        let words = &segment.outgoing()[32 + place * 8..];
        words[1].store(second, Ordering::Relaxed);
        words[0].store(first, Ordering::Release);
    };
    for number in 0..PART - 1 {
        write(number, record(number as u32, 12));
    }
    // The last line of the first part, and 64 lines of the next.
    write(PART - 1, record(1, 12 + 4096));
    // And one behind.
    write(PART + 64, record(2, 12));
    until(|| {
        turn(&mut device, &mut heard);
        heard.packets.len() > PART
    });
    let (_, _, payload) = &heard.packets[PART - 1];
    assert_eq!((payload.len(), heard.malformed), (4096, 0));
    // No further than the end.
    write(PART + 65, record(3, u16::MAX));
    is_broken(&mut device, PathId(0));
}

#[test]
fn progress_that_can_not_be_breaks_its_link() {
    for (sent, taken) in [(1, 2), (1, u64::MAX), (0, 1)] {
        let (mut device, _liar, segment, link) = linked();
        for number in 0..sent {
            send(&mut device, link, number, b"sent");
        }
        segment.incoming()[0].store(taken, Ordering::Release);
        assert_eq!(device.delivered(link), 0);
        is_broken(&mut device, link);
    }
    // More was sent by then than the ring holds.
    for answers in [u64::from(LINES) + 1, u64::MAX] {
        let (mut device, _liar, segment, link) = linked();
        send(&mut device, link, 0, b"sent");
        segment.incoming()[1].store(answers, Ordering::Relaxed);
        segment.incoming()[0].store(1, Ordering::Release);
        assert_eq!(device.delivered(link), 0);
        is_broken(&mut device, link);
    }
    // Backwards, found when there is no more room; and it wakes who sleeps.
    let (mut device, _liar, segment, link) = linked();
    let mut heard = Heard::default();
    for number in 0..256 {
        send(&mut device, link, number, b"sent");
    }
    segment.incoming()[0].store(256, Ordering::Release);
    assert_eq!(device.delivered(link), 256);
    for number in 0..256 {
        send(&mut device, link, number, b"sent");
    }
    segment.incoming()[0].store(255, Ordering::Release);
    device.arm(None).expect("armed");
    assert_eq!(turn(&mut device, &mut heard), 0);
    assert!(push(&mut device, link, 0, b"no room").is_err());
    sleep(&device);
    device.disarm();
    is_broken(&mut device, link);
}

#[test]
fn a_segment_full_of_random_words_does_no_harm() {
    let mut device = Shm::join(&name("honest")).expect("a name");
    let mut random = Random(7);
    let mut heard = Heard::default();
    for round in 0..300 {
        let (liar, segment) = Liar::hello(&mut device);
        // Links are numbered one after another, as long as each is gone before the next.
        let link = PathId(round);
        heard.gone.clear();
        std::thread::scope(|scope| {
            let (words, seed) = (segment.words, random.next());
            scope.spawn(move || scribble(words, seed));
            for turns in 0..3000 {
                turn(&mut device, &mut heard);
                let _ = push(&mut device, link, turns, &[1; 100]);
                device.flush();
                device.delivered(link);
            }
        });
        drop(liar);
        until(|| {
            turn(&mut device, &mut heard);
            heard.gone.contains(&link)
        });
        heard.packets.clear();
    }
    let broken = device.statistics().broken;
    // How many depends on who was when at what.
    assert!(broken > 0, "nothing of it was noticed");
    // It goes on working.
    let mut other = Shm::join(&name("other")).expect("a name");
    let to_other = reach(&mut device, &mut other);
    send(&mut device, to_other, 9, b"still here");
    until(|| turn(&mut other, &mut Heard::default()) > 0);
}

/// Writes all words again and again: any values, and such as look like what belongs there.
fn scribble(words: &[AtomicU64], seed: u64) {
    let mut random = Random(seed);
    for _ in 0..8 {
        for word in words {
            let any = random.next();
            let value = match any >> 60 {
                0..=5 => tag(1 + (any >> 8) as u16 % 3, any as u16 % 300) | any << 32,
                6 | 7 => tag(1, 16 + any as u16 % 32) | 0x0404 << 32,
                8 => any % 1000,
                9..=12 => any,
                _ => 0,
            };
            word.store(value, Ordering::Relaxed);
        }
    }
}

#[test]
fn a_peer_that_says_it_sleeps_and_reads_nothing_keeps_nobody_waiting() {
    let (mut device, _liar, segment, link) = linked();
    for number in 0..20_000 {
        segment.incoming()[16].store(1, Ordering::Relaxed);
        let written = segment.incoming()[0].load(Ordering::Relaxed) + 1;
        send(&mut device, link, number, b"wake up");
        segment.incoming()[0].store(written, Ordering::Release);
    }
    assert_eq!(device.delivered(link), 20_000);
}

#[test]
fn nobody_can_shrink_a_segment_and_holes_in_it_are_zeros() {
    let (mut device, _liar, segment, link) = linked();
    let fd = segment.fd.as_raw_fd();
    send(&mut device, link, 1, b"before");
    // SAFETY: no call touches memory of this program's but the mapping, which is of atomics.
    unsafe {
        assert_eq!(libc::ftruncate(fd, 0), -1, "shrunk");
        assert_eq!(libc::ftruncate(fd, 1 << 30), -1, "grown");
        let how = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        ok(libc::fallocate(fd, how, 0, 2 * RING as i64));
    }
    send(&mut device, link, 2, b"after");
    assert!(segment.incoming()[32 + 8].load(Ordering::Acquire) != 0);
}

#[test]
fn what_is_no_message_breaks_a_link() {
    let null = std::fs::File::open("/dev/null").expect("a file");
    let grant = |len: u64| [&[4][..], &1u128.to_le_bytes(), &len.to_le_bytes()].concat();
    let with_memory = [grant(64), grant(0), grant(u64::MAX)];
    let without = [vec![9], vec![3, 3], vec![5], grant(64), vec![1; 200], vec![2, 0, 0, 1, 0, 0]];
    let messages = with_memory.iter().map(|message| (message, Some(null.as_fd())));
    for (message, fd) in messages.chain(without.iter().map(|message| (message, None))) {
        let (mut device, liar, _segment, link) = linked();
        liar.say(message, fd);
        is_broken(&mut device, link);
    }
}

#[test]
fn a_flood_of_grants_breaks_its_link_and_leaves_nothing() {
    let (mut device, liar, segment, link) = linked();
    let grant = [&[4][..], &1u128.to_le_bytes(), &(2 * RING as u64).to_le_bytes()].concat();
    let mut heard = Heard::default();
    until(|| {
        liar.says(&grant, Some(segment.fd.as_fd()));
        turn(&mut device, &mut heard);
        !heard.gone.is_empty()
    });
    assert_eq!((heard.gone, device.statistics().broken), (vec![link], 1));
    assert!(device.granted().is_none());
}

/// How many bytes of memory this machine has.
fn machine() -> usize {
    let told = std::fs::read_to_string("/proc/meminfo").expect("proc");
    let total = told.lines().find_map(|line| line.strip_prefix("MemTotal:")).expect("a total");
    total.trim().trim_end_matches(" kB").parse::<usize>().expect("a number") << 10
}

/// What is granted costs nothing before it is used, but to map it uses up addresses. Grants of up to
/// 2^46 bytes each were mapped, until this process could map nothing else.
#[test]
fn grants_that_would_use_up_what_a_process_can_address_break_their_links() {
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    let grant = |len: usize| [&[4][..], &1u128.to_le_bytes(), &(len as u64).to_le_bytes()].concat();
    // One that is longer than the machine's memory.
    let (mut device, liar, _segment, link) = linked();
    let longer = machine() + (2 << 20);
    liar.say(&grant(longer), Some(memory(longer as i64, seals).as_fd()));
    is_broken(&mut device, link);

    // Each is as long as may be, and all together are too many.
    let len = machine() & !0xFFFF;
    let memory = memory(len as i64, seals);
    let most = (1 << 45) / len;
    if most > 64 * 200 {
        return passed_over("this machine has so little memory that no peers could grant too much");
    }
    let (mut device, mut heard) = (Shm::join(&name("honest")).expect("a name"), Heard::default());
    let mut liars = Vec::new();
    for number in 0..=most {
        if number % 64 == 0 {
            liars.push(Liar::hello(&mut device));
        }
        let (liar, _) = liars.last().expect("one has said hello");
        until(|| {
            turn(&mut device, &mut heard);
            liar.says(&grant(len), Some(memory.as_fd()))
        });
    }
    until(|| {
        turn(&mut device, &mut heard);
        !heard.gone.is_empty()
    });
    // That of the last, who was one too many.
    assert_eq!((heard.gone.len(), device.statistics().broken), (1, 1));
    let mapped = std::iter::from_fn(|| device.granted()).map(|grant| grant.memory.len());
    assert!(mapped.sum::<usize>() <= 1 << 45);
}

#[test]
fn callers_who_say_nothing_hold_no_more_than_16_descriptors() {
    doorbell_kit::child::alone(|| {
        let descriptors = || std::fs::read_dir("/proc/self/fd").expect("proc").count();
        let mut device = Shm::join(&name("honest")).expect("a name");
        let before = descriptors();
        let mut silent = Vec::new();
        for _ in 0..100 {
            silent.push(Liar::call(&named(&device)));
            device.reach(&Address::Shm("nobody at all".into())).expect_err("nobody");
        }
        let own = silent.len();
        assert!(descriptors() <= before + own + 16, "{} of {own} callers", descriptors() - before);
    });
}

#[test]
fn callers_who_say_nothing_or_nonsense_do_not_keep_others_out() {
    let mut device = Shm::join(&name("honest")).expect("a name");
    let mut heard = Heard::default();
    let mut silent = Vec::new();
    for round in 0..100u8 {
        silent.push(Liar::call(&named(&device)));
        let liar = Liar::call(&named(&device));
        let hello = [&HELLO[..], &LINES.to_le_bytes(), &[0xFF, round]].concat();
        let too_many = [&HELLO[..], &u32::MAX.to_le_bytes(), b"name"].concat();
        liar.say([&[round][..], &hello, &too_many][usize::from(round) % 3], None);
        silent.push(liar);
        device.reach(&Address::Shm("nobody at all".into())).expect_err("nobody");
    }
    assert!(device.statistics().strangers > 100);
    let mut other = Shm::join(&name("other")).expect("a name");
    let link = reach(&mut other, &mut device);
    send(&mut other, link, 1, b"hello");
    until(|| turn(&mut device, &mut heard) > 0);
}

#[test]
fn who_speaks_another_version_or_has_our_name_is_told_so() {
    let mut device = Shm::join(&name("honest")).expect("a name");
    let own = named(&device);
    let lines = LINES.to_le_bytes();
    for (hello, answer) in [
        ([&[1, 2][..], &lines, b"a name"].concat(), [2, 6]),
        ([&HELLO[..], &lines, own.as_bytes()].concat(), [2, 2]),
    ] {
        let liar = Liar::call(&named(&device));
        liar.say(&hello, None);
        device.reach(&Address::Shm("nobody at all".into())).expect_err("nobody");
        assert_eq!(liar.hear().0, answer);
    }
}

#[test]
fn memory_that_could_be_taken_away_is_not_mapped() {
    let (shrink, grow, seal) = (libc::F_SEAL_SHRINK, libc::F_SEAL_GROW, libc::F_SEAL_SEAL);
    let all = shrink | grow | seal;
    let size = 2 * RING as i64;
    let good = || Some(memory(size, all));
    let answer = |lines: u32| [&[2, 0][..], &lines.to_le_bytes()].concat();
    let cases = [
        (answer(LINES), Some(memory(size, shrink | grow))),
        (answer(LINES), Some(memory(size, grow | seal))),
        (answer(LINES), Some(memory(size, 0))),
        (answer(LINES), Some(memory(size - 4096, all))),
        (answer(LINES), Some(memory(0, all))),
        // It can't be mapped for writing.
        (answer(LINES), Some(memory(size, all | libc::F_SEAL_WRITE))),
        (answer(LINES), Some(std::fs::File::open("/dev/zero").expect("a file").into())),
        (answer(LINES), Some(socket())),
        (answer(LINES), None),
        (answer(2 * LINES), good()),
        // More than was asked for.
        (answer(65536), Some(memory(2 * (256 + 65536 * 64), all))),
        (answer(LINES + 1), good()),
        (vec![2, 0, 0, 1, 0], good()),
        (vec![7; 150], None),
        (vec![2, 200], None),
    ];
    let limits = Limits { ring: 256 << 10, ..Limits::default() };
    let mut device = Shm::join_within(&name("honest"), limits).expect("a name");
    for (answer, fd) in cases {
        let impostor = Impostor::new();
        assert!(matches!(device.reach(&impostor.address), Ok(None)));
        let liar = impostor.accept();
        assert_eq!(liar.hear().0[..2], HELLO);
        liar.say(&answer, fd.as_ref().map(AsFd::as_fd));
        let refused = reach_with(&mut device, &impostor.address, || {});
        let why = refused.expect_err("no link comes of it");
        let is_told = matches!(
            why,
            ReachError::Nobody { .. } | ReachError::Refused { .. } | ReachError::Stranger { .. }
        );
        assert!(is_told, "{answer:?}: {why}");
    }
    // And the good one is.
    let impostor = Impostor::new();
    assert!(matches!(device.reach(&impostor.address), Ok(None)));
    let (liar, good) = (impostor.accept(), memory(size, all));
    liar.say(&answer(LINES), Some(good.as_fd()));
    reach_with(&mut device, &impostor.address, || {}).expect("a link");
}

#[test]
fn who_hangs_up_or_never_answers_is_nobody() {
    let mut device = Shm::join(&name("honest")).expect("a name");
    let impostor = Impostor::new();
    assert!(matches!(device.reach(&impostor.address), Ok(None)));
    drop(impostor.accept());
    let nobody = reach_with(&mut device, &impostor.address, || {});
    assert!(matches!(nobody, Err(ReachError::Nobody { why: "it hung up", .. })), "{nobody:?}");
    // The impostor does not even accept.
    let nobody = reach_with(&mut device, &impostor.address, std::thread::yield_now);
    let Err(ReachError::Nobody { why, .. }) = nobody else { panic!("{nobody:?}") };
    assert!(why.contains("has not answered"), "{why}");
}

#[test]
fn of_two_calls_that_cross_the_one_of_the_lesser_name_goes_on() {
    let answer = [&[2, 0][..], &LINES.to_le_bytes()].concat();
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    for (own, peer) in [("lesser", "more"), ("more", "lesser")] {
        let common = name("");
        let (own, peer) = (format!("{common}{own}"), format!("{common}{peer}"));
        let mut device = Shm::join(&own).expect("a name");
        let impostor = Impostor::by_name(&peer);
        assert!(matches!(device.reach(&impostor.address), Ok(None)));
        let called = impostor.accept();
        called.hear();
        let caller = Liar::hello_as(&device, &peer, LINES);
        if own < peer {
            assert!(matches!(device.reach(&impostor.address), Ok(None)));
            assert_eq!(caller.hear().0, [2, 1], "crossed");
            let memory = memory(2 * RING as i64, seals);
            called.say(&answer, Some(memory.as_fd()));
            reach_with(&mut device, &impostor.address, || {}).expect("a link, by its own call");
        } else {
            reach_with(&mut device, &impostor.address, || {}).expect("a link, by the other's");
            assert_eq!(caller.hear().0, answer);
            assert_eq!(called.hear().0, [], "hung up");
        }
        // A third call is one too many.
        let again = Liar::hello_as(&device, &peer, LINES);
        device.reach(&Address::Shm("nobody at all".into())).expect_err("nobody");
        assert_eq!(again.hear().0, [2, 2], "linked already");
    }
}

#[test]
fn a_call_that_is_refused_as_crossed_waits_for_the_other_one() {
    let common = name("");
    let mut device = Shm::join(&format!("{common}more")).expect("a name");
    let peer = format!("{common}lesser");
    let impostor = Impostor::by_name(&peer);
    assert!(matches!(device.reach(&impostor.address), Ok(None)));
    let called = impostor.accept();
    called.hear();
    called.say(&[2, 1], None);
    for _ in 0..10 {
        assert!(matches!(device.reach(&impostor.address), Ok(None)));
    }
    // What is awaited keeps nobody awake.
    let mut heard = Heard::default();
    device.arm(None).expect("armed");
    assert_eq!(turn(&mut device, &mut heard), 0);
    assert!(!is_ready(&device));
    let _caller = Liar::hello_as(&device, &peer, LINES);
    sleep(&device);
    device.disarm();
    reach_with(&mut device, &impostor.address, || {}).expect("a link");
}
