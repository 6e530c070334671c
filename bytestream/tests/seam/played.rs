//! Two ends that do what a seed says, against a model: the bytes that each direction has.

use std::future::poll_fn;
use std::io::IoSlice;
use std::pin::Pin;

use doorbell_bytestream::{Config, Stream};
use doorbell_kit::effort;
use doorbell_simulation::Luck;
use doorbell_verbs::Nic;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::common::{bytes, connected, endpoints};

/// How an end leaves off writing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Leaves {
    ByShutdown,
    ByDrop,
}

/// A length, mostly short.
fn length(luck: &mut Luck, most: u64) -> usize {
    let most = 1 << luck.below(most.ilog2().into());
    luck.below(most) as usize + 1
}

/// Writes pieces in one of several ways. How many bytes there were in all.
async fn writes(mut end: impl AsyncWrite + Unpin, direction: u8, mut luck: Luck) -> usize {
    let (pieces, mut at) = (luck.below(60), 0);
    for _ in 0..pieces {
        let len = length(&mut luck, 200_000);
        let piece = bytes(direction, at, len);
        match luck.below(4) {
            0 => {
                let (one, other) = piece.split_at(luck.below(len as u64) as usize);
                let parts = [IoSlice::new(one), IoSlice::new(other)];
                let written =
                    poll_fn(|context| Pin::new(&mut end).poll_write_vectored(context, &parts));
                at += written.await.expect("the peer reads");
            }
            1 => {
                let written = end.write(&piece).await.expect("the peer reads");
                assert!((1..=len).contains(&written));
                at += written;
            }
            2 => tokio::task::yield_now().await,
            _ => {
                end.write_all(&piece).await.expect("the peer reads");
                end.flush().await.expect("the peer reads");
                at += len;
            }
        }
    }
    let leaves = [Leaves::ByShutdown, Leaves::ByDrop][luck.below(2) as usize];
    if leaves == Leaves::ByShutdown {
        end.shutdown().await.expect("the peer reads");
    }
    at
}

/// Reads in pieces until the end, and checks each byte. How many there were.
async fn reads(mut end: impl AsyncRead + Unpin, direction: u8, mut luck: Luck) -> usize {
    let mut at = 0;
    loop {
        let mut buffer = vec![0; length(&mut luck, 100_000)];
        if luck.below(8) == 0 {
            tokio::task::yield_now().await;
        }
        let read = end.read(&mut buffer).await.expect("the peer writes, and ends in order");
        if read == 0 {
            return at;
        }
        assert!(buffer[..read] == bytes(direction, at, read), "at {at}");
        at += read;
    }
}

/// Has two ends do what a seed says.
pub async fn plays((near, far): (Stream, Stream), seed: u64) {
    let ((near_reads, near_writes), (far_reads, far_writes)) =
        (near.into_split(), far.into_split());
    let luck = |number| Luck::stream(seed, number);
    let there = tokio::spawn(writes(near_writes, 1, luck(0)));
    let back = tokio::spawn(writes(far_writes, 2, luck(1)));
    let arrives = tokio::spawn(reads(far_reads, 1, luck(2)));
    let returns = tokio::spawn(reads(near_reads, 2, luck(3)));
    let (there, arrives) = (there.await, arrives.await);
    assert_eq!(there.expect("no failure"), arrives.expect("no failure"), "seed {seed}");
    let (back, returns) = (back.await, returns.await);
    assert_eq!(back.expect("no failure"), returns.expect("no failure"), "seed {seed}");
}

/// A configuration as a seed says: windows shorter than a message and longer, segments short and
/// long.
pub fn config(seed: u64) -> Config {
    let mut luck = Luck::stream(seed, 9);
    let segment = [64, 1000, 4096, 32 << 10][luck.below(4) as usize];
    let windows = [64, segment, 2 * segment, 3 * segment + 17, 16 * segment, 40 * segment];
    let window = windows[luck.below(6) as usize];
    Config { segment, window, receives: [2, 8, 256][luck.below(3) as usize], ..Config::default() }
}

pub async fn two_ends_that_do_all_kinds_of_things_read_what_was_written(nics: [Nic; 2]) {
    for seed in 0..effort(3, 30) {
        // Each end has its own idea of windows and segments.
        let [near, _] = endpoints(&nics, &config(2 * seed)).await;
        let [_, far] = endpoints(&nics, &config(2 * seed + 1)).await;
        plays(connected(&[near, far]).await, seed).await;
    }
}
