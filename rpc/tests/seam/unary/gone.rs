//! Servers that are gone: which calls fail at once, which wait, and what a balancer does.

use std::time::Duration;

use doorbell_rpc::{Channel, ChannelBuilder, Client, Code, Request, Retries};
use futures_util::future::join_all;
use tower::ServiceBuilder;
use tower::balance::p2c::Balance;
use tower::buffer::Buffer;
use tower::discover::ServiceList;
use tower::load::{CompleteOnResponse, PendingRequests};

use crate::unary::{
    Apart, Device, ECHO, HOLD, HOLD_AGAIN, Stage, echoes, in_time, over_each_device,
};

over_each_device! {
    calls_fail_at_once_while_their_server_is_gone,
    a_call_that_waits_is_answered_by_the_next_server,
    a_call_that_waits_ends_when_its_time_is_over,
    a_channel_finds_its_server_again_by_itself_after_a_call_has_failed,
    a_balance_gives_no_calls_to_a_server_that_is_gone_and_takes_it_back,
    a_call_that_may_have_run_says_so_though_its_last_attempt_has_not,
}

/// A channel that takes a server for gone soon that does not answer.
fn brief() -> ChannelBuilder {
    Channel::builder().connect_timeout(Duration::from_millis(300))
}

/// A request with more time than a test has.
fn echo() -> Request<String> {
    let mut request = Request::new("text".to_owned());
    request.set_timeout(Duration::from_secs(3600));
    request
}

/// A channel whose server has ended, and the place where the server was.
async fn lost(device: Device, builder: ChannelBuilder) -> (Channel, String) {
    let place = device.fixed();
    let server = Apart::open(&Stage::default(), &place).await;
    let channel = builder.connect(server.server.name()).await.expect("the server is there");
    server.end().await;
    while channel.is_connected() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    (channel, place)
}

// They waited until their deadlines, or for five seconds without one.
async fn calls_fail_at_once_while_their_server_is_gone(device: Device) {
    let (channel, _) = lost(device, brief()).await;
    let client = Client::new(channel);
    for _ in 0..100 {
        let status = in_time(client.unary(ECHO, echo())).await.expect_err("nobody is there");
        assert_eq!(status.code(), Code::Unavailable, "{status}");
        assert!(status.message().starts_with("there is no connection to"), "{status}");
        assert!(status.has_not_run(), "{status}");
    }
}

async fn a_call_that_waits_is_answered_by_the_next_server(device: Device) {
    let (channel, place) = lost(device, brief()).await;
    let client = Client::new(channel);
    client.unary(ECHO, echo()).await.expect_err("nobody is there");
    let waits = tokio::spawn({
        let (client, mut request) = (client.clone(), echo());
        request.set_wait_for_ready(true);
        async move { client.unary(ECHO, request).await }
    });
    let next = Apart::open(&Stage::default(), &place).await;
    in_time(waits).await.expect("no panic").expect("the next server answers");
    next.end().await;
}

async fn a_call_that_waits_ends_when_its_time_is_over(device: Device) {
    let (channel, _) = lost(device, brief().wait_for_ready(true)).await;
    let client = Client::new(channel);
    let mut request = echo();
    request.set_timeout(Duration::from_millis(500));
    let status = in_time(client.unary(ECHO, request)).await.expect_err("nobody comes");
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
    assert!(status.has_not_run(), "{status}");
    let mut request = echo();
    request.set_wait_for_ready(false);
    let status = in_time(client.unary(ECHO, request)).await.expect_err("nobody is there");
    assert_eq!(status.code(), Code::Unavailable, "{status}");
}

async fn a_channel_finds_its_server_again_by_itself_after_a_call_has_failed(device: Device) {
    let (channel, place) = lost(device, brief()).await;
    let client = Client::new(channel.clone());
    client.unary(ECHO, echo()).await.expect_err("nobody is there");
    let next = Apart::open(&Stage::default(), &place).await;
    in_time(async {
        while !channel.is_connected() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    echoes(&client).await;
    next.end().await;
}

async fn a_balance_gives_no_calls_to_a_server_that_is_gone_and_takes_it_back(device: Device) {
    let (stages, places) = ([0; 3].map(|_| Stage::default()), [0; 3].map(|_| device.fixed()));
    let (mut servers, mut channels, mut loads) = (Vec::new(), Vec::new(), Vec::new());
    for (stage, place) in stages.iter().zip(&places) {
        let server = Apart::open(stage, place).await;
        let channel = brief().connect(server.server.name()).await.expect("the server is there");
        loads.push(PendingRequests::new(channel.when_ready(), CompleteOnResponse::default()));
        channels.push(channel);
        servers.push(server);
    }
    let channel = channels.remove(0);
    let client = Client::new(Buffer::new(Balance::new(ServiceList::new(loads)), 64));
    servers.remove(0).end().await;
    while channel.is_connected() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    for _ in 0..4 {
        let answers = in_time(join_all((0..45).map(|_| client.unary(ECHO, echo())))).await;
        for answer in answers {
            answer.expect("there are two others");
        }
    }

    let back = Apart::open(&stages[0], &places[0]).await;
    while !channel.is_connected() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // Calls that are held keep their servers loaded, so that each server gets some.
    let held = join_all((0..30).map(|number| client.unary(HOLD, number)));
    let held = tokio::spawn(held);
    for stage in &stages {
        stage.has_begun().await;
        stage.go(30);
    }
    for answer in in_time(held).await.expect("no panic") {
        answer.expect("an answer");
    }
    back.end().await;
    for server in servers {
        server.end().await;
    }
}

// The status was that of the last attempt, which had found no server.
async fn a_call_that_may_have_run_says_so_though_its_last_attempt_has_not(device: Device) {
    let stage = Stage::default();
    let server = Apart::open(&stage, &device.fixed()).await;
    let channel = brief().connect(server.server.name()).await.expect("the server is there");
    let client = Client::new(ServiceBuilder::new().retry(Retries::new()).service(channel));
    let call = tokio::spawn(async move { client.unary(HOLD_AGAIN, 1).await });
    stage.has_begun().await;
    server.end().await;
    let status = in_time(call).await.expect("no panic").expect_err("nobody is there");
    assert_eq!(status.code(), Code::Unavailable, "{status}");
    assert!(!status.has_not_run(), "{status}");
}
