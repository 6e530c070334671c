//! The parallel program: how the processes sort keys together.

use doorbell::splitc::{Error, Spread, World};

use crate::spmd::{Random, Stopwatch};

/// How many of its keys each process shows the others. The more samples there are, the more equal
/// are the parts that are sorted in the end: with 2048 samples, a part differs from the average by
/// about 2 %.
const SAMPLES: usize = 2048;

/// Sorts the keys of all processes together. Returns an array that has them, and how many keys this
/// process's part of that array has.
///
/// All parts have equal room, with the keys at the beginning. The keys of a part are in ascending
/// order, and none is greater than a key of the next process's part. The order of `keys` changes.
/// `sorted` is the array that is returned, unless its parts have too little room: then it is
/// replaced by a larger one. A collective call: all processes await it.
pub async fn sort(
    world: &World,
    keys: &mut [u64],
    mut sorted: Spread<u64>,
    watch: &mut Stopwatch,
) -> Result<(Spread<u64>, usize), Error> {
    let samples = watch.compute(|| samples(keys, world.rank()));
    let samples = world.all_gather_vec(&samples).await?.concat();
    let parts = watch.compute(|| {
        let splitters = splitters(samples, world.size());
        let mut parts = Vec::with_capacity(world.size());
        split(keys, &splitters, &mut parts);
        parts
    });

    // How many keys each process sends to each.
    let counts: Vec<_> = parts.iter().map(|part| part.len()).collect();
    let counts = world.all_gather_vec(&counts).await?;
    let total = |to: usize| counts.iter().map(|counts| counts[to]).sum::<usize>();
    let largest = (0..world.size()).map(total).max().unwrap_or(0);
    if largest * world.size() > sorted.len() {
        sorted.free().await?;
        sorted = world.blocked(largest * world.size()).await?;
    }
    let room = sorted.len() / world.size();

    // In the part of each process, the keys of process 0 come first, then those of process 1.
    for (to, part) in parts.into_iter().enumerate().filter(|(_, part)| !part.is_empty()) {
        let before: usize = counts[..world.rank()].iter().map(|counts| counts[to]).sum();
        let place = sorted.pointer(to * room + before)?;
        world.span(place, part.len()).store(part)?;
    }
    let own = total(world.rank());
    // All stores of all processes have arrived when the private epoch begins.
    let mut private = sorted.private().await?;
    watch.compute(|| private[..own].sort_unstable());
    drop(private);
    sorted.share().await?;
    Ok((sorted, own))
}

/// Chooses samples of the keys at random, some perhaps twice. Without keys there are no samples.
fn samples(keys: &[u64], rank: usize) -> Vec<u64> {
    let mut random = Random::new(&[rank as u64]);
    let one = |_| keys[random.below(keys.len() as u64) as usize];
    if keys.is_empty() { Vec::new() } else { (0..SAMPLES).map(one).collect() }
}

/// Computes the splitters: the least key that belongs to each process, from the second process on.
/// All smaller keys belong to the first process.
fn splitters(mut samples: Vec<u64>, parts: usize) -> Vec<u64> {
    samples.sort_unstable();
    if samples.is_empty() {
        return vec![0; parts - 1];
    }
    (1..parts).map(|part| samples[part * samples.len() / parts]).collect()
}

/// Moves keys so that the keys between two splitters are side by side, and adds these pieces to
/// `parts` in ascending order.
fn split<'k>(keys: &'k mut [u64], splitters: &[u64], parts: &mut Vec<&'k mut [u64]>) {
    let middle = splitters.len() / 2;
    let Some(&splitter) = splitters.get(middle) else {
        parts.push(keys);
        return;
    };
    let count = partition(keys, splitter);
    let (below, others) = keys.split_at_mut(count);
    split(below, &splitters[..middle], parts);
    split(others, &splitters[middle + 1..], parts);
}

/// Moves the keys below `splitter` to the front, and returns how many there are.
///
/// There is no branch that depends on a key: on random keys the processor would guess half of these
/// branches wrong.
fn partition(keys: &mut [u64], splitter: u64) -> usize {
    let mut below = 0;
    for at in 0..keys.len() {
        let key = keys[at];
        keys.swap(at, below);
        below += usize::from(key < splitter);
    }
    below
}
