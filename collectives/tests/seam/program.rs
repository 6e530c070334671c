//! A program that runs every collective, and compares what each gives with a model. The tests of
//! crates that carry collectives run the program, too.

use bytes::Bytes;
use doorbell_collectives::{Communicator, Group, Linked, Links};

/// The lengths in bytes that the members give, around those from which other algorithms are used.
pub const LENGTHS: [usize; 8] = [0, 8, 1000, 4096, 16_384, 40_000, 70_000, 100_000];

/// The bytes that a member gives to the collective of a number. Every member can compute those of
/// the others.
fn given(rank: usize, number: u64, len: usize) -> Bytes {
    let seed = (rank as u64 + 1).wrapping_mul(0x9E37_79B9) ^ number.wrapping_mul(0x85EB_CA6B);
    (0..len as u64).map(|at| (seed ^ at.wrapping_mul(0xC2B2_AE35)).to_le_bytes()[1]).collect()
}

/// The part that a member gives to another, of a length that depends on both.
fn part(from: usize, to: usize, number: u64, len: usize) -> Bytes {
    given(from * 100 + to, number, len * (1 + (from + to) % 3) / 3)
}

/// Runs all collectives, and messages between neighbours.
pub async fn all<L: Links>(group: &Group<Linked<L>>, len: usize) {
    collectives(group, len).await;
    neighbours(group, len).await;
    by_tags(group, len).await;
}

/// Runs all collectives with `len` bytes for each member, each with every root.
pub async fn collectives<C: Communicator>(group: &Group<C>, len: usize) {
    let (rank, size) = (group.rank(), group.size());
    group.barrier().await.expect("all members are there");
    group.fence().await.expect("all members are there");
    for root in 0..size {
        rooted(group, root, len).await;
    }
    let number = size as u64;
    let all = group.all_gather(given(rank, number, len)).await.expect("all gather");
    assert!(all.iter().eq(&(0..size).map(|of| given(of, number, len)).collect::<Vec<_>>()));
    // Blocks of all lengths, some of which go by themselves.
    let length = |of: usize| len * (of % 3) / 2;
    let all = group.all_gather(given(rank, number, length(rank))).await.expect("all gather");
    assert!(all.iter().enumerate().all(|(of, bytes)| *bytes == given(of, number, length(of))));
    let parts = (0..size).map(|to| part(rank, to, number, len)).collect();
    let came = group.all_to_all(parts).await.expect("all send to all");
    assert!(came.iter().enumerate().all(|(from, came)| *came == part(from, rank, number, len)));
    reductions(group, len).await;
    scans(group, len).await;
    appended(group, len).await;
}

async fn rooted<C: Communicator>(group: &Group<C>, root: usize, len: usize) {
    let (rank, size, number) = (group.rank(), group.size(), root as u64);
    let own = given(rank, number, len);
    let bytes = group.broadcast(root, own.clone()).await.expect("the root broadcasts");
    assert!(bytes == given(root, number, len), "a broadcast from {root} of {size}");
    let gathered = group.gather(root, own).await.expect("the root gathers");
    match rank == root {
        true => {
            let expected = (0..size).map(|of| given(of, number, len));
            assert!(gathered.expect("this is the root").into_iter().eq(expected));
        }
        false => assert!(gathered.is_none()),
    }
    let parts = match rank == root {
        true => Some((0..size).map(|to| part(root, to, number, len)).collect()),
        false => None,
    };
    let came = group.scatter(root, parts).await.expect("the root scatters");
    assert!(came == part(root, rank, number, len), "a scatter from {root} of {size}");
}

/// The elements that a member gives to a reduction. As floating-point numbers, they give other sums
/// in another order.
fn numbers(rank: usize, len: usize) -> Vec<f64> {
    (0..len / 8).map(|at| 1.0 / (1 + rank * 7 + at % 13) as f64).collect()
}

/// Sides of an operator that is associative and not commutative: the left one's first, the right
/// one's last.
fn ends(left: u64, right: u64) -> u64 {
    left & 0xFFFF_FFFF | right & !0xFFFF_FFFF
}

async fn reductions<C: Communicator>(group: &Group<C>, len: usize) {
    let (rank, size) = (group.rank(), group.size());
    let add = |left: f64, right: f64| left + right;
    let sums = group.all_reduce(numbers(rank, len), add).await.expect("all add");
    for (at, sum) in sums.iter().enumerate() {
        let exact: f64 = (0..size).map(|of| numbers(of, 8 * (at % 13) + 8)[at % 13]).sum();
        assert!((sum - exact).abs() < 1e-9, "{sum} and {exact}, {size} members, {len} bytes");
    }
    let bits: Vec<u8> = sums.iter().flat_map(|sum| sum.to_le_bytes()).collect();
    let all = group.all_gather(bits.into()).await.expect("all gather");
    assert!(all.iter().all(|other| *other == all[0]), "all have the same bits");

    let words = |of: usize| vec![of as u64 | (of as u64) << 32; len / 8];
    let expected = vec![((size - 1) as u64) << 32; len / 8];
    let of_all = group.all_reduce(words(rank), ends).await.expect("all combine");
    assert_eq!(of_all, expected, "{size} members, {len} bytes");
    for root in 0..size {
        let at_root = group.reduce(root, words(rank), ends).await.expect("all combine");
        assert_eq!(at_root, (rank == root).then(|| expected.clone()), "{size} members, {len}");
    }
}

async fn scans<C: Communicator>(group: &Group<C>, len: usize) {
    let (rank, size) = (group.rank(), group.size());
    let words = |of: usize| vec![of as u64 | (of as u64) << 32; len / 8];
    let up_to = |last: usize| vec![(last as u64) << 32; len / 8];
    let all = group.scan(words(rank), ends).await.expect("all scan");
    assert_eq!(all, up_to(rank), "{size} members, {len} bytes");
    let before = group.exclusive_scan(words(rank), ends).await.expect("all scan");
    assert_eq!(before, rank.checked_sub(1).map(up_to), "{size} members, {len} bytes");
    assert_eq!(group.agree(&[7, len as u64]).await.expect("all agree"), None);
    let differs = (size > 1).then_some(1);
    assert_eq!(group.agree(&[7, rank as u64]).await.expect("all agree"), differs);
}

/// Combines bytes of different lengths by appending them.
async fn appended<C: Communicator>(group: &Group<C>, len: usize) {
    let (rank, size) = (group.rank(), group.size());
    let append = |left: &mut Vec<u8>, right: &[u8]| left.extend_from_slice(right);
    let own = |number| part(rank, rank, number, len);
    let joined = |upto: usize, number| -> Vec<u8> {
        (0..upto).flat_map(|of| part(of, of, number, len)).collect()
    };
    assert!(group.all_reduce_bytes(own(1), append).await.expect("all append") == joined(size, 1));
    assert!(group.scan_bytes(own(2), append).await.expect("all append") == joined(rank + 1, 2));
    let before = group.exclusive_scan_bytes(own(3), append).await.expect("all append");
    assert!(before.as_deref() == (rank > 0).then(|| joined(rank, 3)).as_deref());
    let root = size / 2;
    let at_root = group.reduce_bytes(root, own(4), append).await.expect("all append");
    assert!(at_root.as_deref() == (rank == root).then(|| joined(size, 4)).as_deref());
}

pub async fn neighbours<L: Links>(group: &Group<Linked<L>>, len: usize) {
    let (rank, size) = (group.rank(), group.size());
    let (next, last) = ((rank + 1) % size, (rank + size - 1) % size);
    let came = group.send_receive(next, last, 7, part(rank, next, 1, len)).await;
    assert!(came.expect("all send") == part(last, rank, 1, len));
    let line = [rank.checked_sub(1), Some(rank + 1).filter(|next| *next < size)];
    let messages = line.into_iter().flatten().map(|with| (with, part(rank, with, 2, len)));
    let came = group.exchange(8, messages.collect()).await.expect("all exchange");
    let expected = line.into_iter().flatten().map(|with| part(with, rank, 2, len));
    assert!(came.into_iter().eq(expected));
}

/// Sends messages by several tags, and receives them in another order.
async fn by_tags<L: Links>(group: &Group<Linked<L>>, len: usize) {
    let (rank, size) = (group.rank(), group.size());
    if rank + 1 == size && size > 1 {
        let sends = (0..10).map(|tag| group.send(0, tag, part(rank, 0, tag.into(), len)));
        for sent in futures_util::future::join_all(sends).await {
            sent.expect("it is sent");
        }
    }
    if rank == 0 && size > 1 {
        for tag in (0..10).rev() {
            let came = group.receive(size - 1, tag).await.expect("it was sent");
            assert!(came == part(size - 1, 0, tag.into(), len));
        }
    }
}
