//! Limits: calls in flight at a client, handlers that run at a server.

use std::sync::atomic::Ordering;

use doorbell_rpc::{Channel, Client, Code, Server};
use futures_util::future::join_all;

use crate::unary::{
    Device, ECHO, HOLD, Stage, connected, echoes, in_time, over_each_device, waits,
};

over_each_device! {
    a_call_beyond_those_in_flight_waits_for_one_to_end,
    a_call_beyond_those_in_flight_is_shed_if_the_channel_sheds,
    a_call_that_waits_for_its_turn_may_be_dropped,
    a_client_with_as_many_handlers_that_wait_as_it_may_have_leaves_some_for_others,
    a_call_beyond_the_handlers_that_may_run_is_refused,
    twenty_thousand_calls_at_once_are_all_answered,
    calls_for_which_active_messages_have_no_room_are_refused_and_do_not_hang,
}

// Active Messages sent such requests back without their words, and so nobody ended the calls.
async fn calls_for_which_active_messages_have_no_room_are_refused_and_do_not_hang(device: Device) {
    let stage = Stage::default();
    let builder = Server::builder().add_service(stage.router()).service(7);
    let server = builder.endpoint(|endpoint| endpoint.tasks(4)).open(device.any()).await;
    let server = server.expect("the device opens");
    let client = connected(&server).await;
    let calls = (0..200).map(|number| client.unary(HOLD, number)).collect::<Vec<_>>();
    let calls = tokio::spawn(join_all(calls));
    stage.has_begun().await;
    stage.go(200);
    let ended = in_time(calls).await.expect("no panic");
    let (answered, refused): (Vec<_>, Vec<_>) = ended.into_iter().partition(Result::is_ok);
    assert!(answered.len() >= 4 && !refused.is_empty(), "{} are answered", answered.len());
    for status in refused.into_iter().filter_map(Result::err) {
        assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
        assert!(status.has_not_run(), "{status}");
    }
}

async fn a_call_beyond_those_in_flight_waits_for_one_to_end(device: Device) {
    let stage = Stage::default();
    let server = stage.open(device).await;
    let channel = Channel::builder().in_flight(1).connect(server.name()).await;
    let channel = channel.expect("a connection");
    assert_eq!(channel.room(), 1);
    let client = Client::new(channel.clone());
    let calls = [1, 2, 3].map(|number| {
        let client = client.clone();
        tokio::spawn(async move { client.unary(HOLD, number).await })
    });
    stage.has_begun().await;
    assert_eq!(channel.room(), 0);
    // Whatever was sent beside the first call is there before the answer to a later one.
    echoes(&connected(&server).await).await;
    assert_eq!(stage.begun(), 0);
    stage.go(3);
    for (call, number) in calls.into_iter().zip(1..) {
        let held = in_time(call).await.expect("no panic").expect("an answer");
        assert_eq!(held.into_inner(), number);
    }
    assert_eq!(stage.0.most_running.load(Ordering::SeqCst), 1);
    assert_eq!(channel.room(), 1);
}

async fn a_call_beyond_those_in_flight_is_shed_if_the_channel_sheds(device: Device) {
    let stage = Stage::default();
    let server = stage.open(device).await;
    let channel = Channel::builder().in_flight(1).shed().connect(server.name()).await;
    let client = Client::new(channel.expect("a connection"));
    let first = client.clone();
    let first = tokio::spawn(async move { first.unary(HOLD, 1).await });
    stage.has_begun().await;
    let status = in_time(client.unary(HOLD, 2)).await.expect_err("one is in flight");
    assert_eq!(status.code(), Code::ResourceExhausted);
    stage.go(1);
    in_time(first).await.expect("no panic").expect("an answer");
    echoes(&client).await;
    assert_eq!(stage.begun(), 0);
}

async fn a_call_that_waits_for_its_turn_may_be_dropped(device: Device) {
    let stage = Stage::default();
    let server = stage.open(device).await;
    let channel = Channel::builder().in_flight(1).connect(server.name()).await;
    let channel = channel.expect("a connection");
    let client = Client::new(channel.clone());
    let first = client.clone();
    let first = tokio::spawn(async move { first.unary(HOLD, 1).await });
    stage.has_begun().await;
    let mut second = Box::pin(client.unary(HOLD, 2));
    assert!(waits(&mut second).await);
    drop(second);
    stage.go(1);
    in_time(first).await.expect("no panic").expect("an answer");
    echoes(&client).await;
    assert_eq!((stage.begun(), channel.room()), (0, 1));
}

async fn a_client_with_as_many_handlers_that_wait_as_it_may_have_leaves_some_for_others(
    device: Device,
) {
    let stage = Stage::default();
    let server = Server::builder().add_service(stage.router()).most_waiting_per_client(1);
    let server = server.open(device.any()).await.expect("a server");
    let [greedy, other] = [connected(&server).await, connected(&server).await];
    let calls = [&greedy, &other].map(|client| {
        let client = client.clone();
        tokio::spawn(async move { client.unary(HOLD, 1).await })
    });
    for _ in &calls {
        stage.has_begun().await;
    }
    let status = in_time(greedy.unary(HOLD, 2)).await.expect_err("one waits");
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert!(status.message().contains("most_waiting_per_client"), "{status}");
    stage.go(2);
    for call in calls {
        in_time(call).await.expect("no panic").expect("an answer");
    }
    echoes(&greedy).await;
}

async fn a_call_beyond_the_handlers_that_may_run_is_refused(device: Device) {
    let stage = Stage::default();
    let server = Server::builder().add_service(stage.router()).most_running(1);
    let server = server.open(device.any()).await.expect("a server");
    let client = connected(&server).await;
    let first = client.clone();
    let first = tokio::spawn(async move { first.unary(HOLD, 1).await });
    stage.has_begun().await;
    assert_eq!(server.running(), 1);
    let status = in_time(client.unary(HOLD, 2)).await.expect_err("one runs");
    assert_eq!(status.code(), Code::ResourceExhausted);
    stage.go(1);
    in_time(first).await.expect("no panic").expect("an answer");
    echoes(&client).await;
    assert_eq!(stage.begun(), 0);
}

// A call had its number when it was made, and waited for a credit. The server, which remembers the
// latest 4096 numbers, took calls that others had overtaken meanwhile to have begun before.
async fn twenty_thousand_calls_at_once_are_all_answered(device: Device) {
    let server = Stage::default().open(device).await;
    let channel = Channel::builder().in_flight(20_000).connect(server.name()).await;
    let client = Client::new(channel.expect("a connection"));
    let calls = (0..20_000).map(|number: u64| client.unary(ECHO, number.to_string()));
    let answers = join_all(calls).await;
    for (number, answer) in answers.into_iter().enumerate() {
        let echo = answer.unwrap_or_else(|why| panic!("call {number}: {why}"));
        assert_eq!(echo.into_inner(), number.to_string());
    }
}
