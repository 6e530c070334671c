//! Short runs of the bodies of fuzz targets, on inputs that are the same each time.

use std::panic;
use std::path::PathBuf;
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

use doorbell_simulation::Luck;

/// The longest input that is generated.
const LONGEST: u64 = 700;

/// The number of panics of this process, by any thread or task.
static PANICS: AtomicU64 = AtomicU64::new(0);

/// Gives the body of a fuzz target `count` inputs that are drawn from a seed, as
/// [`try_inputs`] does.
///
/// # Panics
/// As [`try_inputs`].
pub fn try_body(target: &str, body: fn(&[u8]), count: u64) {
    let mut luck = Luck::new(0x0DB_5EED);
    let inputs = (0..count).map(|number| {
        let len = 1 + luck.below(LONGEST) as usize;
        let mut input = bytes(&mut luck, len);
        // The first byte counts up, so that each of its choices is tried in turn.
        input[0] = number as u8;
        input
    });
    try_inputs(target, body, inputs);
}

/// Gives the body of a fuzz target seeds, each of their truncations, and `count` mutations of them
/// that are the same each time, as [`try_inputs`] does.
///
/// # Panics
/// When there is no seed, and as [`try_inputs`].
pub fn try_mutations(target: &str, body: fn(&[u8]), seeds: &[Vec<u8>], count: u64) {
    assert!(!seeds.is_empty(), "a body is given mutations of seeds");
    let cut = |seed: &Vec<u8>| (0..=seed.len()).map(|len| seed[..len].to_vec()).collect::<Vec<_>>();
    let truncated = seeds.iter().flat_map(cut);
    let mut luck = Luck::new(0x005E_ED0F);
    let mutated = (0..count).map(|_| {
        let mut input = seeds[luck.below(seeds.len() as u64) as usize].clone();
        for _ in 0..=luck.below(4) {
            mutate(&mut input, seeds, &mut luck);
        }
        input
    });
    try_inputs(target, body, truncated.chain(mutated));
}

/// Gives the body of a fuzz target the files in the target's folder of artifacts, and then the
/// inputs. An input that fails is kept there, as the fuzzer keeps its own: `fuzz/README.md` says
/// how to replay such an input.
///
/// # Panics
/// When the body panics, or anything else in the process does meanwhile, such as a task that nobody
/// awaits.
pub fn try_inputs(target: &str, body: fn(&[u8]), inputs: impl IntoIterator<Item = Vec<u8>>) {
    count_panics();
    for file in std::fs::read_dir(artifacts(target)).into_iter().flatten() {
        let path = file.expect("a file").path();
        attempt(target, body, &std::fs::read(&path).expect("it can be read"), "artifact");
    }
    for (number, input) in inputs.into_iter().enumerate() {
        attempt(target, body, &input, &format!("input-{number}"));
    }
}

/// Changes an input in one way.
fn mutate(input: &mut Vec<u8>, seeds: &[Vec<u8>], luck: &mut Luck) {
    let at = luck.below(input.len() as u64) as usize;
    match luck.below(5) {
        _ if input.is_empty() => input.extend(luck.draw().to_le_bytes()),
        0 => input[at] ^= 1 << luck.below(8),
        1 => input[at] = luck.draw() as u8,
        2 => input.truncate(at),
        3 => {
            // An extreme number, in a place that may hold a length.
            let extremes = [0, 1, 31, 64, u64::MAX / 8, u64::MAX, 1 << 21];
            let number = extremes[luck.below(extremes.len() as u64) as usize];
            input.iter_mut().skip(at).zip(number.to_le_bytes()).for_each(|(to, from)| *to = from);
        }
        _ => {
            let other = &seeds[luck.below(seeds.len() as u64) as usize];
            input.truncate(at);
            input.extend(&other[luck.below(other.len() as u64 + 1) as usize..]);
        }
    }
}

/// Makes `len` bytes, parts of which are often repeated, as the parts of a script are.
fn bytes(luck: &mut Luck, len: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..len).map(|_| luck.draw() as u8).collect();
    for _ in 0..luck.below(8) {
        let [from, to] = [0; 2].map(|_| luck.below(len as u64 + 1) as usize);
        let part = bytes[from..len.min(from + 24)].to_vec();
        let end = len.min(to + part.len());
        bytes[to..end].copy_from_slice(&part[..end - to]);
    }
    bytes
}

/// Gives the body an input, and keeps the input if it fails.
fn attempt(target: &str, body: fn(&[u8]), input: &[u8], origin: &str) {
    let before = PANICS.load(Ordering::SeqCst);
    let outcome = panic::catch_unwind(|| {
        body(input);
        assert_eq!(PANICS.load(Ordering::SeqCst), before, "something has panicked meanwhile");
    });
    let Err(why) = outcome else { return };
    let file = artifacts(target).join(format!("cargo-test-{origin}"));
    let kept =
        std::fs::create_dir_all(artifacts(target)).and_then(|()| std::fs::write(&file, input));
    let (len, file) = (input.len(), file.display());
    eprintln!(
        "\nbody `{target}` failed on {origin}: {len} bytes\n\
         kept ({kept:?}), to be replayed by: cargo +nightly fuzz run {target} {file}\n"
    );
    panic::resume_unwind(why);
}

fn artifacts(target: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/artifacts").join(target)
}

fn count_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let prints = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            PANICS.fetch_add(1, Ordering::SeqCst);
            prints(panic);
        }));
    });
}
