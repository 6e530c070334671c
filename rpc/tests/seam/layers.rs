//! Clients around layers of tower, in all orders, in tasks that run on any thread.

use std::cell::Cell;
use std::future::Future;
use std::task::{Context, Poll};
use std::time::Duration;

use doorbell_rpc::{
    self, Body, Channel, Client, Method, Request, Response, Retries, Sending, Server, Servers,
    Status, Streaming,
};
use futures_util::{FutureExt, StreamExt, stream};
use tower::balance::p2c::Balance;
use tower::buffer::Buffer;
use tower::load::{CompleteOnResponse, PendingRequestsDiscover};
use tower::{BoxError, Service, ServiceBuilder};

#[doorbell_rpc::service(crate = "doorbell_rpc")]
trait Numbers {
    #[rpc(idempotent)]
    async fn double(&self, number: u64) -> Result<u64, Status>;
    async fn sum(&self, one: u64, other: u64) -> Result<u64, Status>;
    async fn request(&self, number: Request<u64>) -> Result<Response<u64>, Status>;
    async fn count(&self, to: u64) -> Result<Streaming<u64>, Status>;
    async fn add(&self, numbers: Streaming<u64>) -> Result<u64, Status>;
}

struct Here;

impl Numbers for Here {
    async fn double(&self, number: u64) -> Result<u64, Status> {
        Ok(2 * number)
    }

    async fn sum(&self, one: u64, other: u64) -> Result<u64, Status> {
        Ok(one + other)
    }

    async fn request(&self, number: Request<u64>) -> Result<Response<u64>, Status> {
        Ok(Response::new(number.into_inner()))
    }

    async fn count(&self, to: u64) -> Result<Streaming<u64>, Status> {
        Ok(Streaming::new(stream::iter((0..to).map(Ok))))
    }

    async fn add(&self, mut numbers: Streaming<u64>) -> Result<u64, Status> {
        let mut sum = 0;
        while let Some(number) = numbers.message().await? {
            sum += number;
        }
        Ok(sum)
    }
}

const DOUBLE: Method<u64, u64> = NumbersClient::DOUBLE;

async fn server() -> Server {
    let builder = Server::builder().add_service(NumbersServer::new(Here));
    builder.open("shm").await.expect("the device opens")
}

/// Makes calls of all kinds through a service, from tasks that may run on any thread. Not a function,
/// for the compiler to see the types of the services.
macro_rules! calls {
    ($service:expr) => {{
        let service = $service;
        let numbers = NumbersClient::new(service.clone());
        let all = tokio::spawn(async move {
            assert_eq!(numbers.double(4).await?, 8);
            assert_eq!(numbers.sum(4, 5).await?, 9);
            assert_eq!(numbers.request(7).await?.into_inner(), 7);
            assert_eq!(numbers.count(3).await?.count().await, 3);
            assert_eq!(numbers.add(stream::iter([1, 2, 3])).await?, 6);
            Ok::<_, Status>(())
        });
        all.await.expect("no panic").expect("all are answered");
        let client = Client::new(service);
        let call = tokio::spawn(client.unary(DOUBLE, 21));
        assert_eq!(call.await.expect("no panic").expect("an answer").into_inner(), 42);
        let call = tokio::spawn(async move { client.unary(DOUBLE, 21).await });
        assert_eq!(call.await.expect("no panic").expect("an answer").into_inner(), 42);
    }};
}

const LONG: Duration = Duration::from_secs(30);

/// The status of an error, which all layers below have in common.
fn status(why: BoxError) -> Status {
    Status::from_error(why)
}

/// Layers in an order, around a channel. Of these layers each is named by a word.
macro_rules! layered {
    ($channel:expr; $($layer:ident)*) => {{
        let layers = ServiceBuilder::new();
        $(let layers = layered!(@ layers, $layer);)*
        layers.service($channel)
    }};
    (@ $layers:ident, timeout) => { $layers.map_err(status).timeout(LONG) };
    (@ $layers:ident, retry) => { $layers.retry(Retries::new()) };
    (@ $layers:ident, limit) => { $layers.concurrency_limit(8) };
    (@ $layers:ident, shed) => { $layers.map_err(status).load_shed() };
    (@ $layers:ident, buffer) => { $layers.map_err(status).buffer(8) };
}

/// A test of layers in each of these orders.
macro_rules! orders {
    ($($name:ident: $($layer:ident)*;)*) => {
        $(#[tokio::test(flavor = "multi_thread")]
        async fn $name() {
            let server = server().await;
            let channel = Channel::connect(server.name()).await.expect("it is there");
            calls!(layered!(channel.clone(); $($layer)*));
            calls!(layered!(channel.when_ready(); $($layer)*));
            let servers = Servers::list([server.name().clone()]).watch().expect("a runtime");
            let servers = PendingRequestsDiscover::new(servers, CompleteOnResponse::default());
            let balance = Buffer::new(Balance::new(servers), 8);
            calls!(layered!(balance; $($layer)*));
        })*
    };
}

orders! {
    calls_go_through_timeout_retry_limit_shed_buffer: timeout retry limit shed buffer;
    calls_go_through_buffer_timeout_retry_limit_shed: buffer timeout retry limit shed;
    calls_go_through_shed_buffer_timeout_retry_limit: shed buffer timeout retry limit;
    calls_go_through_limit_shed_buffer_timeout_retry: limit shed buffer timeout retry;
    calls_go_through_retry_limit_shed_buffer_timeout: retry limit shed buffer timeout;
    calls_go_through_buffer_shed_limit_retry_timeout: buffer shed limit retry timeout;
    calls_go_through_timeout_buffer_shed_limit_retry: timeout buffer shed limit retry;
    calls_go_through_retry_timeout_buffer_shed_limit: retry timeout buffer shed limit;
    calls_go_through_limit_retry_timeout_buffer_shed: limit retry timeout buffer shed;
    calls_go_through_shed_limit_retry_timeout_buffer: shed limit retry timeout buffer;
}

/// A service that may be sent to another thread, and not shared by several.
#[derive(Clone)]
struct NotSync(Channel, Cell<u64>);

impl Service<Request<Body>> for NotSync {
    type Response = Response<Body>;
    type Error = Status;
    type Future = Sending;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Status>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Sending {
        self.1.set(self.1.get() + 1);
        self.0.call(request)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_through_a_service_that_is_not_sync_run_in_tasks() {
    let server = server().await;
    let channel = Channel::connect(server.name()).await.expect("it is there");
    calls!(NotSync(channel, Cell::new(0)));
}

#[tokio::test]
async fn the_future_of_a_call_may_be_shared_by_threads() {
    fn shared<T: Sync + Send>(value: T) -> T {
        value
    }
    let server = server().await;
    let mut channel = Channel::connect(server.name()).await.expect("it is there");
    let request = Request::to(DOUBLE.id(), Body::empty());
    shared(channel.call(request)).await.expect_err("an empty body is no number");
    shared(channel.when_ready());
}

#[tokio::test]
async fn the_future_of_a_call_outlives_its_client() {
    fn begins(channel: Channel) -> impl Future<Output = Result<u64, Status>> + Send + 'static {
        NumbersClient::new(channel).double(2)
    }
    let server = server().await;
    let channel = Channel::connect(server.name()).await.expect("it is there");
    assert_eq!(begins(channel).await.expect("an answer"), 4);
    let nobody = Channel::builder().connect_lazily("shm:layers/nobody#1").await.expect("a device");
    assert!(begins(nobody).now_or_never().is_none_or(|answer| answer.is_err()));
}
