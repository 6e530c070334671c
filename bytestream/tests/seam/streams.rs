//! Bytes in order, whole, both ways.

use std::io::{ErrorKind, IoSlice};
use std::time::Duration;

use doorbell_bytestream::{
    Config, Endpoint, Incoming, Listener, OwnedReadHalf, OwnedWriteHalf, Stream,
};
use doorbell_verbs::Nic;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use crate::common::{SERVICE, bytes, connected, endpoints, read_all};

pub async fn each_direction_ends_by_itself(nics: [Nic; 2]) {
    let (mut near, mut far) = connected(&endpoints(&nics, &Config::default()).await).await;
    near.write_all(b"a question").await.expect("the peer is there");
    near.shutdown().await.expect("the peer is there");
    let mut question = String::new();
    far.read_to_string(&mut question).await.expect("it ends");
    assert_eq!(question, "a question");
    let refused = near.write(b"more").await.expect_err("it was shut down");
    assert_eq!(refused.kind(), ErrorKind::BrokenPipe);
    assert!(refused.to_string().contains("was shut down"), "{refused}");

    for _ in 0..3 {
        far.write_all(b"an answer ").await.expect("the peer reads on");
    }
    far.shutdown().await.expect("the peer is there");
    let mut answer = String::new();
    near.read_to_string(&mut answer).await.expect("it ends");
    assert_eq!(answer, "an answer an answer an answer ");
    assert_eq!(near.read(&mut [0; 8]).await.expect("an end stays one"), 0);
    near.shutdown().await.expect("to do so again changes nothing");
}

/// Writes so many bytes in pieces of many lengths, and ends.
async fn write_all(mut stream: impl AsyncWrite + Unpin, direction: u8, all: usize) {
    let (mut at, mut number) = (0, 0);
    while at < all {
        let lengths = [1, 100_000, 64, 65, 1024, 32 << 10, 4097, 1 << 20];
        let len = lengths[number % lengths.len()].min(all - at);
        stream.write_all(&bytes(direction, at, len)).await.expect("the peer reads");
        (at, number) = (at + len, number + 1);
    }
    stream.shutdown().await.expect("the peer reads");
}

pub async fn megabytes_go_both_ways_at_once(nics: [Nic; 2]) {
    const ALL: usize = 6_000_000;
    let (near, far) = connected(&endpoints(&nics, &Config::default()).await).await;
    let ((near_reads, near_writes), (far_reads, far_writes)) =
        (near.into_split(), far.into_split());
    let tasks = [tokio::spawn(read_all(near_reads, 1)), tokio::spawn(read_all(far_reads, 2))];
    let writers =
        [tokio::spawn(write_all(near_writes, 2, ALL)), tokio::spawn(write_all(far_writes, 1, ALL))];
    for writer in writers {
        writer.await.expect("it does not fail");
    }
    for reader in tasks {
        assert_eq!(reader.await.expect("it does not fail"), ALL);
    }
}

pub async fn slices_that_are_written_together_arrive_in_a_row(nics: [Nic; 2]) {
    let (mut near, mut far) = connected(&endpoints(&nics, &Config::default()).await).await;
    assert!(near.is_write_vectored());
    for lengths in [&[1, 0, 2][..], &[60, 60, 60], &[0, 40_000, 1, 40_000], &[0, 0]] {
        let all: usize = lengths.iter().sum();
        let content = bytes(0, 0, all);
        let mut rest = &content[..];
        let mut parts = Vec::new();
        for len in lengths {
            let (part, behind) = rest.split_at(*len);
            parts.push(IoSlice::new(part));
            rest = behind;
        }
        let written = near.write_vectored(&parts).await.expect("the peer is there");
        assert_eq!(written, all, "an idle stream has room for all of it");
        let mut found = vec![0; all];
        far.read_exact(&mut found).await.expect("the peer is there");
        assert!(found == content);
    }
}

/// Gives up what does not come to an end at once.
async fn briefly<F: Future>(future: F) -> Option<F::Output> {
    timeout(Duration::ZERO, future).await.ok()
}

pub async fn a_read_or_write_that_is_given_up_loses_nothing(nics: [Nic; 2]) {
    const ALL: usize = 3_000_000;
    let (near, far) = connected(&endpoints(&nics, &Config::default()).await).await;
    let writes = async move {
        let (mut near, mut at) = (near, 0);
        while at < ALL {
            let piece = bytes(0, at, 200_000.min(ALL - at));
            match briefly(near.write(&piece)).await {
                Some(written) => at += written.expect("the peer reads"),
                None => tokio::task::yield_now().await,
            }
        }
        near
    };
    let reads = async move {
        let (mut far, mut at, mut buffer) = (far, 0, vec![0; 30_000]);
        while at < ALL {
            match briefly(far.read(&mut buffer)).await {
                Some(read) => {
                    let read = read.expect("the peer writes");
                    assert!(buffer[..read] == bytes(0, at, read), "at {at}");
                    at += read;
                }
                None => tokio::task::yield_now().await,
            }
        }
        far
    };
    let (near, far) = tokio::join!(tokio::spawn(writes), tokio::spawn(reads));
    let (_near, _far) = (near.expect("no failure"), far.expect("no failure"));
}

/// A long write waits for others if sends are under way, for the NIC goes on to it by itself when
/// they are done. Here they are done, and only the stream has not heard of that.
pub async fn what_is_written_arrives_without_a_flush(nics: [Nic; 2]) {
    let (mut near, mut far) = connected(&endpoints(&nics, &Config::default()).await).await;
    let before = nics[0].statistics().nic.completed;
    near.write_all(&bytes(0, 0, 65_536)).await.expect("the peer is there");
    // Two messages. No task of this thread runs meanwhile.
    while nics[0].statistics().nic.completed < before + 2 {
        nics.iter().for_each(|nic| _ = nic.turn());
    }
    near.write_all(&bytes(0, 65_536, 65_536)).await.expect("the peer is there");
    let mut found = vec![0; 2 * 65_536];
    far.read_exact(&mut found).await.expect("the peer writes");
    assert!(found == bytes(0, 0, found.len()));
}

pub async fn halves_go_to_tasks_of_their_own_and_come_together_again(nics: [Nic; 2]) {
    let (near, mut far) = connected(&endpoints(&nics, &Config::default()).await).await;
    let (mut reads, mut writes) = near.into_split();
    let writer = tokio::spawn(async move {
        writes.write_all(b"ping").await.expect("the peer is there");
        writes
    });
    let mut four = [0; 4];
    far.read_exact(&mut four).await.expect("the peer is there");
    far.write_all(b"pong").await.expect("the peer is there");
    reads.read_exact(&mut four).await.expect("the peer is there");
    assert_eq!(&four, b"pong");
    let writes = writer.await.expect("it does not fail");
    let mut near: Stream = reads.reunite(writes).expect("they are of one stream");

    let (mut reads, mut writes) = near.split();
    let mut last = Vec::new();
    let (written, read) = tokio::join!(writes.write_all(b"more"), async {
        far.write_all(b"the same").await?;
        let (_, writes) = far.into_split();
        drop(writes);
        reads.read_to_end(&mut last).await
    });
    written.expect("the peer is there");
    read.expect("half of the peer is there");
    assert_eq!(last, b"the same");
}

pub async fn many_streams_of_an_endpoint_do_not_mix(nics: [Nic; 2]) {
    const STREAMS: u8 = 20;
    let [near, far] = endpoints(&nics, &Config::default()).await;
    let mut listener = far.listen(SERVICE).await.expect("nobody else listens");
    let name = listener.name().clone();
    let serves = tokio::spawn(async move {
        for _ in 0..STREAMS {
            let stream = listener.accept().await.expect("a peer asks");
            tokio::spawn(async move {
                let (mut reads, mut writes) = stream.into_split();
                tokio::io::copy(&mut reads, &mut writes).await
            });
        }
        listener
    });
    let mut tasks = Vec::new();
    for number in 0..STREAMS {
        let stream = near.connect(&name).await.expect("the peer listens");
        assert_eq!(stream.peer_name(), name.to_string());
        tasks.push(tokio::spawn(async move {
            let (reads, writes) = stream.into_split();
            let all = 10_000 * usize::from(number);
            let written = tokio::spawn(write_all(writes, number, all));
            assert_eq!(read_all(reads, number).await, all);
            written.await.expect("it does not fail");
        }));
    }
    for task in tasks {
        task.await.expect("it does not fail");
    }
    drop(serves.await.expect("it does not fail"));
}

/// The bounds that a task needs which is given a stream, or a half of one.
#[test]
fn streams_and_their_halves_may_go_to_any_thread() {
    fn may_go<T: Send + Sync + Unpin + 'static>() {}
    may_go::<Stream>();
    may_go::<OwnedReadHalf>();
    may_go::<OwnedWriteHalf>();
    may_go::<Listener>();
    may_go::<Incoming>();
    may_go::<Endpoint>();
}
