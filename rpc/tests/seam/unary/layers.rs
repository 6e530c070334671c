//! The layers of tower around a channel, and around a server's methods.

use std::future::{Ready, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use doorbell_rpc::{
    Body, Channel, Client, Code, Method, Request, Response, Router, Server, Status,
};
use futures_util::stream;
use tokio::sync::mpsc;
use tower::ServiceBuilder;
use tower::balance::p2c::Balance;
use tower::buffer::Buffer;
use tower::discover::{Change, ServiceList};
use tower::load::{CompleteOnResponse, PendingRequests, PendingRequestsDiscover};
use tower::retry::Policy;
use tower::util::BoxCloneSyncService;

use crate::unary::{Device, ECHO, HOLD, Stage, in_time, over_each_device};

over_each_device! {
    the_timeout_of_a_layer_gives_the_call_up,
    a_layer_tries_calls_again_that_fail,
    a_layer_limits_the_rate_of_calls,
    a_layer_sheds_calls_beyond_its_limit,
    a_buffer_shares_a_channel_and_passes_statuses_on,
    a_balance_gives_a_call_to_the_server_with_fewer_in_flight,
    a_balance_follows_servers_that_come_and_go,
    a_layer_around_a_method_of_a_server_handles_its_calls,
}

async fn channel(server: &Server) -> Channel {
    Channel::connect(server.name()).await.expect("the server is there")
}

async fn the_timeout_of_a_layer_gives_the_call_up(device: Device) {
    let stage = Stage::default();
    let server = stage.open(device).await;
    let layers = ServiceBuilder::new().timeout(Duration::from_millis(300));
    let client = Client::new(layers.service(channel(&server).await));
    let status = in_time(client.unary(HOLD, 1)).await.expect_err("nobody lets it go");
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
    stage.has_ended().await;
    let echo = client.unary(ECHO, "text".to_owned()).await.expect("in time");
    assert_eq!(echo.into_inner(), "text");
}

/// Tries calls again that fail because their server is not available.
#[derive(Clone)]
struct Again(usize);

impl Policy<Request<Body>, Response<Body>, Status> for Again {
    type Future = Ready<()>;

    fn retry(
        &mut self,
        _: &mut Request<Body>,
        result: &mut Result<Response<Body>, Status>,
    ) -> Option<Ready<()>> {
        let failed = result.as_ref().is_err_and(|status| status.code() == Code::Unavailable);
        self.0 = self.0.checked_sub(usize::from(failed))?;
        failed.then(|| ready(()))
    }

    fn clone_request(&mut self, request: &Request<Body>) -> Option<Request<Body>> {
        request.try_clone()
    }
}

async fn a_layer_tries_calls_again_that_fail(device: Device) {
    const THIRD: Method<(), usize> = Method::new("tries/the third succeeds");
    let tries = Arc::new(AtomicUsize::new(0));
    let counted = tries.clone();
    let router = Router::new().unary(THIRD, move |_| {
        let number = counted.fetch_add(1, Ordering::SeqCst) + 1;
        ready(if number < 3 { Err(Status::unavailable("not yet")) } else { Ok(number) })
    });
    let server = Server::builder().add_service(router).open(device.any()).await.expect("a server");
    let channel = channel(&server).await;

    let layers = ServiceBuilder::new().retry(Again(1));
    let status = Client::new(layers.service(channel.clone())).unary(THIRD, ()).await;
    assert_eq!(status.expect_err("one more try").code(), Code::Unavailable);

    tries.store(0, Ordering::SeqCst);
    let layers = ServiceBuilder::new().retry(Again(5));
    let answer = Client::new(layers.service(channel)).unary(THIRD, ()).await;
    assert_eq!(answer.expect("the third succeeds").into_inner(), 3);
    assert_eq!(tries.load(Ordering::SeqCst), 3);
}

async fn a_layer_limits_the_rate_of_calls(device: Device) {
    let server = Stage::default().open(device).await;
    let layers = ServiceBuilder::new().buffer(8).rate_limit(2, Duration::from_secs(3600));
    let client = Client::new(layers.service(channel(&server).await));
    for text in ["one", "two"] {
        let echo = client.unary(ECHO, text.to_owned()).await.expect("within the rate");
        assert_eq!(echo.into_inner(), text);
    }
    // The third call is not made within an hour: it waits in the buffer, and its caller gives up.
    let third = client.unary(ECHO, "three".to_owned());
    let waited = tokio::time::timeout(Duration::from_millis(100), third).await;
    assert!(waited.is_err(), "{waited:?}");
}

async fn a_layer_sheds_calls_beyond_its_limit(device: Device) {
    let stage = Stage::default();
    let server = stage.open(device).await;
    let layers = ServiceBuilder::new().load_shed().concurrency_limit(1);
    let client = Client::new(layers.service(channel(&server).await));
    let first = client.clone();
    let first = tokio::spawn(async move { first.unary(HOLD, 1).await });
    stage.has_begun().await;
    let status = in_time(client.unary(HOLD, 2)).await.expect_err("one is in flight");
    assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
    stage.go(1);
    in_time(first).await.expect("no panic").expect("an answer");
    assert_eq!(stage.begun(), 0);
}

async fn a_buffer_shares_a_channel_and_passes_statuses_on(device: Device) {
    const ABSENT: Method<String, String> = Method::new("stage/absent");
    let server = Stage::default().open(device).await;
    let client = Client::new(ServiceBuilder::new().buffer(4).service(channel(&server).await));
    let calls = (0..32).map(|number: u32| {
        let client = client.clone();
        tokio::spawn(async move { client.unary(ECHO, number.to_string()).await })
    });
    for (number, call) in calls.collect::<Vec<_>>().into_iter().enumerate() {
        let echo = in_time(call).await.expect("no panic").expect("an answer");
        assert_eq!(echo.into_inner(), number.to_string());
    }
    let status = client.unary(ABSENT, String::new()).await.expect_err("no method");
    assert_eq!(status.code(), Code::Unimplemented);
}

async fn a_balance_gives_a_call_to_the_server_with_fewer_in_flight(device: Device) {
    let stages = [Stage::default(), Stage::default()];
    let servers = [stages[0].open(device).await, stages[1].open(device).await];
    let loaded = |channel| PendingRequests::new(channel, CompleteOnResponse::default());
    let channels = [loaded(channel(&servers[0]).await), loaded(channel(&servers[1]).await)];
    let balance = Balance::new(ServiceList::new(channels));
    // Boxed, for the compiler takes no future for `Send` that has the type of such a buffer in it.
    let client = Client::new(BoxCloneSyncService::new(Buffer::new(balance, 8)));
    let calls = [1, 2].map(|number| {
        let client = client.clone();
        tokio::spawn(async move { client.unary(HOLD, number).await })
    });
    for stage in &stages {
        stage.has_begun().await;
        stage.go(1);
    }
    for (call, number) in calls.into_iter().zip(1..) {
        let held = in_time(call).await.expect("no panic").expect("an answer");
        assert_eq!(held.into_inner(), number);
    }
}

async fn a_balance_follows_servers_that_come_and_go(device: Device) {
    let stages = [Stage::default(), Stage::default()];
    let servers = [stages[0].open(device).await, stages[1].open(device).await];
    let (changes, mut changed) = mpsc::unbounded_channel();
    let changed = stream::poll_fn(move |context| changed.poll_recv(context));
    let loaded = PendingRequestsDiscover::new(changed, CompleteOnResponse::default());
    let client = Client::new(BoxCloneSyncService::new(Buffer::new(Balance::new(loaded), 8)));
    let call = |number| {
        let client = client.clone();
        tokio::spawn(async move { client.unary(HOLD, number).await })
    };
    let change = |change| changes.send(Ok::<_, Status>(change)).expect("the balance listens");

    // There is no server yet, and the call waits for one.
    let first = call(1);
    change(Change::Insert("one", channel(&servers[0]).await));
    stages[0].has_begun().await;
    // The first server has a call in flight, and goes: further calls go to the second.
    change(Change::Insert("other", channel(&servers[1]).await));
    change(Change::Remove("one"));
    let further = [2, 3, 4].map(call);
    for _ in &further {
        stages[1].has_begun().await;
    }
    stages[0].go(1);
    stages[1].go(3);
    for (call, number) in [first].into_iter().chain(further).zip(1..) {
        let held = in_time(call).await.expect("no panic").expect("an answer");
        assert_eq!(held.into_inner(), number);
    }
    assert_eq!(stages[0].begun(), 0);
}

async fn a_layer_around_a_method_of_a_server_handles_its_calls(device: Device) {
    let stage = Stage::default();
    let layers = ServiceBuilder::new().load_shed().concurrency_limit(1);
    let layered = layers.service(stage.router());
    let router = Router::new().service(HOLD.id(), layered);
    let server = Server::builder().add_service(router).open(device.any()).await.expect("a server");
    let client = Client::new(channel(&server).await);
    let first = client.clone();
    let first = tokio::spawn(async move { first.unary(HOLD, 1).await });
    stage.has_begun().await;
    let status = in_time(client.unary(HOLD, 2)).await.expect_err("one runs");
    assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
    stage.go(1);
    let held = in_time(first).await.expect("no panic").expect("an answer");
    assert_eq!(held.into_inner(), 1);
}
