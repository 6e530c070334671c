//! Servers that die or stop, as their clients see it.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use doorbell_kit::child::{self, Child};
use doorbell_rpc::{Channel, ChannelBuilder, Client, Code, Request, Status};
use doorbell_verbs::{Config, KeepAlive};
use tokio::time::timeout;

use crate::peers::common::{
    ENDLESS, FOREVER, FOREVER_AGAIN, KEEP_ALIVE, LONG, NOTE, NOTED, Over, after, client, serves,
};

/// A channel that does not wait long for another server.
fn brief() -> ChannelBuilder {
    Channel::builder().connect_timeout(Duration::from_millis(300))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Killed,
    Stopped,
}

/// Has a server's process end while a call and a stream wait for it, and checks what they are told.
async fn ends(test: &str, over: Over, end: End, channel: ChannelBuilder, told: &str) {
    let device = over.fixed();
    if let Some(device) = child::part() {
        serves(&device).await;
    }
    let mut child = Child::start(test, &device, None);
    let name = child.hear();
    let client = client(channel, &name).await;
    let mut endless = client.server_streaming(ENDLESS, ()).await.expect("it streams").into_inner();
    assert_eq!(endless.message().await.expect("it streams"), Some(0));
    let waits = [FOREVER, FOREVER_AGAIN].map(|method| {
        let client = client.clone();
        tokio::spawn(async move { client.unary(method, ()).await })
    });
    // What was sent is acknowledged when this is answered: nothing but answers is waited for.
    client.unary(NOTED, ()).await.expect("an answer");
    match end {
        End::Killed => assert!(!child.kill().success()),
        End::Stopped => child.stop(),
    }
    let ended = Instant::now();
    let status = timeout(LONG, endless.message()).await.expect("the stream ends");
    let mut told_all = vec![status.expect_err("nobody streams")];
    for waits in waits {
        let status = timeout(LONG, waits).await.expect("the call ends").expect("no panic");
        told_all.push(status.expect_err("nobody answers"));
    }
    println!("{over:?}: told after {:?}: {told_all:#?}", ended.elapsed());
    for status in told_all {
        assert_eq!(status.code(), Code::Unavailable, "{status}");
        assert!(status.message().contains(&name), "{status}");
        assert!(status.message().contains(told), "{status}");
        says_each_thing_once(&status, &name);
    }
    if over == Over::Udp {
        // A server is asked after half of the time that it may be silent, and may have been heard
        // at any moment before that.
        after(ended, KEEP_ALIVE / 2 - Duration::from_millis(1));
    }
}

/// Checks that the text of a status, with those of its sources, names the server once, and says
/// nothing twice that stands between two of its colons or semicolons.
fn says_each_thing_once(status: &Status, name: &str) {
    let shown = doorbell_kit::chain(status);
    let address = name.split('#').next().expect("it has an address");
    assert_eq!(shown.matches(address).count(), 1, "{shown}");
    let mut said: Vec<_> = shown.split("; ").flat_map(|part| part.split(": ")).collect();
    let all = said.len();
    said.sort_unstable();
    said.dedup();
    assert_eq!(said.len(), all, "{shown}");
}

const SILENT: &str = "has been silent for 1000 ms";

/// A server that was killed: the system of its host says at once that nobody is at its port.
const CLOSED: &str =
    "has been silent for 500 ms since the system of its host said that nobody is at";

#[tokio::test(flavor = "multi_thread")]
async fn over_udp_calls_of_a_server_that_is_killed_fail_in_the_time_that_is_configured() {
    let test = "peers::server::over_udp_calls_of_a_server_that_is_killed_fail_in_the_time_that_is_configured";
    ends(test, Over::Udp, End::Killed, brief().keep_alive(KEEP_ALIVE), CLOSED).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn over_udp_calls_of_a_server_that_is_stopped_fail_in_the_time_that_is_configured() {
    let test = "peers::server::over_udp_calls_of_a_server_that_is_stopped_fail_in_the_time_that_is_configured";
    ends(test, Over::Udp, End::Stopped, brief().keep_alive(KEEP_ALIVE), SILENT).await;
}

// The server had acknowledged all, and so calls heard of its end after half a minute only.
#[tokio::test(flavor = "multi_thread")]
async fn over_udp_a_server_that_calls_wait_for_is_asked_for_signs_of_life_unless_configured() {
    let test = "peers::server::over_udp_a_server_that_calls_wait_for_is_asked_for_signs_of_life_unless_\
                configured";
    let waited_for = "has been silent for 5000 ms while it was waited for";
    ends(test, Over::Udp, End::Stopped, brief(), waited_for).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn over_shared_memory_calls_of_a_server_that_is_killed_fail_at_once() {
    let test = "peers::server::over_shared_memory_calls_of_a_server_that_is_killed_fail_at_once";
    ends(test, Over::Shm, End::Killed, brief(), "ended").await;
}

// What was sent to a server before it was stopped, and while it was, is there when it goes on, and
// the client has sent the calls again by then.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_was_stopped_and_goes_on_runs_no_call_twice() {
    let test = "peers::server::a_server_that_was_stopped_and_goes_on_runs_no_call_twice";
    let device = Over::Udp.fixed();
    if let Some(device) = child::part() {
        serves(&device).await;
    }
    let mut child = Child::start(test, &device, None);
    let name = child.hear();
    let channel = Channel::builder().keep_alive(Duration::from_millis(200)).connect_timeout(LONG);
    let channel = channel.connect(&*name).await.expect("the server is there");
    let client = Client::new(channel.clone());
    let call = |number| {
        let client = client.clone();
        tokio::spawn(async move { client.unary(NOTE, number).await })
    };
    let mut calls = Vec::new();
    for round in 0..3 {
        // Some are under way when it is stopped, and others are sent to a server that is stopped.
        calls.extend((0..40).map(|number| call(100 * round + number)));
        client.unary(NOTE, 100 * round + 40).await.expect("an answer");
        calls.extend((41..60).map(|number| call(100 * round + number)));
        child.stop();
        calls.extend((60..80).map(|number| call(100 * round + number)));
        while channel.is_connected() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        child.resume();
        let mut request = Request::new(());
        request.set_timeout(LONG);
        client.unary(NOTED, request).await.expect("it goes on");
    }
    let mut answered = Vec::new();
    for (at, call) in calls.into_iter().enumerate() {
        match timeout(LONG, call).await.expect("it ends").expect("no panic") {
            Ok(_) => answered.push(at),
            // Nobody knows whether it ran, or it had begun.
            Err(status) => {
                assert!([Code::Unavailable, Code::Aborted].contains(&status.code()), "{status}");
            }
        }
    }
    let noted: HashMap<u64, u64> = client.unary(NOTED, ()).await.expect("an answer").into_inner();
    let twice: Vec<_> = noted.iter().filter(|(_, times)| **times != 1).collect();
    assert!(twice.is_empty(), "{twice:?} ran more than once");
    // Each call that was answered ran.
    for at in answered {
        let number = (at / 79 * 100 + at % 79 + usize::from(at % 79 >= 40)) as u64;
        assert!(noted.contains_key(&number), "{number} was answered and did not run");
    }
}

// A call had five seconds for a connection, whatever its deadline was.
#[tokio::test(flavor = "multi_thread")]
async fn calls_outlast_a_server_that_is_stopped_for_longer_than_attempts_to_connect_last() {
    let test = "peers::server::calls_outlast_a_server_that_is_stopped_for_longer_than_attempts_to_connect_last";
    let device = Over::Udp.fixed();
    if let Some(device) = child::part() {
        serves(&device).await;
    }
    let mut child = Child::start(test, &device, None);
    let name = child.hear();
    let brief = Config {
        keep_alive: KeepAlive { idle: KEEP_ALIVE, busy: KEEP_ALIVE },
        connect_timeout: Duration::from_millis(500),
        ..Config::default()
    };
    let channel = Channel::builder().endpoint(|endpoint| endpoint.nic(brief)).connect(&*name).await;
    let channel = channel.expect("the server is there");
    let client = Client::new(channel.clone());
    let call = || {
        let (client, mut request) = (client.clone(), Request::new(()));
        request.set_timeout(LONG);
        tokio::spawn(async move { client.unary(NOTED, request).await })
    };
    child.stop();
    let mut calls = vec![call()];
    while channel.is_connected() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    calls.push(call());
    // A stop is a matter of time: this one is longer than any call waited for a connection.
    tokio::time::sleep(Duration::from_secs(6)).await;
    child.resume();
    for call in calls {
        let noted = timeout(LONG, call).await.expect("it ends").expect("no panic");
        noted.expect("the server goes on before the call's time is over");
    }
}
