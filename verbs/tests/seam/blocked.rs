//! Tests of NICs whose tasks don't get to run, since code of the program blocks their threads.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use doorbell_verbs::{Buf, Config, Domain, Name, Nic, QueuePair, QueuePairConfig, RemoteMemory};

use crate::common::{
    Over, Runs, SERVICE, address, bounded, brief, buf, lent, names, runtime, sleepy,
};

/// Opens a NIC, and listens: returns the NIC's address by `tell`, and the queue pair of the peer
/// that connects.
async fn accepted(name: &str, config: Config, tell: mpsc::Sender<String>) -> (QueuePair, Domain) {
    let nic = Nic::builder().config(config).open(name).await.expect("nobody else has that name");
    let (domain, config) = (nic.domain(), QueuePairConfig::default());
    let mut listener = nic.listen(SERVICE).await.expect("nobody else listens");
    tell.send(address(&nic)).expect("the peer lives");
    let pair = domain.queue_pair(&config).expect("room");
    (
        pair.accept(listener.accept().await.expect("a request"), &[])
            .await
            .expect("the peer waits")
            .0,
        domain,
    )
}

/// Opens a NIC, and connects to a listener.
async fn asked(name: &str, config: Config, peer: &str) -> (QueuePair, Nic) {
    let nic = Nic::builder().config(config).open(name).await.expect("nobody else has that name");
    let pair = nic.domain().queue_pair(&QueuePairConfig::default()).expect("room");
    (pair.connect(Name::at(peer, SERVICE.0), &[]).await.expect("the peer listens").0, nic)
}

/// Writes to a peer's memory and reads it while the only thread of the peer's runtime is blocked.
fn serves_while_blocked(over: Over, config: Config) {
    bounded(move || {
        let ([near, far], peers) = (names(over), config.clone());
        let (tell, told) = mpsc::channel();
        let (lends, is_lent) = mpsc::channel::<RemoteMemory>();
        let (done, is_done) = mpsc::channel::<()>();
        let server = thread::spawn(move || {
            runtime(Runs::CurrentThread).expect("a runtime").block_on(async move {
                let (_pair, domain) = accepted(&far, peers, tell).await;
                let memory = lent(&domain);
                lends.send(memory.remote()).expect("the peer lives");
                is_done.recv().expect("the peer has not failed");
            });
        });
        runtime(Runs::CurrentThread).expect("a runtime").block_on(async move {
            let peer = told.recv().expect("the server has not failed");
            let (pair, _nic) = asked(&near, config, &peer).await;
            let memory = is_lent.recv().expect("the server has not failed");
            for round in 0..20 {
                pair.write(buf(round, 5_000), memory).await.expect("the NIC is run");
                let own = memory.at(0, 5_000).expect("within");
                let read = pair.read(Buf::with_capacity(5_000), own).await.expect("the NIC is run");
                assert!(read[..] == buf(round, 5_000)[..], "round {round}");
                // Behind a pause, the NIC of the blocked runtime sleeps.
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        });
        done.send(()).expect("the server is blocked");
        server.join().expect("the server does not fail");
    });
}

#[test]
fn a_peer_reads_and_writes_memory_while_the_thread_of_its_owner_is_blocked() {
    for over in [Over::Shm, Over::Udp] {
        serves_while_blocked(over, brief());
        serves_while_blocked(over, sleepy());
    }
}

/// The task that runs the NIC has yielded to its worker thread, and the next task on that thread
/// blocks it. The other worker goes on with the first task.
#[test]
fn a_task_that_waits_is_not_held_up_by_another_that_blocks_its_thread() {
    for over in [Over::Shm, Over::Udp] {
        bounded(move || {
            let [near, far] = names(over);
            let (tell, told) = mpsc::channel();
            let server = thread::spawn(move || {
                runtime(Runs::MultiThread).expect("a runtime").block_on(async move {
                    tokio::spawn(receives(far, tell)).await.expect("the server does not fail");
                });
            });
            runtime(Runs::CurrentThread).expect("a runtime").block_on(async move {
                let peer = told.recv().expect("the server has not failed");
                let (pair, _nic) = asked(&near, brief(), &peer).await;
                for _ in 0..ROUNDS {
                    pair.send_inline(b"block").await.expect("the server receives");
                    pair.recv(Buf::with_capacity(8)).await.expect("the server answers");
                    pair.send_inline(b"go on").await.expect("the server receives");
                    pair.recv(Buf::with_capacity(8)).await.expect("the server answers");
                }
            });
            server.join().expect("the server does not fail");
        });
    }
}

/// How often the server below has one of its two workers blocked.
const ROUNDS: usize = 10;

/// Receives two messages a round. Behind the first, a task blocks a worker until the second has
/// come.
async fn receives(name: String, tell: mpsc::Sender<String>) {
    let (pair, _domain) = accepted(&name, brief(), tell).await;
    for _ in 0..ROUNDS {
        pair.recv(Buf::with_capacity(8)).await.expect("the peer sends");
        let (done, is_done) = mpsc::channel::<()>();
        let blocks = tokio::spawn(async move { is_done.recv().expect("the message comes") });
        pair.send_inline(b"yes").await.expect("the peer receives");
        pair.recv(Buf::with_capacity(8)).await.expect("the peer sends");
        done.send(()).expect("the task waits");
        blocks.await.expect("it does not fail");
        pair.send_inline(b"yes").await.expect("the peer receives");
    }
}
