//! Calls of a program that traces nothing: contexts go through as they are, and nothing is paid.

use doorbell_kit::Allocated;
use doorbell_rpc::{Channel, Client, Method, Request, Router, Server, TraceContext, trace_context};

const SEEN: Method<(), Vec<(String, Vec<u8>)>> = Method::new("seen");
const RELAY: Method<String, Vec<(String, Vec<u8>)>> = Method::new("relay");
const NONE: Method<(), ()> = Method::new("none");

fn router() -> Router {
    Router::new()
        .unary(SEEN, |request| async move {
            let pairs = request.metadata().iter();
            Ok(pairs.map(|(name, value)| (name.to_owned(), value.to_vec())).collect::<Vec<_>>())
        })
        .unary(RELAY, |request| async move {
            let channel = Channel::connect(request.into_inner()).await?;
            Ok(Client::new(channel).unary(SEEN, ()).await?.into_inner())
        })
        .unary(NONE, |_| async { Ok(()) })
        .inline(NONE)
}

async fn pair() -> (Server, Client<Channel>) {
    let server = Server::builder().add_service(router()).open("shm").await;
    let server = server.expect("the device opens");
    let channel = Channel::connect(server.name()).await.expect("the server is there");
    (server, Client::new(channel))
}

#[tokio::test]
async fn a_call_outside_of_any_trace_carries_no_metadata() {
    let (_server, client) = pair().await;
    let seen = client.unary(SEEN, ()).await.expect("it is answered").into_inner();
    assert_eq!(seen, []);
}

#[tokio::test]
async fn a_context_goes_through_a_process_that_traces_nothing_as_it_is() {
    let (_near, client) = pair().await;
    let (far, _) = pair().await;
    let context = TraceContext::root().with_state("vendor=1");
    let mut request = Request::new(far.name().to_string());
    context.write_to(request.metadata_mut());
    let seen = client.unary(RELAY, request).await.expect("it is relayed").into_inner();
    let expected = [("traceparent", context.to_string()), ("tracestate", "vendor=1".to_owned())];
    assert_eq!(seen, expected.map(|(name, value)| (name.to_owned(), value.into_bytes())));
    assert_eq!(trace_context(), None);
}

/// How often a call of a handler that does nothing allocates, at both ends together.
async fn allocations_per_call(client: &Client<Channel>) -> u64 {
    const CALLS: u64 = 1000;
    let before = Allocated::count_of_thread();
    for _ in 0..CALLS {
        client.unary(NONE, ()).await.expect("it is answered");
    }
    (Allocated::count_of_thread() - before) / CALLS
}

/// How often a call may allocate: the futures of the client, of the handler and of what runs the
/// handler, and the request as Active Messages keep it.
const MOST: u64 = 4;

#[tokio::test]
async fn a_call_outside_of_any_trace_allocates_nothing_for_traces_and_metrics() {
    let (_server, client) = pair().await;
    allocations_per_call(&client).await;
    let untraced = allocations_per_call(&client).await;
    assert!(untraced <= MOST, "{untraced} allocations for a call");
    // The count does count: a context is written into metadata.
    let traced = TraceContext::root().scope(allocations_per_call(&client)).await;
    assert!(traced > untraced, "{traced} allocations for a call with a context");
}
