//! The bodies of the fuzz targets of Active Messages, run briefly: on what endpoints write, on each
//! truncation of that, and on mutations that are the same each time.

use doorbell_kit::{effort, try_mutations};

#[path = "../../../fuzz/src/am/group.rs"]
mod group;
#[path = "../../../fuzz/src/am/hello.rs"]
mod hello;
#[path = "../../../fuzz/src/am/pack.rs"]
mod pack;

#[test]
fn the_messages_of_a_send_lie_within_it() {
    try_mutations("am_pack", pack::am_pack, &sends(), effort(20_000, 400_000));
}

#[test]
fn greetings_are_written_as_they_were_read() {
    try_mutations("am_hello", hello::am_hello, &greetings(), effort(20_000, 400_000));
}

#[test]
fn the_words_of_a_group_are_written_as_they_were_read() {
    try_mutations("am_group", group::am_group, &words(), effort(20_000, 400_000));
}

/// Sends of one message and of several, with few words and with many, with payloads and without.
fn sends() -> Vec<Vec<u8>> {
    let message = |words: u32, payload: u32| {
        let (imm, wide) = (words.min(31) << 24 | 7 << 12, words >= 31);
        let mut bytes = [imm.to_le_bytes(), payload.to_le_bytes()].concat();
        if wide {
            bytes.extend(u64::from(words).to_le_bytes());
        }
        bytes.resize(bytes.len() + 8 * words as usize + payload as usize, 0xA5);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes
    };
    let each = [(0, 0), (1, 0), (2, 13), (31, 0), (40, 9), (0, 200)];
    let mut all: Vec<_> = each.map(|(words, payload)| message(words, payload)).into();
    all.push(all.concat());
    all
}

/// A greeting, a knock and a challenge.
fn greetings() -> Vec<Vec<u8>> {
    let numbers: [&[u8]; 6] =
        [&9_u64.to_be_bytes(), &[0, 8, 0, 8], &[0, 0, 16, 0], &[3; 8], &[0, 0, 3, 0xE8], &[7; 52]];
    let hello = |flags| [&b"AM\x06"[..], &[flags], &numbers.concat()].concat();
    let knock = [&b"AM\x06\x80"[..], &[3], &[5; 24]].concat();
    let challenge = [&b"AM\x06\x81"[..], &[3], &[5; 32]].concat();
    let all = [hello(2), hello(0x33), knock, challenge];
    all.map(|seed| [&seed[..], &[0; 12]].concat()).into()
}

/// The number of members, and words: labels, and failures of all causes.
fn words() -> Vec<Vec<u8>> {
    let label = |operation: u64, root: u64, from: u64| operation << 60 | root << 40 | from;
    let words = |first: u64| {
        let all = [first, 77, label(2, 1, 0), label(1, 0, 0)].map(u64::to_be_bytes).concat();
        [&4_u16.to_be_bytes()[..], &all, "no sign of life \u{e4}".as_bytes()].concat()
    };
    (0..8).map(|cause| words(cause << 32 | 3)).chain([words(label(1, 2, 3))]).collect()
}
