//! Servers that end, and that come again under the same name.

use std::pin::pin;
use std::time::Duration;

use doorbell_rpc::{Channel, Client, Code};

use crate::unary::{
    Apart, Device, ECHO, HOLD, HOLD_AGAIN, Stage, connected, echoes, in_time, over_each_device,
    patient, waits,
};

over_each_device! {
    a_server_that_shuts_down_finishes_its_calls_and_refuses_others,
    a_channel_connects_again_to_a_server_of_the_same_name,
    an_idempotent_call_is_repeated_at_the_next_server,
    a_call_that_is_not_idempotent_does_not_run_twice,
    a_call_without_a_server_ends_when_its_time_is_over,
}

async fn a_server_that_shuts_down_finishes_its_calls_and_refuses_others(device: Device) {
    let stage = Stage::default();
    let server = stage.open(device).await;
    let client = connected(&server).await;
    let accepted = client.clone();
    let accepted = tokio::spawn(async move { accepted.unary(HOLD, 1).await });
    stage.has_begun().await;

    let mut shutdown = pin!(server.close());
    assert!(waits(&mut shutdown).await);
    let status = in_time(client.unary(ECHO, String::new())).await.expect_err("it shuts down");
    assert_eq!(status.code(), Code::Unavailable);
    assert!(waits(&mut shutdown).await);

    stage.go(1);
    in_time(shutdown).await.expect("the client takes its answer");
    let held = in_time(accepted).await.expect("no panic").expect("it was accepted");
    assert_eq!(held.into_inner(), 1);
}

async fn a_channel_connects_again_to_a_server_of_the_same_name(device: Device) {
    let (stage, place) = (Stage::default(), device.fixed());
    let server = Apart::open(&stage, &place).await;
    let channel = Channel::builder().wait_for_ready(true).connect(server.server.name()).await;
    let channel = channel.expect("the server is there");
    let client = Client::new(channel.clone());
    echoes(&client).await;
    server.end().await;
    for _ in 0..3 {
        // A call that leaves before the client hears of the end of the server may have run there.
        while channel.is_connected() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let server = Apart::open(&stage, &place).await;
        echoes(&client).await;
        server.end().await;
    }
}

async fn an_idempotent_call_is_repeated_at_the_next_server(device: Device) {
    let ([before, after], place) = ([Stage::default(), Stage::default()], device.fixed());
    let server = Apart::open(&before, &place).await;
    let client = patient(&server.server).await;
    let call = client.clone();
    let call = tokio::spawn(async move { call.unary(HOLD_AGAIN, 1).await });
    before.has_begun().await;
    server.end().await;
    let next = Apart::open(&after, &place).await;
    after.has_begun().await;
    after.go(1);
    let held = in_time(call).await.expect("no panic").expect("an answer of the second server");
    assert_eq!(held.into_inner(), 1);
    next.end().await;
}

async fn a_call_that_is_not_idempotent_does_not_run_twice(device: Device) {
    let ([before, after], place) = ([Stage::default(), Stage::default()], device.fixed());
    let server = Apart::open(&before, &place).await;
    let client = patient(&server.server).await;
    let call = client.clone();
    let call = tokio::spawn(async move { call.unary(HOLD, 1).await });
    before.has_begun().await;
    server.end().await;
    let next = Apart::open(&after, &place).await;
    let status = in_time(call).await.expect("no panic").expect_err("it may have run");
    assert_eq!(status.code(), Code::Unavailable);
    echoes(&client).await;
    assert_eq!(after.begun(), 0);
    next.end().await;
}

async fn a_call_without_a_server_ends_when_its_time_is_over(device: Device) {
    let (stage, place) = (Stage::default(), device.fixed());
    let server = Apart::open(&stage, &place).await;
    let client = connected(&server.server).await;
    server.end().await;
    let mut request = doorbell_rpc::Request::new(String::new());
    request.set_timeout(std::time::Duration::from_millis(500));
    let status = in_time(client.unary(ECHO, request)).await.expect_err("there is no server");
    let codes = [Code::DeadlineExceeded, Code::Unavailable];
    assert!(codes.contains(&status.code()), "{status}");
}
