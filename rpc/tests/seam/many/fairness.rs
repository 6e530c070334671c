//! A server whose places are all taken: idle clients give up theirs to newcomers, and notice nothing
//! of that.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use doorbell_kit::child::{self, Child};
use doorbell_rpc::{Channel, Client, Method, Router, Server, Status};
use doorbell_verbs::Config;
use tokio::sync::Semaphore;

use super::common::{LONG, runtime};

/// Notes a number, which must be new. The method is not idempotent.
const ONCE: Method<u64, u64> = Method::new("once");
/// Notes a number, which must be new, and then waits for a call of `RELEASE`.
const WAIT: Method<u64, u64> = Method::new("wait");
/// Has a call of `WAIT` answered.
const RELEASE: Method<u64, u64> = Method::new("release");

/// The queue pairs of the server, of which an eighth is kept free.
const QUEUE_PAIRS: usize = 1024;
/// The clients that one process tries to connect, more than there are places.
const ATTACKERS: usize = 1060;

fn router() -> Router {
    let seen = Arc::new(Mutex::new(HashSet::new()));
    let once = move |number| match seen.lock().expect("nobody panics").insert(number) {
        true => Ok(number),
        false => Err(Status::internal(format!("call {number} runs twice"))),
    };
    let released = Arc::new(Semaphore::new(0));
    let (once_here, once_there) = (once.clone(), once);
    let (waits, releases) = (released.clone(), released);
    Router::new()
        .unary(ONCE, move |request| std::future::ready(once_here(request.into_inner())))
        .unary(WAIT, move |request| {
            let (noted, waits) = (once_there(request.into_inner()), waits.clone());
            async move {
                waits.acquire().await.expect("it is never closed").forget();
                noted
            }
        })
        .unary(RELEASE, move |request| {
            releases.add_permits(1);
            std::future::ready(Ok(request.into_inner()))
        })
}

/// Serves with few places, and sweeps often, so that clients count as idle soon.
fn serves() {
    runtime().block_on(async {
        let nic = Config { queue_pairs: QUEUE_PAIRS, ..Config::default() };
        let server = Server::builder().add_service(router()).endpoint(|endpoint| endpoint.nic(nic));
        let server = server.sessions(1 << 16, Duration::from_millis(200));
        let server = server.open("udp:127.0.0.1:0").await.expect("it opens");
        child::tell(server.name());
        tokio::task::spawn_blocking(child::listen).await.expect("it waits for the end");
    });
}

async fn once(channel: &Channel, number: u64) -> Result<u64, Status> {
    let answer = Client::new(channel.clone()).unary(ONCE, number).await?;
    Ok(answer.into_inner())
}

/// Takes as many places as it gets, leaves them idle, and then calls by all of them.
fn attacks() {
    let name = child::listen().expect("the name of the server");
    runtime().block_on(async {
        let mut busy = Channel::builder().device("udp:127.0.0.1:0").connect(&*name).await;
        let busy = busy.as_mut().unwrap_or_else(|why| panic!("{why}"));
        let client = Client::new(busy.clone());
        let waits = tokio::spawn(async move { client.unary(WAIT, 0).await });
        let mut channels = Vec::new();
        for number in 1..=ATTACKERS as u64 {
            let channel = Channel::builder().device("udp:127.0.0.1:0");
            let channel = channel.connect_timeout(Duration::from_millis(300));
            if let Ok(channel) = channel.connect(&*name).await
                && once(&channel, number).await.is_ok()
            {
                channels.push((number, channel));
            }
        }
        child::tell(channels.len());
        tokio::task::spawn_blocking(child::listen).await.expect("it listens").expect("go on");
        for (number, channel) in &channels {
            let number = number + ATTACKERS as u64;
            let mut outcome = once(channel, number).await;
            // A server that is full of clients that are not idle turns others away for a moment.
            // A call that was not sent may be sent again by its caller.
            while outcome
                .as_ref()
                .is_err_and(|why| why.message().contains("there is no connection"))
            {
                outcome = once(channel, number).await;
            }
            assert_eq!(outcome.unwrap_or_else(|why| panic!("{number}: {why}")), number);
        }
        let released = Client::new(busy.clone()).unary(RELEASE, 1).await;
        released.unwrap_or_else(|why| panic!("{why}"));
        let answer = waits.await.expect("it does not panic");
        assert_eq!(answer.unwrap_or_else(|why| panic!("{why}")).into_inner(), 0);
    });
}

#[test]
fn idle_clients_give_up_their_places_to_newcomers_and_connect_again_when_they_call() {
    const NAME: &str = "many::fairness::idle_clients_give_up_their_places_to_newcomers_and_connect_again_when_they_call";
    match child::part().as_deref() {
        Some("server") => return serves(),
        Some("attacker") => return attacks(),
        _ => {}
    }
    let mut server = Child::start(NAME, "server", None);
    let name = server.hear();
    let mut attacker = Child::start(NAME, "attacker", None);
    attacker.say(&name);
    // Clients that got places later may have taken those of clients of the same host.
    println!("{} clients of one NIC got one of {QUEUE_PAIRS} places", attacker.hear());
    runtime().block_on(async {
        for (number, device) in ["udp:127.0.0.2:0", "udp:127.0.0.1:0"].into_iter().enumerate() {
            let channel = Channel::builder().device(device).connect_timeout(LONG);
            let channel = channel.connect(&*name).await;
            let channel = channel.unwrap_or_else(|why| panic!("from {device}: {why}"));
            let number = 1_000_000 + number as u64;
            let answer = once(&channel, number).await;
            assert_eq!(answer.unwrap_or_else(|why| panic!("from {device}: {why}")), number);
        }
    });
    attacker.say("call again");
    attacker.end();
    server.say("end");
    server.end();
}
