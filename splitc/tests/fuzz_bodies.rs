//! The body of the fuzz target `splitc`, run briefly on inputs that are the same each time.
//!
//! An input that fails is kept in `fuzz/artifacts/splitc`, as the fuzzer keeps its own, and
//! whatever lies there is tried first the next time: `fuzz/README.md` says how to replay one.

use std::panic;
use std::path::Path;

use doorbell_kit::{Luck, effort};

#[path = "../../fuzz/src/splitc.rs"]
mod body;

/// Gives the body an input, and keeps the input if it fails.
fn attempt(input: &[u8], origin: &str) {
    let Err(panic) = panic::catch_unwind(|| body::splitc(input)) else { return };
    let artifacts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/artifacts/splitc");
    let file = artifacts.join(format!("cargo-test-{origin}"));
    let kept = std::fs::create_dir_all(&artifacts).and_then(|()| std::fs::write(&file, input));
    let (len, file) = (input.len(), file.display());
    eprintln!(
        "\nbody `splitc` failed on {origin}: {len} bytes\n\
         kept ({kept:?}), to be replayed by: cargo +nightly fuzz run splitc {file}\n"
    );
    panic::resume_unwind(panic);
}

#[test]
fn no_message_changes_what_a_process_keeps_for_itself() {
    let artifacts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/artifacts/splitc");
    for file in std::fs::read_dir(artifacts).into_iter().flatten() {
        let path = file.expect("a file").path();
        attempt(&std::fs::read(&path).expect("it can be read"), "artifact");
    }
    let mut luck = Luck::new(0x05E_1F1E5);
    for iteration in 0..effort(3000, 300_000) {
        let len = 1 + luck.below(2000);
        let input: Vec<u8> = (0..len).map(|_| luck.draw() as u8).collect();
        attempt(&input, &format!("iteration-{iteration}"));
    }
}
