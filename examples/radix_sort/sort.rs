//! The parallel program: how the processes sort keys together, and the sequential program.

use doorbell::splitc::{Error, Spread, World};

use crate::spmd::Stopwatch;

/// How many bits of the keys a pass sorts by.
const BITS: u32 = 8;

/// How many values a digit of that many bits has.
const DIGITS: usize = 1 << BITS;

/// A number for each value of a digit.
type PerDigit = [u64; DIGITS];

/// Sorts the keys of all processes together, which are in `keys` in the beginning and in the end.
/// `other` is an array of the same length. A collective call: all processes await it.
pub async fn sort(
    world: &World,
    keys: &mut Spread<u32>,
    other: &mut Spread<u32>,
    watch: &mut Stopwatch,
) -> Result<(), Error> {
    let mut ordered = vec![0; keys.own_len()];
    for shift in (0..u32::BITS).step_by(BITS as usize) {
        pass(world, keys, other, shift, &mut ordered, watch).await?;
        std::mem::swap(keys, other);
    }
    // All stores of the last pass arrive.
    world.all_store_sync().await
}

/// Moves all keys of `from` to `to`, in the order of the digit that begins at bit `shift`. Keys
/// whose digits are equal stay in the order in which they are.
async fn pass(
    world: &World,
    from: &Spread<u32>,
    to: &Spread<u32>,
    shift: u32,
    ordered: &mut [u32],
    watch: &mut Stopwatch,
) -> Result<(), Error> {
    // All stores of the pass before have arrived when the private epoch begins.
    let own = from.private().await?;
    let counts = watch.compute(|| count(&own, shift));
    let before = world.exclusive_scan(counts, add).begin()?;
    let totals = world.all_reduce(counts, add).begin()?;
    watch.compute(|| order(&own, ordered, shift, &counts));
    drop(own);
    from.share().await?;
    let before = before.done().await?.unwrap_or([0; DIGITS]);
    let totals = totals.done().await?;

    let (mut sent, mut smaller) = (0, 0);
    for digit in 0..DIGITS {
        let count = counts[digit] as usize;
        // Equal digits of the processes before come first.
        let place = smaller + before[digit] as usize;
        store(world, to, place, &ordered[sent..sent + count])?;
        sent += count;
        smaller += totals[digit] as usize;
    }
    Ok(())
}

/// Stores keys to the elements of a blocked array from `place` on, by one store for each process
/// that has some of these elements.
fn store(world: &World, to: &Spread<u32>, place: usize, keys: &[u32]) -> Result<(), Error> {
    let block = to.len().div_ceil(world.size());
    let (mut place, mut keys) = (place, keys);
    while !keys.is_empty() {
        let (now, later) = keys.split_at(keys.len().min(block - place % block));
        world.span(to.pointer(place)?, now.len()).store(now)?;
        (place, keys) = (place + now.len(), later);
    }
    Ok(())
}

/// The value of the digit of a key that begins at bit `shift`.
fn digit(key: u32, shift: u32) -> usize {
    (key >> shift) as usize % DIGITS
}

/// How many keys have each value of a digit.
fn count(keys: &[u32], shift: u32) -> PerDigit {
    let mut counts = [0; DIGITS];
    keys.iter().for_each(|&key| counts[digit(key, shift)] += 1);
    counts
}

/// Copies keys in the order of a digit, whose values are counted already.
fn order(keys: &[u32], ordered: &mut [u32], shift: u32, counts: &PerDigit) {
    let mut next = [0; DIGITS];
    for value in 1..DIGITS {
        next[value] = next[value - 1] + counts[value - 1] as usize;
    }
    for &key in keys {
        let next = &mut next[digit(key, shift)];
        ordered[*next] = key;
        *next += 1;
    }
}

fn add(a: PerDigit, b: PerDigit) -> PerDigit {
    std::array::from_fn(|digit| a[digit] + b[digit])
}

/// Sorts keys as one process does by itself.
pub fn sort_alone(keys: &mut Vec<u32>) {
    let mut other = vec![0; keys.len()];
    for shift in (0..u32::BITS).step_by(BITS as usize) {
        let counts = count(keys, shift);
        order(keys, &mut other, shift, &counts);
        std::mem::swap(keys, &mut other);
    }
}
