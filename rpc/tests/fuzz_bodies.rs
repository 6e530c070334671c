//! The body of the fuzz target `rpc`, run briefly on inputs that are the same each time.
//!
//! An input that fails is kept in `fuzz/artifacts/rpc`, as the fuzzer keeps its own, and whatever
//! lies there is tried first the next time: `fuzz/README.md` says how to replay one.

use std::panic;
use std::path::Path;

use doorbell_kit::effort;

#[path = "../../fuzz/src/rpc/mod.rs"]
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

    /// Makes `len` bytes, parts of which are often repeated, as the parts of a script are.
    fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes: Vec<u8> = (0..len).map(|_| self.next() as u8).collect();
        for _ in 0..self.next() % 8 {
            let [from, to] = [0; 2].map(|_| (self.next() % (len as u64 + 1)) as usize);
            let part = bytes[from..len.min(from + 24)].to_vec();
            let end = len.min(to + part.len());
            bytes[to..end].copy_from_slice(&part[..end - to]);
        }
        bytes
    }
}

/// Gives the body an input, and keeps the input if it fails.
fn attempt(input: &[u8], origin: &str) {
    let Err(panic) = panic::catch_unwind(|| body::rpc(input)) else { return };
    let artifacts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/artifacts/rpc");
    let file = artifacts.join(format!("cargo-test-{origin}"));
    let kept = std::fs::create_dir_all(&artifacts).and_then(|()| std::fs::write(&file, input));
    let (len, file) = (input.len(), file.display());
    eprintln!(
        "\nbody `rpc` failed on {origin}: {len} bytes\n\
         kept ({kept:?}), to be replayed by: cargo +nightly fuzz run rpc {file}\n"
    );
    panic::resume_unwind(panic);
}

#[test]
fn nothing_that_a_peer_sends_breaks_a_server_or_a_client() {
    let artifacts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/artifacts/rpc");
    for file in std::fs::read_dir(artifacts).into_iter().flatten() {
        let path = file.expect("a file").path();
        attempt(&std::fs::read(&path).expect("it can be read"), "artifact");
    }
    let mut random = Random(0x0DB_5EED);
    for iteration in 0..effort(300, 5000) {
        let len = 1 + (random.next() % 700) as usize;
        let mut input = random.bytes(len);
        input[0] = iteration as u8;
        attempt(&input, &format!("iteration-{iteration}"));
    }
}
