//! IS, integer sort: members rank small integers together, ten times. Each key goes to the member
//! that has its range of values.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use bytes::Bytes;
use doorbell_messages::collectives::{Group, GroupError, Links};

use super::nas::Class;
use super::problem::{ITERATIONS, Problem, TESTS};
use super::ranks::{Ranks, add_up};

/// Runs the kernel, checks the results, and returns how long ranking took.
pub async fn run<L: Links>(group: &Group<L>, class: Class) -> anyhow::Result<Duration> {
    let problem = Problem::new(class);
    let part = problem.part(group.rank(), group.size());
    let first = part.start;
    let mut keys = problem.make_keys(part);
    // The first time is not measured: caches are cold, and pages new.
    let (mut ranks, _, mut own) = rank(group, &problem, &keys, [0; TESTS]).await?;
    group.barrier().await?;
    let (start, mut passed) = (Instant::now(), 0);
    for iteration in 1..=ITERATIONS {
        problem.change_keys(&mut keys, first, iteration);
        let tested = problem.tested_keys(&keys, first);
        let of_all;
        (ranks, of_all, own) = rank(group, &problem, &keys, tested).await?;
        passed += ranks.test(&problem, of_all, iteration);
    }
    let time = start.elapsed();
    let passed = group.all_reduce(vec![passed], |a, b| a + b).await?[0];
    let tests = ITERATIONS * TESTS as u32;
    ensure!(passed == tests, "not verified: {passed} of {tests} tests of ranks passed");
    let in_order = is_in_order(group, ranks, &own).await?;
    ensure!(in_order, "not verified: the keys are not in order where their ranks say");
    Ok(time)
}

/// Ranks the keys of all members. Returns the ranks of the values in this member's range, the keys
/// that are tested, and all keys in the range.
async fn rank<L: Links>(
    group: &Group<L>,
    problem: &Problem,
    keys: &[u32],
    tested: [u32; TESTS],
) -> anyhow::Result<(Ranks, [u32; TESTS], Vec<u32>)> {
    let (rank, size, shift) = (group.rank(), group.size(), problem.bucket_shift());
    // The tested keys go behind the sizes of the buckets, which all members must learn.
    let mut own = vec![0_u32; problem.buckets()];
    keys.iter().for_each(|key| own[(key >> shift) as usize] += 1);
    let mut sums = own.clone();
    sums.extend(tested);
    let mut totals = group.all_reduce(sums, |a, b| a + b).await?;
    let tested = totals.split_off(own.len());
    let tested = tested.try_into().ok().context("as many as were given")?;
    let ends = division(&totals, size);
    let parts = parts(keys, &own, &ends, shift);
    let came = group.all_to_all(parts).await?;
    let [start, end] = [rank.checked_sub(1).map_or(0, |before| ends[before]), ends[rank]];
    let [first, behind] = [start, end].map(|bucket| (bucket as u32) << shift);
    let lesser = totals[..start].iter().sum();
    let (mut up_to, mut own) = (vec![0; (behind - first) as usize], Vec::new());
    for key in came.iter().flat_map(|came| came.as_chunks::<4>().0) {
        let key = u32::from_le_bytes(*key);
        own.push(key);
        let count = key.checked_sub(first).and_then(|place| up_to.get_mut(place as usize));
        *count.context("a key that belongs to another member")? += 1;
    }
    add_up(&mut up_to);
    Ok((Ranks { first, lesser, up_to }, tested, own))
}

/// Divides the buckets among the members, so that each has about as many keys. Returns the bucket
/// behind the last of each member.
fn division(totals: &[u32], size: usize) -> Vec<usize> {
    let keys: usize = totals.iter().map(|total| *total as usize).sum();
    let (mut ends, mut so_far) = (Vec::with_capacity(size), 0);
    for (bucket, total) in totals.iter().enumerate() {
        so_far += *total as usize;
        if ends.len() + 1 < size && so_far >= (ends.len() + 1) * keys / size {
            ends.push(bucket + 1);
        }
    }
    ends.resize(size, totals.len());
    ends
}

/// The keys for each member. `sizes` says how many keys are in each bucket.
fn parts(keys: &[u32], sizes: &[u32], ends: &[usize], shift: u32) -> Vec<Bytes> {
    let mut next = vec![0; sizes.len()];
    for bucket in 1..sizes.len() {
        next[bucket] = next[bucket - 1] + sizes[bucket - 1] as usize;
    }
    let mut ordered = vec![0; 4 * keys.len()];
    for key in keys {
        let place = &mut next[(key >> shift) as usize];
        ordered[4 * *place..][..4].copy_from_slice(&key.to_le_bytes());
        *place += 1;
    }
    let mut ordered = Bytes::from(ordered);
    let mut from = 0;
    let count = |end: &usize| {
        let keys: u32 = sizes[std::mem::replace(&mut from, *end)..*end].iter().sum();
        ordered.split_to(4 * keys as usize)
    };
    ends.iter().map(count).collect()
}

/// Moves the keys of each range to where their ranks say, and returns whether all are in order
/// then, which is the benchmark's full verification.
async fn is_in_order<L: Links>(
    group: &Group<L>,
    mut ranks: Ranks,
    keys: &[u32],
) -> Result<bool, GroupError> {
    let sorted = ranks.sort(keys);
    let last = sorted.as_deref().and_then(<[u32]>::last).copied().unwrap_or(0);
    let least = sorted.as_deref().and_then(<[u32]>::first).copied().unwrap_or(u32::MAX);
    let own = [keys.len() as u32, last].into_iter().flat_map(u32::to_le_bytes);
    let all = group.all_gather(own.collect()).await?;
    let word = |bytes: &Bytes, at: usize| {
        bytes.as_chunks::<4>().0.get(at).map_or(u32::MAX, |word| u32::from_le_bytes(*word))
    };
    let before = &all[..group.rank()];
    let in_order = sorted.is_some_and(|keys| keys.is_sorted())
        && before.iter().map(|of| word(of, 0)).sum::<u32>() == ranks.lesser
        && before.iter().all(|of| word(of, 1) <= least);
    Ok(group.all_reduce(vec![u8::from(in_order)], u8::min).await?[0] == 1)
}
