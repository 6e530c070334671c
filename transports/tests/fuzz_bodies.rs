//! The body of the fuzz target `shm`, run briefly on inputs that are the same each time.
//!
//! An input that fails is kept in `fuzz/artifacts/shm`, as the fuzzer keeps its own, and whatever
//! lies there is tried first the next time: `fuzz/README.md` says how to replay one.

use std::panic;
use std::path::{Path, PathBuf};

use doorbell_kit::effort;

#[path = "../../fuzz/src/shm/mod.rs"]
mod body;

/// The random number generator Splitmix64, which gives the same numbers on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }
}

fn artifacts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/artifacts/shm")
}

/// Gives the body an input, and keeps the input if it fails.
fn attempt(input: &[u8], origin: &str) {
    let Err(panic) = panic::catch_unwind(|| body::shm(input)) else { return };
    let file = artifacts().join(format!("cargo-test-{origin}"));
    let kept = std::fs::create_dir_all(artifacts()).and_then(|()| std::fs::write(&file, input));
    let (len, file) = (input.len(), file.display());
    eprintln!(
        "\nbody `shm` failed on {origin}: {len} bytes\n\
         kept ({kept:?}), to be replayed by: cargo +nightly fuzz run shm {file}\n"
    );
    panic::resume_unwind(panic);
}

/// Messages of either kind of socket, and what is left when one is changed.
fn messages() -> Vec<Vec<u8>> {
    let lines = 256u32.to_le_bytes();
    let grant = [&[4][..], &7u128.to_le_bytes(), &64u64.to_le_bytes()].concat();
    let shares = [&[1, 1, 5][..], &9u64.to_le_bytes(), &3u64.to_le_bytes()].concat();
    let hello = [&[1, 3][..], &lines, b"job/0"].concat();
    let answer = [&[2, 0][..], &lines].concat();
    vec![hello, answer, vec![2, 5], vec![3], grant, vec![5], shares, vec![1, 2, 63]]
}

#[test]
fn nothing_that_a_peer_writes_breaks_a_link_s_other_end() {
    for file in std::fs::read_dir(artifacts()).into_iter().flatten() {
        let path = file.expect("a file").path();
        attempt(&std::fs::read(&path).expect("it can be read"), "artifact");
    }
    let mut random = Random(0x005E_ED0F);
    for (index, message) in messages().into_iter().enumerate() {
        assert!(is_message(&message), "{message:?}");
        for change in 0..256 {
            let mut changed = message.clone();
            if change > 0 {
                let at = random.next() as usize % changed.len();
                changed[at] = random.next() as u8;
                changed.truncate(1 + random.next() as usize % (2 * changed.len()));
            }
            attempt(&changed, &format!("message-{index}-{change}"));
        }
    }
    for iteration in 0..effort(300_000, 3_000_000) {
        let len = 1 + (random.next() % 400) as usize;
        let mut input = random.bytes(len);
        // Long rings take longer to make.
        if iteration % 50 != 0 {
            input[0] &= 0x7F;
        }
        attempt(&input, &format!("iteration-{iteration}"));
    }
}

/// Whether the body has something to read as a message in some bytes.
fn is_message(bytes: &[u8]) -> bool {
    use doorbell_transports::floor::{sharing_message_again, shm_message_again};
    shm_message_again(bytes).or_else(|| sharing_message_again(bytes)).is_some()
}
