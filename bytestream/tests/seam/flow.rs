//! Back-pressure: writers wait for readers, within the window, which counts bytes.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use doorbell_bytestream::{Config, Stream};
use doorbell_verbs::Nic;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::common::{bytes, connected, endpoints, read_all};

/// Writes pieces of a length until the stream takes no more now, and a while after that. How much
/// it took.
async fn fill(stream: &mut Stream, len: usize) -> usize {
    let (mut at, mut refused) = (0, 0);
    while refused < 200 {
        let piece = bytes(0, at, len);
        let written = poll_fn(|context| {
            Poll::Ready(match Pin::new(&mut *stream).poll_write(context, &piece) {
                Poll::Ready(written) => Some(written.expect("the peer is there")),
                Poll::Pending => None,
            })
        });
        match written.await {
            Some(written) => (at, refused) = (at + written, 0),
            None => refused += 1,
        }
        tokio::task::yield_now().await;
    }
    at
}

pub async fn a_writer_waits_for_a_reader_that_does_not_read(nics: [Nic; 2]) {
    let config = Config { window: 256 << 10, segment: 16 << 10, ..Config::default() };
    let (mut near, far) = connected(&endpoints(&nics, &config).await).await;
    let taken = fill(&mut near, 10_000).await;
    assert_eq!(taken, config.window);
    let reads = tokio::spawn(read_all(far, 0));
    let rest = bytes(0, taken, 1_000_000);
    near.write_all(&rest).await.expect("the peer reads");
    near.shutdown().await.expect("the peer reads");
    assert_eq!(reads.await.expect("it does not fail"), taken + rest.len());
}

pub async fn two_ends_that_both_end_before_they_read_do_not_wait_for_each_other(nics: [Nic; 2]) {
    let (near, far) = connected(&endpoints(&nics, &Config::default()).await).await;
    let ends = |mut stream: Stream, direction| async move {
        // Less than the window, and so it is all on its way.
        stream.write_all(&bytes(direction, 0, 300_000)).await.expect("there is room");
        stream.shutdown().await.expect("the peer is there");
        stream
    };
    let (near, far) = tokio::join!(tokio::spawn(ends(near, 1)), tokio::spawn(ends(far, 2)));
    let (near, far) = (near.expect("no failure"), far.expect("no failure"));
    assert_eq!(tokio::join!(read_all(near, 2), read_all(far, 1)), (300_000, 300_000));
}

pub async fn a_window_is_as_many_bytes_as_it_says_whatever_the_length_of_writes(nics: [Nic; 2]) {
    let window = |window| Config { window, segment: 4096, ..Config::default() };
    for (config, len) in [
        (window(1), 10),
        (window(100), 7),
        (window(5_001), 1),
        (window(50_001), 4095),
        (window(50_001), 100_000),
        (Config::default(), 8 << 10),
    ] {
        let (mut near, mut far) = connected(&endpoints(&nics, &config).await).await;
        assert_eq!(fill(&mut near, len).await, config.window, "writes of {len} bytes");
        // However little is read, there is room for as much more, and for no more than that.
        for read in [1, config.window / 3 + 1, config.window] {
            far.read_exact(&mut vec![0; read]).await.expect("the peer has written");
            near.write_all(&vec![0; read]).await.expect("there is room");
            assert_eq!(fill(&mut near, len).await, 0, "beside {read} bytes");
        }
    }
}

/// What is asked, and what is answered.
fn request(number: usize) -> [u8; 20] {
    bytes(number as u8, number, 20).try_into().expect("as many")
}

/// Each of 32 messages held one of them, and the first that was written beyond waited without end.
pub async fn twenty_thousand_short_requests_are_written_before_the_first_is_read(nics: [Nic; 2]) {
    const REQUESTS: usize = 20_000;
    let (mut near, mut far) = connected(&endpoints(&nics, &Config::default()).await).await;
    for number in 0..REQUESTS {
        near.write_all(&request(number)).await.expect("there is room");
    }
    for number in 0..REQUESTS {
        let mut asked = [0; 20];
        far.read_exact(&mut asked).await.expect("the peer has written");
        assert_eq!(asked, request(number));
        far.write_all(&asked).await.expect("there is room");
    }
    for number in 0..REQUESTS {
        let mut answer = [0; 20];
        near.read_exact(&mut answer).await.expect("the peer has written");
        assert_eq!(answer, request(number));
    }
}

/// The echo reads no more once its own writes fill the window of a client that reads nothing. So
/// there is room for two windows: the one that is on its way back, and the one that waits.
pub async fn an_echo_by_copy_takes_two_windows_before_its_client_reads(nics: [Nic; 2]) {
    let config = Config::default();
    let (mut near, far) = connected(&endpoints(&nics, &config).await).await;
    let echo = tokio::spawn(async move {
        let (mut reads, mut writes) = far.into_split();
        let copied = tokio::io::copy(&mut reads, &mut writes).await;
        copied.expect("the peer writes, and reads in the end")
    });
    let mut at = 0;
    for _ in 0..3 {
        let sent = bytes(0, at, 2 * config.window);
        near.write_all(&sent).await.expect("there is room");
        let mut found = vec![0; sent.len()];
        near.read_exact(&mut found).await.expect("the peer has written");
        assert!(found == sent, "from {at} on");
        at += sent.len();
    }
    near.shutdown().await.expect("the peer reads");
    assert_eq!(echo.await.expect("it does not fail"), at as u64);
    assert_eq!(near.read(&mut [0; 8]).await.expect("it ends"), 0);
}

pub async fn short_writes_arrive_whole_before_the_end_of_their_stream(nics: [Nic; 2]) {
    const WRITES: usize = 2_000;
    let ends = endpoints(&nics, &Config::default()).await;
    for dropped in [false, true] {
        let (mut near, far) = connected(&ends).await;
        for number in 0..WRITES {
            near.write_all(&bytes(0, 10 * number, 10)).await.expect("there is room");
        }
        if !dropped {
            near.shutdown().await.expect("the peer is there");
        }
        drop(near);
        assert_eq!(read_all(far, 0).await, 10 * WRITES);
    }
}

/// No message tells of what was read but the answers themselves, and none waits for another.
pub async fn a_short_round_trip_is_one_message_each_way(nics: [Nic; 2]) {
    const ROUNDS: u64 = 300;
    let (mut near, mut far) = connected(&endpoints(&nics, &Config::default()).await).await;
    let completed = || nics.each_ref().map(|nic| nic.statistics().nic.completed);
    let before = completed();
    for _ in 0..ROUNDS {
        near.write_all(b"a question").await.expect("the peer is there");
        far.read_exact(&mut [0; 10]).await.expect("the peer writes");
        far.write_all(b"an answer").await.expect("the peer is there");
        near.read_exact(&mut [0; 9]).await.expect("the peer writes");
    }
    // A send and a receive for each.
    let expected = before.map(|before| before + 2 * ROUNDS);
    while std::iter::zip(completed(), expected).any(|(completed, expected)| completed < expected) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(completed(), expected);
}
