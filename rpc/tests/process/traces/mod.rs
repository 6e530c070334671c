//! Traces of calls: the spans of both ends, and the context that goes from one to the other.

mod seen;

use std::time::Duration;

use doorbell_rpc::{
    Channel, Client, Method, Request, Router, Server, Status, Streaming, TraceContext,
    trace_context,
};
use futures_util::{StreamExt, stream};
use tokio::time::timeout;
use tracing::Instrument;

use seen::{Seen, closed};

const CONTEXT: Method<(), Option<String>> = Method::new("context");
const RELAY: Method<String, Option<String>> = Method::new("relay");
const FAILS: Method<(), ()> = Method::new("fails");
const FOREVER: Method<(), ()> = Method::new("forever");
const COUNT: Method<u64, u64> = Method::new("count");
const ENDLESS: Method<(), u64> = Method::new("endless");
const BROKEN: Method<(), u64> = Method::new("broken");
const CONTEXTS: Method<u64, Option<String>> = Method::new("contexts");

/// Declares each test, an async function of a device, over shared memory and over sockets.
macro_rules! on_each_device {
    ($($test:ident),* $(,)?) => {
        mod over_shared_memory {
            $(#[tokio::test]
            async fn $test() {
                let _alone = crate::ALONE.lock().await;
                let test = super::$test("shm");
                tokio::time::timeout(super::LONG, test).await.expect("it ends");
            })*
        }
        mod over_sockets {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                let _alone = crate::ALONE.lock().await;
                let test = super::$test("udp:127.0.0.1:0");
                tokio::time::timeout(super::LONG, test).await.expect("it ends");
            })*
        }
    };
}

/// The example of the recommendation.
const GIVEN: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// The longest that anything here may take.
const LONG: Duration = Duration::from_secs(30);

/// The context of the running task, with what tracing systems pass on.
fn context_here() -> Option<String> {
    let context = trace_context()?;
    Some(format!("{context} {}", context.state().unwrap_or("")))
}

fn router() -> Router {
    Router::new()
        .unary(CONTEXT, |_| async {
            tracing::info!("the handler runs");
            Ok(context_here())
        })
        .unary(RELAY, |request| async move {
            let channel = Channel::connect(request.into_inner()).await?;
            Ok(Client::new(channel).unary(CONTEXT, ()).await?.into_inner())
        })
        .unary(FAILS, |_| async { Err::<(), _>(Status::not_found("it is not here")) })
        .unary(FOREVER, |_| std::future::pending::<Result<(), Status>>())
        .server_streaming(COUNT, |request| async move {
            Ok(Streaming::new(stream::iter((0..request.into_inner()).map(Ok))))
        })
        .server_streaming(ENDLESS, |_| async { Ok(Streaming::new(stream::iter((0..).map(Ok)))) })
        .server_streaming(BROKEN, |_| async {
            Ok(Streaming::new(stream::iter([Ok(1), Err(Status::data_loss("the disk is broken"))])))
        })
        .server_streaming(CONTEXTS, |request| async move {
            let contexts = stream::iter(0..request.into_inner());
            Ok(Streaming::new(contexts.map(|_| Ok(context_here()))))
        })
}

/// A server and a client, both of which are traced.
async fn pair(device: &str) -> (Server, Client<Channel>) {
    seen::install();
    let server = Server::builder().add_service(router()).open(device).await;
    let server = server.expect("the device opens");
    let channel = Channel::connect(server.name()).await.expect("the server is there");
    (server, Client::new(channel))
}

/// The span of the one call of a method to a server, when the call is over.
async fn call_to(server: &Server, method: &str) -> Seen {
    let peer = server.name().to_string();
    closed(|span| {
        span.name == "call" && span.field("method") == method && span.field("peer") == peer
    })
    .await
}

/// The span of the handler that a call has run.
async fn handled(call: &Seen) -> Seen {
    let parent = call.field("span_id");
    closed(|span| {
        span.name == "handle" && span.fields.get("parent_id").is_some_and(|id| id == parent)
    })
    .await
}

async fn spans_of_both_ends_join_by_their_ids(device: &str) {
    let (server, client) = pair(device).await;
    let context = client.unary(CONTEXT, ()).await.expect("it is answered").into_inner();
    let call = call_to(&server, "context").await;
    let handle = handled(&call).await;
    assert_eq!(handle.field("trace_id"), call.field("trace_id"));
    assert!(!call.fields.contains_key("parent_id"), "the call is the root: {call:?}");
    assert_eq!((handle.field("method"), handle.field("code")), ("context", "Ok"));
    assert_eq!(call.field("code"), "Ok");
    assert!(!handle.field("peer").is_empty());
    // What the handler sees is its own span.
    let expected = format!("00-{}-{}-03 ", handle.field("trace_id"), handle.field("span_id"));
    assert_eq!(context, Some(expected));
}

async fn a_handler_runs_in_its_span_whoever_receives_the_request(device: &str) {
    let (server, client) = pair(device).await;
    let program = tracing::info_span!("program");
    client.unary(CONTEXT, ()).instrument(program).await.expect("it is answered");
    let call = call_to(&server, "context").await;
    let handle = handled(&call).await;
    assert_eq!(handle.events, ["the handler runs"]);
    assert_eq!((call.within, handle.within), (Some("program"), None));
}

async fn calls_that_a_handler_makes_are_children_of_its_span(device: &str) {
    let (near, client) = pair(device).await;
    let (far, _) = pair(device).await;
    client.unary(RELAY, far.name().to_string()).await.expect("it is relayed");
    let relay = handled(&call_to(&near, "relay").await).await;
    let call = call_to(&far, "context").await;
    assert_eq!(call.field("trace_id"), relay.field("trace_id"));
    assert_eq!(call.field("parent_id"), relay.field("span_id"));
}

async fn a_context_in_the_metadata_is_the_parent_and_its_state_is_passed_on(device: &str) {
    let (server, client) = pair(device).await;
    let mut request = Request::new(());
    request.metadata_mut().insert("traceparent", GIVEN);
    request.metadata_mut().insert("tracestate", "vendor=1");
    let context = client.unary(CONTEXT, request).await.expect("it is answered").into_inner();
    let call = call_to(&server, "context").await;
    assert_eq!(call.field("trace_id"), &GIVEN[3..35]);
    assert_eq!(call.field("parent_id"), &GIVEN[36..52]);
    let handle = handled(&call).await;
    let expected = format!("00-{}-{}-01 vendor=1", &GIVEN[3..35], handle.field("span_id"));
    assert_eq!(context, Some(expected));
}

async fn a_malformed_context_is_ignored(device: &str) {
    let (server, client) = pair(device).await;
    let mut request = Request::new(());
    request.metadata_mut().insert("traceparent", GIVEN.to_uppercase());
    request.metadata_mut().insert("tracestate", "vendor=1");
    let context = client.unary(CONTEXT, request).await.expect("it is answered").into_inner();
    let call = call_to(&server, "context").await;
    assert!(!call.fields.contains_key("parent_id"), "the call is the root: {call:?}");
    assert!(context.expect("there is a new trace").ends_with("-03 "));
}

async fn calls_within_a_scope_are_children_of_its_context(device: &str) {
    let (server, client) = pair(device).await;
    let context = TraceContext::root();
    context.clone().scope(client.unary(CONTEXT, ())).await.expect("it is answered");
    let call = call_to(&server, "context").await;
    assert_eq!(call.field("trace_id"), format!("{:032x}", context.trace_id()));
    assert_eq!(call.field("parent_id"), format!("{:016x}", context.span_id()));
}

async fn what_produces_a_stream_inherits_as_the_handler_does(device: &str) {
    let (server, client) = pair(device).await;
    let contexts = client.server_streaming(CONTEXTS, 3).await.expect("it streams").into_inner();
    let contexts: Vec<_> = contexts.map(|context| context.expect("a context")).collect().await;
    let handle = handled(&call_to(&server, "contexts").await).await;
    let expected = format!("00-{}-{}-03 ", handle.field("trace_id"), handle.field("span_id"));
    assert_eq!(contexts, vec![Some(expected); 3]);
}

async fn spans_have_the_code_that_their_call_has_ended_with(device: &str) {
    let (server, client) = pair(device).await;
    client.unary(FAILS, ()).await.expect_err("it fails");
    let call = call_to(&server, "fails").await;
    assert_eq!((call.field("code"), handled(&call).await.field("code")), ("NotFound", "NotFound"));

    let numbers = client.server_streaming(COUNT, 3).await.expect("it streams").into_inner();
    assert_eq!(numbers.count().await, 3);
    let call = call_to(&server, "count").await;
    assert_eq!((call.field("code"), handled(&call).await.field("code")), ("Ok", "Ok"));

    let mut numbers = client.server_streaming(BROKEN, ()).await.expect("it streams").into_inner();
    numbers.message().await.expect("a number");
    numbers.message().await.expect_err("it fails");
    drop(numbers);
    let call = call_to(&server, "broken").await;
    assert_eq!((call.field("code"), handled(&call).await.field("code")), ("DataLoss", "DataLoss"));
}

async fn spans_of_calls_that_nobody_waits_for_any_more_end_as_cancelled(device: &str) {
    let (server, client) = pair(device).await;
    let call = client.unary(FOREVER, ());
    timeout(Duration::from_millis(50), call).await.expect_err("it never ends");
    let call = call_to(&server, "forever").await;
    let codes = (call.field("code"), &*handled(&call).await.fields["code"].clone());
    assert_eq!(codes, ("Cancelled", "Cancelled"));

    let mut numbers = client.server_streaming(ENDLESS, ()).await.expect("it streams").into_inner();
    numbers.message().await.expect("a number");
    drop(numbers);
    let call = call_to(&server, "endless").await;
    assert_eq!(
        (call.field("code"), handled(&call).await.field("code")),
        ("Cancelled", "Cancelled")
    );
}

async fn spans_of_calls_that_take_too_long_end_with_their_deadline(device: &str) {
    let (server, client) = pair(device).await;
    let mut request = Request::new(());
    request.set_timeout(Duration::from_millis(50));
    client.unary(FOREVER, request).await.expect_err("it never ends");
    let call = call_to(&server, "forever").await;
    assert_eq!(call.field("code"), "DeadlineExceeded");
    let handle = handled(&call).await;
    // Whichever is first: the server's own clock, or the word that the caller has given up.
    assert!(["DeadlineExceeded", "Cancelled"].contains(&handle.field("code")), "{handle:?}");
}

on_each_device!(
    spans_of_both_ends_join_by_their_ids,
    a_handler_runs_in_its_span_whoever_receives_the_request,
    calls_that_a_handler_makes_are_children_of_its_span,
    a_context_in_the_metadata_is_the_parent_and_its_state_is_passed_on,
    a_malformed_context_is_ignored,
    calls_within_a_scope_are_children_of_its_context,
    what_produces_a_stream_inherits_as_the_handler_does,
    spans_have_the_code_that_their_call_has_ended_with,
    spans_of_calls_that_nobody_waits_for_any_more_end_as_cancelled,
    spans_of_calls_that_take_too_long_end_with_their_deadline,
);
