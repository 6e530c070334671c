//! The bodies of the fuzz targets of jobs, run briefly on inputs that are the same each time.
//!
//! An input that fails is kept in `fuzz/artifacts`, as the fuzzer keeps its own, and whatever lies
//! there is tried first the next time: `fuzz/README.md` says how to replay one.

use std::panic;
use std::path::Path;

use doorbell_job::Card;
use doorbell_kit::effort;

#[path = "../../fuzz/src/job/mod.rs"]
mod bodies;

#[test]
fn cards_are_read_as_they_were_written() {
    let card = Card::of_process().to_string();
    explore("job_card", bodies::card, effort(20_000, 200_000), |random| {
        let mut input = card.clone().into_bytes();
        for _ in 0..=random.next() % 4 {
            let at = random.next() as usize % input.len();
            input[at] = *b"%=% \n0fg\xe9\x00".get(random.next() as usize % 16).unwrap_or(&b'a');
        }
        input
    });
}

#[test]
fn nothing_that_a_launcher_says_breaks_a_process() {
    explore("job_launcher", bodies::launcher, effort(5_000, 50_000), |random| {
        let mut input = random.bytes(200);
        if random.next().is_multiple_of(4) {
            // The three answers that a process waits for, and then the rest.
            input.splice(..input.len().min(4), [20, 29, 30, 31]);
        }
        input
    });
}

#[test]
fn nothing_that_strangers_say_to_the_service_breaks_a_job() {
    explore("job_service", bodies::service, effort(150, 3_000), |random| random.bytes(400));
}

#[test]
fn nothing_that_is_said_in_place_of_the_service_breaks_a_process() {
    explore("job_process", bodies::process, effort(400, 5_000), |random| random.bytes(300));
}

/// Gives a body inputs that are drawn from a seed, and keeps the input that fails.
fn explore(name: &str, body: fn(&[u8]), iterations: usize, draw: impl Fn(&mut Random) -> Vec<u8>) {
    let artifacts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/artifacts").join(name);
    let attempt = |input: &[u8], origin: &str| {
        let Err(panic) = panic::catch_unwind(|| body(input)) else { return };
        let file = artifacts.join(format!("cargo-test-{origin}"));
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
        attempt(&std::fs::read(&path).expect("it can be read"), "artifact");
    }
    let mut random = Random(name.bytes().fold(0, |sum, byte| sum << 5 ^ u64::from(byte)));
    for iteration in 0..iterations {
        attempt(&draw(&mut random), &format!("iteration-{iteration}"));
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

    /// Makes at least one byte, and fewer than `most`.
    fn bytes(&mut self, most: u64) -> Vec<u8> {
        let len = 1 + self.next() % (most - 1);
        (0..len).map(|_| self.next() as u8).collect()
    }
}
