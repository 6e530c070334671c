//! How streams end.

use std::io::ErrorKind;
use std::time::Duration;

use doorbell_bytestream::Config;
use doorbell_verbs::Nic;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::common::{
    Over, Runs, SERVICE, bytes, connected, endpoints, inline, names, read_all, run,
};

pub async fn a_stream_that_is_dropped_still_sends_what_was_written(nics: [Nic; 2]) {
    let ends = endpoints(&nics, &Config::default()).await;
    for len in [0, 1, 30_000, 900_000] {
        let (mut near, far) = connected(&ends).await;
        near.write_all(&bytes(0, 0, len)).await.expect("there is room");
        drop(near);
        assert_eq!(read_all(far, 0).await, len);
    }
}

pub async fn a_peer_that_has_dropped_its_stream_is_an_end_to_readers_and_a_broken_pipe_to_writers(
    nics: [Nic; 2],
) {
    let (near, mut far) = connected(&endpoints(&nics, &Config::default()).await).await;
    drop(near);
    assert_eq!(far.read(&mut [0; 8]).await.expect("it has ended the stream"), 0);
    let why = loop {
        // The first may be on their way before this end hears that the peer has gone.
        if let Err(why) = far.write_all(&[0; 1000]).await {
            break why;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(why.kind(), ErrorKind::BrokenPipe);
    assert!(why.to_string().contains("the peer has closed the connection"), "{why}");
}

/// One stream is held, with tasks that wait to read and to write, one is dropped, and one was not
/// accepted by the program.
pub async fn an_endpoint_that_is_closed_has_sent_all_that_was_written_and_opens_no_stream(
    nics: [Nic; 2],
) {
    let ends = endpoints(&nics, &Config::default()).await;
    let [near, far] = &ends;
    let (held, far_held) = connected(&ends).await;
    let (mut dropped, far_dropped) = connected(&ends).await;
    let mut listener = near.listen(SERVICE).await.expect("nobody else listens");
    let mut asks = far.connect(listener.name()).await.expect("it listens");
    dropped.write_all(&bytes(0, 0, 30_000)).await.expect("there is room");
    drop(dropped);
    let (mut reads, mut writes) = held.into_split();
    writes.write_all(&bytes(0, 0, 900_000)).await.expect("there is room");
    let writes = tokio::spawn(async move {
        // There is no room for all of it, and the peer reads nothing meanwhile.
        writes.write_all(&[0; 1 << 20]).await.expect_err("the endpoint is closed").kind()
    });
    let reads = tokio::spawn(async move {
        reads.read(&mut [0; 8]).await.expect_err("the endpoint is closed").kind()
    });
    tokio::task::yield_now().await;
    near.close().await.expect("the peer is there");
    assert_eq!(reads.await.expect("no panic"), ErrorKind::ConnectionAborted);
    assert_eq!(writes.await.expect("no panic"), ErrorKind::BrokenPipe);
    assert_eq!(read_all(far_dropped, 0).await, 30_000);
    let (mut far_held, mut first) = (far_held, vec![0; 900_000]);
    far_held.read_exact(&mut first).await.expect("all of it has come");
    assert!(first == bytes(0, 0, 900_000));
    assert_eq!(asks.read(&mut [0; 8]).await.expect("the stream has ended"), 0);
    let why = near.connect("shm:nobody/1#7").await.expect_err("the endpoint is closed");
    assert_eq!(why.kind(), ErrorKind::ConnectionAborted, "{why}");
    assert!(why.to_string().contains("the endpoint here has ended"), "{why}");
    let why = near.listen(SERVICE).await.expect_err("the endpoint is closed");
    assert_eq!(why.kind(), ErrorKind::ConnectionAborted, "{why}");
    // A stream that had come before may be accepted still.
    let why = loop {
        if let Err(why) = listener.accept().await {
            break why;
        }
    };
    assert_eq!(why.kind(), ErrorKind::ConnectionAborted, "{why}");
    nics[0].listen(SERVICE).await.expect("the service is free");
    near.close().await.expect("the outcome is the same");
}

pub async fn nothing_is_left_of_streams_that_are_dropped(nics: [Nic; 2]) {
    let ends = endpoints(&nics, &Config::default()).await;
    let before = nics.each_ref().map(|nic| nic.statistics().objects);
    let mut listener = ends[1].listen(SERVICE).await.expect("nobody else listens");
    let name = listener.name().clone();
    let mut streams = Vec::new();
    for number in 0..30 {
        let (asked, taken) = tokio::join!(ends[0].connect(&name), listener.accept());
        let (mut near, far) = (asked.expect("it listens"), taken.expect("a peer asks"));
        match number % 4 {
            0 => near.write_all(&[0; 1000]).await.expect("the peer is there"),
            1 => near.shutdown().await.expect("the peer is there"),
            2 => streams.push(far),
            _ => {}
        }
    }
    drop((streams, listener));
    while nics.each_ref().map(|nic| nic.statistics().objects) != before {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// After the runtime has ended, no task is left to send what was written, and nothing waits for
/// that.
#[test]
fn streams_that_outlive_their_runtime_are_dropped_and_the_device_is_free() {
    let [here, there] = names(Over::Shm);
    let device = here.clone();
    let streams = run(Runs::MultiThread, move || async move {
        let ends = [device, there].map(|name| {
            Nic::builder().config(inline()).open_blocking(&name).expect("nobody has it")
        });
        let (mut near, far) = connected(&endpoints(&ends, &Config::default()).await).await;
        near.write_all(b"too late").await.expect("the peer is there");
        (near, far)
    });
    drop(streams);
    Nic::builder().config(inline()).open_blocking(&here).expect("nobody has it any more");
}
