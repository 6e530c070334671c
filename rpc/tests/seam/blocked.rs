//! A handler that blocks its worker thread: calls of other clients are answered by the other
//! workers, and no connection ends, even where there is no other worker.

use std::sync::{Condvar, Mutex};
use std::time::Duration;

use doorbell_kit::child::{self, Child};
use doorbell_rpc::{Channel, Client, Method, Router, Server};
use tokio::runtime::{Builder, Runtime};

const ECHO: Method<u64, u64> = Method::new("blocked/echo");
/// Blocks its worker thread until [`RELEASE`] is called.
const BLOCK: Method<u64, ()> = Method::new("blocked/block");
const RELEASE: Method<u64, ()> = Method::new("blocked/release");
/// Blocks its worker thread for a number of milliseconds.
const SLEEP: Method<u64, ()> = Method::new("blocked/sleep");

/// The clients, each with a connection of its own.
const CLIENTS: u64 = 4;
/// The calls of each client during a block.
const CALLS: u64 = 50;
const ROUNDS: u64 = 4;
/// The deadline of each call.
const LONG: Duration = Duration::from_secs(60);

fn runtime(workers: usize) -> Runtime {
    let built = match workers {
        1 => Builder::new_current_thread().enable_all().build(),
        _ => Builder::new_multi_thread().worker_threads(workers).enable_all().build(),
    };
    built.expect("threads can be started")
}

static RELEASED: (Mutex<u64>, Condvar) = (Mutex::new(0), Condvar::new());

fn block(round: u64) {
    let released = RELEASED.0.lock().expect("no holder panics");
    drop(RELEASED.1.wait_while(released, |released| *released < round));
}

fn release(round: u64) {
    *RELEASED.0.lock().expect("no holder panics") = round;
    RELEASED.1.notify_all();
}

/// The server's process: `part` is the count of workers and the device.
fn serves(part: &str) {
    let (workers, device) = part.split_once(' ').expect("workers and device");
    runtime(workers.parse().expect("a number")).block_on(async {
        let router = Router::new()
            .unary(ECHO, async |request| Ok(request.into_inner()))
            .unary(BLOCK, async |request| {
                block(request.into_inner());
                Ok(())
            })
            .unary(RELEASE, async |request| {
                release(request.into_inner());
                Ok(())
            })
            .unary(SLEEP, async |request| {
                std::thread::sleep(Duration::from_millis(request.into_inner()));
                Ok(())
            });
        let server = Server::builder().add_service(router).open(device).await.expect("a device");
        child::tell(server.name());
        std::future::pending::<()>().await;
    });
}

async fn clients(server: &str) -> Vec<Client<Channel>> {
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let channel = Channel::builder().timeout(LONG).connect(server).await;
        clients.push(Client::new(channel.expect("the server is there")));
    }
    clients
}

/// Has each client make calls in turn, and returns when all are answered.
async fn all_are_answered(clients: &[Client<Channel>]) {
    let tasks = clients.iter().cloned().map(|client| {
        tokio::spawn(async move {
            for number in 0..CALLS {
                let answer = client.unary(ECHO, number).await;
                assert_eq!(answer.expect("an answer").into_inner(), number);
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.expect("all calls are answered");
    }
}

fn others_are_answered(test: &str, device: &str) {
    if let Some(part) = child::part() {
        return serves(&part);
    }
    let mut server = Child::start(test, &format!("2 {device}"), None);
    let name = server.hear();
    runtime(2).block_on(async {
        let (blocker, others) = (clients(&name).await, clients(&name).await);
        for round in 1..=ROUNDS {
            let client = blocker[0].clone();
            let blocks = tokio::spawn(async move { client.unary(BLOCK, round).await });
            all_are_answered(&others).await;
            others[0].unary(RELEASE, round).await.expect("another worker runs it");
            blocks.await.expect("no panic").expect("the handler goes on");
        }
    });
    let _ = server.kill();
}

#[test]
fn over_shared_memory_other_clients_are_answered_while_a_handler_blocks_a_worker() {
    let test =
        "blocked::over_shared_memory_other_clients_are_answered_while_a_handler_blocks_a_worker";
    others_are_answered(test, "shm");
}

#[test]
fn over_sockets_other_clients_are_answered_while_a_handler_blocks_a_worker() {
    let test = "blocked::over_sockets_other_clients_are_answered_while_a_handler_blocks_a_worker";
    others_are_answered(test, "udp:127.0.0.1:0");
}

fn all_are_answered_afterwards(test: &str, device: &str) {
    if let Some(part) = child::part() {
        return serves(&part);
    }
    let mut server = Child::start(test, &format!("1 {device}"), None);
    let name = server.hear();
    runtime(2).block_on(async {
        let clients = clients(&name).await;
        let sleeps = clients[0].unary(SLEEP, BLOCKED);
        let (slept, ()) = tokio::join!(sleeps, all_are_answered(&clients[1..]));
        slept.expect("the handler goes on");
    });
    let _ = server.kill();
}

/// How long the only worker of a server is blocked, in milliseconds: longer than a connection lives
/// whose peer is silent.
const BLOCKED: u64 = 8_000;

#[test]
fn over_shared_memory_all_are_answered_after_the_only_worker_was_blocked() {
    let test = "blocked::over_shared_memory_all_are_answered_after_the_only_worker_was_blocked";
    all_are_answered_afterwards(test, "shm");
}

#[test]
fn over_sockets_all_are_answered_after_the_only_worker_was_blocked() {
    let test = "blocked::over_sockets_all_are_answered_after_the_only_worker_was_blocked";
    all_are_answered_afterwards(test, "udp:127.0.0.1:0");
}
