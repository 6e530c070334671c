//! Back-pressure: writers wait for readers, within the window.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use doorbell_bytestream::{Config, Stream};
use doorbell_verbs::Nic;
use tokio::io::{AsyncWrite, AsyncWriteExt};

use crate::common::{bytes, connected, endpoints, read_all};

/// Writes until the stream takes no more now, and a while after that. How much it took.
async fn fill(stream: &mut Stream) -> usize {
    let (mut at, mut refused) = (0, 0);
    while refused < 2_000 {
        let piece = bytes(0, at, 10_000);
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
    let (mut near, far) = connected(&endpoints(&nics, &config)).await;
    let taken = fill(&mut near).await;
    // Each of sixteen messages is of 10,000 bytes, and the last few wait for company.
    assert!((12 * 10_000..=config.window).contains(&taken), "{taken} bytes");
    let reads = tokio::spawn(read_all(far, 0));
    let rest = bytes(0, taken, 1_000_000);
    near.write_all(&rest).await.expect("the peer reads");
    near.shutdown().await.expect("the peer reads");
    assert_eq!(reads.await.expect("it does not fail"), taken + rest.len());
}

pub async fn two_ends_that_both_end_before_they_read_do_not_wait_for_each_other(nics: [Nic; 2]) {
    let (near, far) = connected(&endpoints(&nics, &Config::default())).await;
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
