//! Streams that outlive the runtime in which their endpoint was opened.

use std::future::poll_fn;
use std::io::ErrorKind;
use std::pin::pin;
use std::task::Poll;

use doorbell_bytestream::{Endpoint, Stream};
use doorbell_kit::PATIENCE;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use crate::common::{Over, Runs, SERVICE, inline, nics, runtime};

/// Runs a future that must not hang.
fn run<F: Future>(runtime: &Runtime, future: F) -> F::Output {
    let bounded = runtime.block_on(async { tokio::time::timeout(PATIENCE, future).await });
    bounded.expect("it ends")
}

/// A runtime that has an endpoint, and a stream of that endpoint, for each end.
fn ends(over: Over) -> [(Runtime, Endpoint, Stream); 2] {
    let [near, far] = nics(over, &inline());
    let [asks, takes] = [0; 2].map(|_| runtime(Runs::MultiThread));
    let endpoint = |nic| async move { Endpoint::on(nic).await.expect("room") };
    let (near, far) = (asks.block_on(endpoint(&near)), takes.block_on(endpoint(&far)));
    let mut listener = run(&takes, far.listen(SERVICE)).expect("nobody else listens");
    let name = listener.name().clone();
    let asked = asks.spawn({
        let near = near.clone();
        async move { near.connect(&name).await }
    });
    let taken = run(&takes, listener.accept()).expect("a peer asks");
    let asked = run(&asks, asked).expect("nobody panics").expect("the peer listens");
    [(asks, near, asked), (takes, far, taken)]
}

/// More than a peer takes that does not read.
const MUCH: usize = 64 << 20;

/// Drives a future, and tells when it waits for the first time.
async fn once_it_waits<F: Future>(future: F, waits: mpsc::Sender<()>) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|context| {
        assert!(future.as_mut().poll(context).is_pending(), "it waits");
        Poll::Ready(())
    })
    .await;
    waits.send(()).await.expect("the test goes on");
    future.await
}

#[test]
fn both_ends_of_a_stream_are_told_that_the_runtime_of_one_has_ended() {
    for over in [Over::Shm, Over::Udp] {
        let [(ending, endpoint, stream), (_lasts, _far, peer)] = ends(over);
        let elsewhere = runtime(Runs::MultiThread);
        let (waiting, mut waits) = mpsc::channel(2);
        let (mut reads, mut writes) = stream.into_split();
        let (mut peer_reads, mut peer_writes) = peer.into_split();
        let told = waiting.clone();
        let reads = elsewhere.spawn(async move { once_it_waits(reads.read_u8(), told).await });
        let writes = elsewhere.spawn(async move {
            let much = vec![0; MUCH];
            once_it_waits(writes.write_all(&much), waiting).await
        });
        run(&elsewhere, async {
            waits.recv().await.expect("one waits");
            waits.recv().await.expect("both wait");
        });
        let peer = elsewhere.spawn(async move {
            let mut rest = Vec::new();
            let read = peer_reads.read_to_end(&mut rest).await;
            (read, peer_writes.write_all(&vec![0; MUCH]).await)
        });
        drop(ending);
        let own = [
            run(&elsewhere, reads).expect("nobody panics").expect_err("nothing was written"),
            run(&elsewhere, writes).expect("nobody panics").expect_err("it is too much"),
            run(&elsewhere, endpoint.connect("shm:nobody#1")).expect_err("nobody serves it"),
        ];
        for why in own {
            assert_eq!(why.kind(), ErrorKind::ConnectionAborted, "{why}");
            assert!(why.to_string().contains("the runtime has ended"), "{why}");
        }
        let (read, written) = run(&elsewhere, peer).expect("nobody panics");
        read.expect_err("the stream has no end");
        written.expect_err("nobody reads");
    }
}
