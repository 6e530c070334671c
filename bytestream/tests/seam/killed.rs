//! A peer's process that is killed, or stopped.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use doorbell_bytestream::{Config, Endpoint, GivenUp, Stream, WhyGivenUp};
use doorbell_kit::child::{self, Child};
use doorbell_verbs::{Config as NicConfig, KeepAlive, Nic};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::common::{Over, Runs, SERVICE, inline, names, run};

fn config() -> NicConfig {
    let keep_alive = KeepAlive { idle: Duration::from_secs(2), busy: Duration::from_secs(1) };
    NicConfig { keep_alive, ..inline() }
}

async fn endpoint(device: &str) -> Endpoint {
    let nic = Nic::builder().config(config()).open(device).await.expect("nobody has it");
    Endpoint::on(&nic).await.expect("room")
}

/// Reads what comes, until it is killed.
fn serves(device: String) {
    run(Runs::MultiThread, move || async move {
        let mut listener =
            endpoint(&device).await.listen(SERVICE).await.expect("nobody else listens");
        child::tell(listener.name());
        loop {
            let mut stream: Stream = listener.accept().await.expect("a peer asks");
            tokio::spawn(async move { tokio::io::copy(&mut stream, &mut tokio::io::sink()).await });
        }
    });
}

fn kills(test: &'static str, over: Over) {
    if let Some(device) = child::part() {
        return serves(device);
    }
    run(Runs::MultiThread, move || async move {
        let [here, there] = names(over);
        let near = endpoint(&here).await;
        let mut child = Child::start(test, &there, None);
        let name = child.hear();
        let connect = || async { near.connect(&name).await.expect("it listens") };
        let (mut writer, mut reader) = (connect().await, connect().await);
        let (begun, has_begun) = tokio::sync::oneshot::channel();
        let writes = tokio::spawn(async move {
            writer.write_all(&[1; 100_000]).await.expect("it reads");
            let _ = begun.send(());
            loop {
                if let Err(why) = writer.write_all(&[1; 100_000]).await {
                    return why;
                }
            }
        });
        let reads = tokio::spawn(async move { reader.read(&mut [0; 8]).await });
        has_begun.await.expect("it does not fail");
        assert!(!child.kill().success());
        let killed = Instant::now();
        let expected = match over {
            Over::Shm => ErrorKind::ConnectionReset,
            _ => ErrorKind::TimedOut,
        };
        let why = writes.await.expect("it does not panic");
        assert_eq!(why.kind(), expected, "{why}");
        assert!(why.to_string().contains(&name), "{why}");
        let why = reads.await.expect("it does not panic").expect_err("nobody is there");
        assert_eq!(why.kind(), expected, "{why}");
        // Two seconds, and what a busy machine takes besides; half a minute unless configured.
        assert!(killed.elapsed() < Duration::from_secs(20), "{:?}", killed.elapsed());
    });
}

#[test]
fn over_shared_memory_a_peer_that_is_killed_resets_the_stream() {
    kills("killed::over_shared_memory_a_peer_that_is_killed_resets_the_stream", Over::Shm);
}

#[test]
fn over_udp_a_stream_to_a_peer_that_is_killed_times_out() {
    kills("killed::over_udp_a_stream_to_a_peer_that_is_killed_times_out", Over::Udp);
}

/// A stream that lingers does not wait for its peer for as long as the connection would last.
#[test]
fn a_stream_to_a_peer_that_is_stopped_is_closed_when_its_time_to_linger_is_over() {
    let test =
        "killed::a_stream_to_a_peer_that_is_stopped_is_closed_when_its_time_to_linger_is_over";
    if let Some(device) = child::part() {
        return serves(device);
    }
    run(Runs::MultiThread, move || async move {
        let [here, there] = names(Over::Udp);
        let keep_alive =
            KeepAlive { idle: Duration::from_secs(600), busy: Duration::from_secs(300) };
        let connect_timeout = Duration::from_millis(500);
        let nic = NicConfig { keep_alive, connect_timeout, ..inline() };
        let nic = Nic::builder().config(nic).open(&here).await.expect("any port will do");
        let config = Config { linger: Duration::from_millis(100), ..Config::default() };
        let near = Endpoint::builder().config(config.clone()).on(&nic).await.expect("room");
        let before = nic.statistics().objects;
        let mut child = Child::start(test, &there, None);
        let name = child.hear();
        let mut stream = near.connect(&name).await.expect("it listens");
        child.stop();
        stream.write_all(b"into the void").await.expect("there is room");
        drop(stream);
        // The test is given up long before the connection is.
        while nic.statistics().objects != before {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
}

#[test]
fn a_peer_that_is_stopped_is_named_by_the_error_of_closing_when_the_time_to_linger_is_over() {
    let test = "killed::a_peer_that_is_stopped_is_named_by_the_error_of_closing_when_the_time_to_linger_is_over";
    if let Some(device) = child::part() {
        return serves(device);
    }
    run(Runs::MultiThread, move || async move {
        let [here, there] = names(Over::Udp);
        let linger = Duration::from_millis(100);
        let near = Endpoint::builder().linger(linger).open(&here).await.expect("any port will do");
        let mut child = Child::start(test, &there, None);
        let name = child.hear();
        let mut stream = near.connect(&name).await.expect("it listens");
        child.stop();
        stream.write_all(b"into the void").await.expect("there is room");
        let why = near.close().await.expect_err("the peer takes nothing");
        let late = GivenUp { peer: name, why: WhyGivenUp::Late(linger) };
        assert_eq!((why.peers, &why.given_up[..]), (1, &[late][..]), "{why}");
    });
}

/// Without probes, a client that waited for an answer heard of the end of its server only after the
/// idle time, because nothing was under way.
#[test]
fn a_stream_that_waits_for_an_answer_notices_before_the_idle_time_that_its_peer_was_killed() {
    let test = "killed::a_stream_that_waits_for_an_answer_notices_before_the_idle_time_that_its_peer_was_killed";
    if let Some(device) = child::part() {
        return serves(device);
    }
    run(Runs::MultiThread, move || async move {
        let [here, there] = names(Over::Udp);
        // The test is given up long before that.
        let keep_alive = KeepAlive { idle: Duration::from_secs(600), ..config().keep_alive };
        let nic = Nic::builder()
            .config(NicConfig { keep_alive, ..inline() })
            .open(&here)
            .await
            .expect("any port");
        let near = Endpoint::on(&nic).await.expect("room");
        let mut child = Child::start(test, &there, None);
        let name = child.hear();
        let mut stream = near.connect(&name).await.expect("it listens");
        stream.write_all(b"a question").await.expect("the peer is there");
        // All is acknowledged when it is over.
        while nic.statistics().nic.completed == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert!(!child.kill().success());
        let why = stream.read(&mut [0; 8]).await.expect_err("nobody answers");
        assert_eq!(why.kind(), ErrorKind::TimedOut, "{why}");
    });
}
