//! The bodies of the fuzz targets of Active Messages, run briefly: on what endpoints write, on each
//! truncation of that, and on mutations that are the same each time.
//!
//! An input that fails is kept in `fuzz/artifacts`, as the fuzzer keeps its own, and whatever lies
//! there is tried first the next time: `fuzz/README.md` says how to replay one.

use std::panic;
use std::path::Path;

use doorbell_kit::effort;

#[path = "../../fuzz/src/am/group.rs"]
mod group;
#[path = "../../fuzz/src/am/hello.rs"]
mod hello;
#[path = "../../fuzz/src/am/pack.rs"]
mod pack;

#[test]
fn the_messages_of_a_send_lie_within_it() {
    explore("am_pack", pack::am_pack, &sends());
}

#[test]
fn greetings_are_written_as_they_were_read() {
    explore("am_hello", hello::am_hello, &greetings());
}

#[test]
fn the_words_of_a_group_are_written_as_they_were_read() {
    explore("am_group", group::am_group, &words());
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
    let hello = |flags| [&b"AM\x05"[..], &[flags], &numbers.concat()].concat();
    let knock = [&b"AM\x05\x80"[..], &[3], &[5; 24]].concat();
    let challenge = [&b"AM\x05\x81"[..], &[3], &[5; 32]].concat();
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

/// Gives a body its seeds, their truncations and mutations, and names the input that fails.
fn explore(name: &str, body: fn(&[u8]), seeds: &[Vec<u8>]) {
    let artifacts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/artifacts").join(name);
    let attempt = |input: &[u8], origin: String| {
        let Err(panic) = panic::catch_unwind(|| body(input)) else { return };
        let file = artifacts.join(format!("cargo-test-{}", origin.replace([' ', ','], "-")));
        let kept = std::fs::create_dir_all(&artifacts).and_then(|()| std::fs::write(&file, input));
        let (len, file) = (input.len(), file.display());
        eprintln!(
            "\nbody `{name}` failed on {origin}: {len} bytes\n\
             kept ({kept:?}), to be replayed by: cargo +nightly fuzz run {name} {file}\n"
        );
        panic::resume_unwind(panic);
    };
    for file in std::fs::read_dir(&artifacts).into_iter().flatten() {
        let path = file.expect("a file").path();
        attempt(&std::fs::read(&path).expect("it can be read"), "artifact".to_owned());
    }
    for (number, seed) in seeds.iter().enumerate() {
        for len in 0..=seed.len() {
            attempt(&seed[..len], format!("seed {number}, truncated to {len}"));
        }
    }
    let mut random = Random(name.bytes().fold(0, |sum, byte| sum << 5 ^ u64::from(byte)));
    for iteration in 0..effort(20_000, 400_000) {
        let number = random.below(seeds.len());
        let mut input = seeds[number].clone();
        for _ in 0..=random.below(4) {
            mutate(&mut input, seeds, &mut random);
        }
        attempt(&input, format!("seed {number}, iteration {iteration}"));
    }
}

/// Changes an input in one way.
fn mutate(input: &mut Vec<u8>, seeds: &[Vec<u8>], random: &mut Random) {
    let at = random.below(input.len().max(1));
    match random.below(5) {
        _ if input.is_empty() => input.extend(random.next().to_le_bytes()),
        0 => input[at] ^= 1 << random.below(8),
        1 => input[at] = random.next() as u8,
        2 => input.truncate(at),
        3 => {
            let number = [0, 1, 31, 64, u64::MAX / 8, u64::MAX, 1 << 21][random.below(7)];
            input.iter_mut().skip(at).zip(number.to_le_bytes()).for_each(|(to, from)| *to = from);
        }
        _ => {
            let other = &seeds[random.below(seeds.len())];
            input.truncate(at);
            input.extend(&other[random.below(other.len() + 1)..]);
        }
    }
}

/// The random number generator Splitmix64, which gives the same numbers on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}
