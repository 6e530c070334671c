//! Two processes, one of which is killed in the middle of traffic.

use std::sync::Arc;
use std::time::{Duration, Instant};

use doorbell_kit::child::{self, Child};
use doorbell_verbs::{
    Buf, Cause, Config, ConnectError, Domain, Ending, Failed, FailedWhy, Failure, KeepAlive, Name,
    Nic, QueuePair, Silence,
};

use tokio::task::JoinHandle;

use crate::common::{Over, Runs, SERVICE, address, brief, buf, lent, names, run};
use crate::errors::says;

fn config() -> Config {
    let keep_alive = KeepAlive { idle: Duration::from_secs(2), busy: Duration::from_secs(1) };
    Config { keep_alive, ..brief() }
}

/// How much longer a test may take on a loaded machine.
const LOADED: u32 = 8;

/// Receives messages until the process is killed.
fn serves(at: String) {
    run(Runs::MultiThread, move || async move {
        let nic = Nic::builder()
            .config(config())
            .open(&at)
            .await
            .expect("nobody has it, or nobody any more");
        let mut listener = nic.listen(SERVICE).await.expect("nobody else does");
        let domain = nic.domain();
        let memory = lent(&domain);
        child::tell(address(&nic));
        child::tell(memory.remote());
        loop {
            let pair = listener
                .accept()
                .await
                .expect("a request")
                .accept(&domain)
                .await
                .expect("it waits");
            tokio::spawn(async move {
                while pair.recv(Buf::with_capacity(64)).await.is_ok() {}
                pair.connection().ended().await;
            });
        }
    });
}

async fn connect(domain: &Domain, to: &str) -> QueuePair {
    domain
        .connect(Name::at(to, SERVICE.0))
        .await
        .expect("it is there, and nothing of one that was killed bars it")
}

/// Sends, writes and reads until a request fails.
async fn streams(
    pair: Arc<QueuePair>,
    memory: doorbell_verbs::RemoteMemory,
    which: usize,
) -> Failed {
    for number in 0.. {
        let done = match which % 3 {
            0 => pair.send(buf(number, 64)).await.map(drop),
            1 => pair.write(buf(number, 20_000), memory).await.map(drop),
            _ => pair.read(Buf::with_capacity(20_000), memory).await.map(drop),
        };
        if let Err(failed) = done {
            return failed;
        }
    }
    unreachable!("it fails before the numbers end")
}

/// Returns whether the cause is the silence or the end of a peer's host.
fn is_gone(why: Cause) -> bool {
    matches!(
        why,
        Cause::NoAnswer { .. }
            | Cause::NoProgress { .. }
            | Cause::PeerSilent { .. }
            | Cause::LinkGone
    )
}

fn kills(test: &'static str, over: Over) {
    if let Some(at) = child::part() {
        return serves(at);
    }
    run(Runs::MultiThread, move || async move {
        let [here, there] = match over {
            Over::Shm => names(over),
            _ => ["udp:127.0.0.1:0".to_owned(), "udp:127.0.0.3:0".to_owned()],
        };
        let nic = Nic::builder().config(config()).open(&here).await.expect("nobody else has it");
        let objects = nic.statistics().objects;
        let domain = nic.domain();
        let mut at = there;
        for _ in 0..2 {
            let mut child = Child::start(test, &at, None);
            let to = child.hear();
            let memory = child.hear().parse().expect("it tells its memory");
            // The next one is where this one was.
            at = to.clone();
            let pairs = [connect(&domain, &to).await, connect(&domain, &to).await].map(Arc::new);
            let idle = connect(&domain, &to).await;
            let tasks: Vec<_> = (0..60)
                .map(|task| tokio::spawn(streams(pairs[task % 2].clone(), memory, task)))
                .collect();
            let before = nic.statistics().nic.completed;
            while nic.statistics().nic.completed < before + 500 {
                assert!(!tasks.iter().all(JoinHandle::is_finished), "{:?}", nic.statistics());
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            assert!(!child.kill().success());
            let killed = Instant::now();
            // The end of one with requests under way, and of one without, is noticed in that time.
            let KeepAlive { busy, idle: rest } = config().keep_alive;
            for task in tasks {
                let failed = task.await.expect("it does not panic");
                let FailedWhy::Carried(Failure::Broke(why) | Failure::Flushed(why)) = failed.why()
                else {
                    // What is posted after the end is refused.
                    assert!(matches!(failed.why(), FailedWhy::Refused(_)), "{failed}");
                    continue;
                };
                assert!(is_gone(why), "{failed}");
            }
            let took = killed.elapsed();
            assert!(took < busy * LOADED, "{took:?} until the last was told");
            // Who waits for nothing but messages is told, too.
            let failed = idle.recv(Buf::with_capacity(8)).await.expect_err("nobody is there");
            let took = killed.elapsed();
            assert!(took < rest * LOADED, "{took:?} until who is idle was told");
            assert!(
                matches!(failed.ending(), Some(Ending::Broken(why)) if is_gone(*why)),
                "{failed}"
            );
            drop((pairs, idle));
        }
        while nic.statistics().objects != objects {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
}

#[test]
fn over_shared_memory_a_killed_peer_is_noticed_and_can_come_back() {
    let test = "killed::over_shared_memory_a_killed_peer_is_noticed_and_can_come_back";
    kills(test, Over::Shm);
}

#[test]
fn over_udp_a_killed_peer_is_noticed_and_can_come_back() {
    kills("killed::over_udp_a_killed_peer_is_noticed_and_can_come_back", Over::Udp);
}

/// Regression test for a bug: nothing was under way, and the end of the peer was noticed only after
/// the idle time of half a minute.
#[test]
fn a_probe_soon_notices_a_peer_that_was_killed_while_nothing_was_under_way() {
    let test = "killed::a_probe_soon_notices_a_peer_that_was_killed_while_nothing_was_under_way";
    if let Some(at) = child::part() {
        return serves(at);
    }
    run(Runs::MultiThread, move || async move {
        let nic =
            Nic::builder().config(brief()).open("udp:127.0.0.1:0").await.expect("any port will do");
        let mut child = Child::start(test, "udp:127.0.0.4:0", None);
        let to = child.hear();
        let pair = connect(&nic.domain(), &to).await;
        pair.send(buf(0, 64)).await.expect("the peer is there");
        pair.connection().probe();
        assert!(!child.kill().success());
        let killed = Instant::now();
        let ending = loop {
            let soon = Duration::from_millis(500);
            match tokio::time::timeout(soon, pair.connection().ended()).await {
                Ok(ending) => break ending,
                Err(_) => pair.connection().probe(),
            }
        };
        let failed = pair.send(buf(1, 64)).await.expect_err("it is over");
        // Long before the five seconds that a peer may be silent: its system says that it is gone.
        let limit =
            "silent for 500 ms since the system of its host said that nobody is at its port";
        let peer = to.trim_start_matches("udp:");
        says(&failed, &[&format!("connection to {peer}: "), limit]);
        assert_eq!(
            ending,
            Ending::Broken(Cause::PeerSilent { millis: 500, limit: Silence::Closed })
        );
        let took = killed.elapsed();
        assert!(took < Duration::from_secs(15), "{took:?}");
    });
}

/// With a busy time of one second a healthy peer that a quota, or the migration of its machine, had
/// stopped for some seconds lost its connections.
#[test]
fn over_udp_a_peer_that_is_stopped_for_three_seconds_keeps_its_connections_by_default() {
    let test = "killed::over_udp_a_peer_that_is_stopped_for_three_seconds_keeps_its_connections_by_default";
    if let Some(at) = child::part() {
        return serves(at);
    }
    run(Runs::MultiThread, move || async move {
        let nic =
            Nic::builder().config(brief()).open("udp:127.0.0.1:0").await.expect("any port will do");
        let mut child = Child::start(test, "udp:127.0.0.5:0", None);
        let to = child.hear();
        let pair = Arc::new(connect(&nic.domain(), &to).await);
        pair.send(buf(0, 64)).await.expect("the peer is there");
        child.stop();
        let sends = tokio::spawn({
            let pair = pair.clone();
            async move { pair.send(buf(1, 64)).await }
        });
        for _ in 0..6 {
            pair.connection().probe();
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        child.resume();
        sends.await.expect("it does not panic").expect("the peer goes on");
        assert_eq!(nic.statistics().nic.closed_ports, 0);
    });
}

// The request was waited for until `connect_timeout`, since nothing came from a peer that was gone.
#[test]
fn over_shm_a_connection_that_a_peer_was_asked_for_fails_when_the_peer_is_killed() {
    let test =
        "killed::over_shm_a_connection_that_a_peer_was_asked_for_fails_when_the_peer_is_killed";
    if let Some(at) = child::part() {
        return run(Runs::MultiThread, move || async move {
            let nic = Nic::builder().config(brief()).open(&at).await.expect("nobody else has it");
            let mut listener = nic.listen(SERVICE).await.expect("nobody else does");
            child::tell(address(&nic));
            let _undecided = listener.accept().await.expect("a request");
            child::tell("asked");
            std::future::pending::<()>().await;
        });
    }
    run(Runs::MultiThread, move || async move {
        let [here, there] = names(Over::Shm);
        let long = Duration::from_secs(600);
        let patient = Config { connect_timeout: long, accept_timeout: long, ..brief() };
        let nic = Nic::builder().config(patient).open(&here).await.expect("nobody else has it");
        let mut child = Child::start(test, &there, None);
        let to = child.hear();
        let domain = nic.domain();
        let asks =
            tokio::spawn(async move { domain.connect(Name::at(&*to, SERVICE.0)).await.map(drop) });
        assert_eq!(child.hear(), "asked");
        assert!(!child.kill().success());
        let failed = asks.await.expect("it does not panic").expect_err("nobody is there");
        assert!(matches!(failed, ConnectError::PeerLeft { .. }), "{failed}");
    });
}
