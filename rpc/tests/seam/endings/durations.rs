//! Times that no clock can count: they are as good as for ever.

use std::time::Duration;

use doorbell_am::Endpoint;
use doorbell_rpc::{Backoff, Channel, Client, Code, Request, Server};
use futures_util::{StreamExt, stream};

use crate::mixed::{ADD, COUNT, FOREVER, SUM, router};

/// The longest that anything here may take.
const LONG: Duration = Duration::from_secs(20);

const EVER: Duration = Duration::MAX;

fn within<T>(time: Duration, body: T) -> Request<T> {
    let mut request = Request::new(body);
    request.set_timeout(time);
    request
}

// A sum of the time and the present overflowed, and calls panicked.
async fn calls_are_made_with_the_longest_times_there_are(device: &str) {
    let server = Server::builder()
        .add_service(router())
        .keep_alive(EVER)
        .shed_after(EVER)
        .sessions(8, EVER)
        .endpoint(|endpoint| endpoint.deadline(EVER));
    let server = server.open(device).await.expect("the device opens");
    let forever = Backoff { first: EVER, most: EVER };
    let channel = Channel::builder().keep_alive(EVER).connect_timeout(EVER).backoff(forever);
    let channel = channel.timeout(EVER).endpoint(|endpoint| endpoint.deadline(EVER));
    let client = Client::new(channel.connect(server.name()).await.expect("the server is there"));
    for time in [EVER, EVER / 2, Duration::from_secs(u64::MAX / 4)] {
        let sum = client.unary(ADD, within(time, (2, 3))).await.expect("it adds");
        assert_eq!(sum.into_inner(), 5);
        let counted = client.server_streaming(COUNT, within(time, 3)).await.expect("it counts");
        assert_eq!(counted.into_inner().count().await, 3);
        let summed = client.client_streaming(SUM, within(time, stream::iter([2, 3]))).await;
        assert_eq!(summed.expect("it sums").into_inner(), 5);
    }
    let late = client.unary(FOREVER, within(Duration::ZERO, ())).await.expect_err("no time");
    assert_eq!(late.code(), Code::DeadlineExceeded);
}

// A request that was to wait as long as it takes waited only as long as its channel says.
async fn a_request_that_may_take_for_ever_takes_longer_than_its_channel_says(device: &str) {
    let server = Server::builder().add_service(router()).open(device).await;
    let server = server.expect("the device opens");
    let channel = Channel::builder().timeout(Duration::ZERO).connect(server.name()).await;
    let client = Client::new(channel.expect("the server is there"));
    let late = client.unary(ADD, (2, 3)).await.expect_err("there is no time");
    assert_eq!(late.code(), Code::DeadlineExceeded);
    let sum = client.unary(ADD, within(EVER, (2, 3))).await.expect("it takes its time");
    assert_eq!(sum.into_inner(), 5);
}

async fn the_pause_between_attempts_to_connect_may_be_for_ever(device: &str) {
    let endpoint = Endpoint::open(device, doorbell_am::Handlers::new()).await;
    let gone = endpoint.expect("the device opens").name().clone();
    let forever = Backoff { first: EVER, most: EVER };
    let channel = Channel::builder().backoff(forever).wait_for_ready(true);
    let channel = channel.connect_lazily(&gone.to_string()[..]).await;
    let client = Client::new(channel.expect("the device opens"));
    for _ in 0..2 {
        let late = client.unary(ADD, within(Duration::from_millis(50), (2, 3))).await;
        assert_eq!(late.expect_err("nobody is there").code(), Code::DeadlineExceeded);
    }
}

on_each_device!(
    calls_are_made_with_the_longest_times_there_are,
    a_request_that_may_take_for_ever_takes_longer_than_its_channel_says,
    the_pause_between_attempts_to_connect_may_be_for_ever,
);
