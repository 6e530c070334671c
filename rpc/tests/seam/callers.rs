//! Who calls, and interceptors that see each call and may refuse it.

use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use doorbell_rpc::{
    Channel, Client, Code, Method, Raw, Request, Response, Router, Server, ServerBuilder, Status,
};
use tower::{Service, ServiceExt};

/// The longest that anything here may take.
const LONG: Duration = Duration::from_secs(60);

const WHO: Method<(), String> = Method::new("who");
const LENGTH: Method<Bytes, Bytes, Raw> = Method::new("length");
const HOLDS: Method<Bytes, Bytes, Raw> = Method::new("holds");

/// What an interceptor has found out.
#[derive(Clone, PartialEq, Eq, Debug)]
struct User(String);

/// Says what handlers see of the caller.
fn router() -> Router {
    Router::new()
        .unary(WHO, |request: Request<()>| async move {
            let User(name) = request.extensions().get::<User>().cloned().unwrap_or(User("".into()));
            let caller = request.caller().map(|caller| format!("{caller:?}"));
            Ok(format!("{name} {}", caller.unwrap_or_default()))
        })
        .unary(
            LENGTH,
            |request| async move { Ok(Bytes::from(request.into_inner().len().to_string())) },
        )
        .unary(HOLDS, |request| async move {
            let _held: Request<Bytes> = request;
            std::future::pending::<Result<Bytes, Status>>().await
        })
}

async fn pair(device: &str, server: ServerBuilder) -> (Server, Client<Channel>) {
    let server = server.open(device).await.expect("the device opens");
    let channel = Channel::connect(server.name()).await.expect("the server is there");
    (server, Client::new(channel))
}

fn named(name: &str) -> Request<()> {
    let mut request = Request::new(());
    request.metadata_mut().insert("user", name.to_owned());
    request
}

/// Lets in who has a name, and leaves it for the handler.
fn admits(mut request: Request<()>) -> Result<Request<()>, Status> {
    let Some(name) = request.metadata().text("user").map(str::to_owned) else {
        return Err(Status::unauthenticated(format!("who calls {}?", request.method())));
    };
    request.extensions_mut().insert(User(name));
    Ok(request)
}

#[tokio::test]
async fn over_shared_memory_the_kernel_tells_a_server_the_user_and_process_of_its_callers() {
    let (_server, client) = pair("shm", Server::builder().add_service(router())).await;
    let told = client.unary(WHO, ()).await.expect("it is answered").into_inner();
    let user = std::fs::metadata("/proc/self").expect("Linux has it").uid();
    let process = std::process::id();
    let expected =
        format!(" Caller {{ address: None, process: Some({process}), user: Some({user}) }}");
    let old = " Caller { address: None, process: None, user: None }";
    if told == old {
        eprintln!("SKIPPED: this kernel hands out no descriptors of peers (Linux 6.5 does)");
        return;
    }
    assert_eq!(told, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_sockets_a_server_knows_the_addresses_of_its_callers() {
    let server = Server::builder().add_service(router()).open("udp:127.0.0.1:0").await;
    let server = server.expect("the device opens");
    for _ in 0..2 {
        let channel = Channel::builder().device("udp:127.0.0.1:0").connect(server.name()).await;
        let channel = channel.expect("the server is there");
        let address = channel.nic().address().to_string();
        let address = address.trim_start_matches("udp:");
        let told = Client::new(channel.clone()).unary(WHO, ()).await.expect("it is answered");
        let expected = format!(" Caller {{ address: Some({address}), process: None, user: None }}");
        assert_eq!(told.into_inner(), expected);
    }
}

async fn an_interceptor_refuses_calls_or_leaves_what_it_knows_for_the_handler(device: &str) {
    let (_server, client) =
        pair(device, Server::builder().add_service(router().intercept(admits))).await;
    let refused = client.unary(WHO, ()).await.expect_err("it has no name");
    assert_eq!((refused.code(), refused.message()), (Code::Unauthenticated, "who calls who?"));
    assert!(refused.has_not_run(), "{refused:?}");
    let told = client.unary(WHO, named("ann")).await.expect("it has a name").into_inner();
    assert!(told.starts_with("ann Caller"), "{told}");
}

async fn a_refused_call_with_a_long_body_waits_for_no_memory(device: &str) {
    let admits_some = |request: Request<()>| match request.method().path() {
        "length" => Err(Status::permission_denied("no lengths today")),
        _ => Ok(request),
    };
    let server = Server::builder().add_service(router()).body_memory(1 << 20);
    let (running, client) = pair(device, server.intercept(admits_some)).await;
    let holds = tokio::spawn({
        let client = client.clone();
        async move { client.unary(HOLDS, Bytes::from(vec![1; 1 << 20])).await }
    });
    while running.usage().body_memory == 0 {
        tokio::task::yield_now().await;
    }
    let refused = client.unary(LENGTH, Bytes::from(vec![1; 1 << 20])).await;
    assert_eq!(refused.expect_err("it is refused").code(), Code::PermissionDenied);
    holds.abort();
}

async fn interceptors_see_calls_of_all_methods_in_the_order_in_which_they_were_added(device: &str) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let notes = |who: &'static str| {
        let seen = seen.clone();
        move |request: Request<()>| {
            seen.lock().expect("nothing panics").push(who);
            Ok(request)
        }
    };
    let waits = {
        let notes = notes("second of the router");
        move |request| {
            let noted = notes(request);
            async move {
                tokio::task::yield_now().await;
                noted
            }
        }
    };
    // Methods that are merged into a router later are seen by it, too.
    let inner = router().intercept(notes("of the service"));
    let router = Router::new().intercept(notes("first of the router")).intercept_async(waits);
    let server = Server::builder().add_service(router.merge(inner).inline(WHO));
    let (_server, client) = pair(device, server.intercept(notes("of the server"))).await;
    client.unary(WHO, ()).await.expect("all let it through");
    let order = ["of the server", "first of the router", "second of the router", "of the service"];
    assert_eq!(std::mem::take(&mut *seen.lock().expect("nothing panics")), order);
    // A long body is received between the interceptors and the handler.
    let len = client.unary(LENGTH, Bytes::from(vec![1; 100_000])).await.expect("it goes through");
    assert_eq!(len.into_inner(), "100000");
    assert_eq!(*seen.lock().expect("nothing panics"), order);
}

async fn an_interceptor_that_panics_fails_its_call_alone(device: &str) {
    let panics = |request: Request<()>| match request.metadata().text("user") {
        Some("eve") => panic!("who let her in?"),
        _ => Ok(request),
    };
    let (_server, client) =
        pair(device, Server::builder().add_service(router()).intercept(panics)).await;
    let panics = client.unary(WHO, named("eve")).await.expect_err("panics");
    assert_eq!(
        (panics.code(), panics.message()),
        (Code::Internal, "an interceptor of who panicked")
    );
    assert!(panics.has_not_run(), "{panics:?}");
    let mut long = Request::new(Bytes::from(vec![1; 100_000]));
    long.metadata_mut().insert("user", "eve");
    assert_eq!(client.unary(LENGTH, long).await.expect_err("panics").code(), Code::Internal);
    client.unary(WHO, named("ann")).await.expect("the server is fine");
}

async fn an_interceptor_that_returns_another_request_changes_neither_caller_nor_deadline(
    device: &str,
) {
    let router = Router::new().unary(WHO, |request: Request<()>| async move {
        assert_eq!(request.method(), WHO.id());
        let caller = request.caller().map(|caller| format!("{caller:?}"));
        Ok(format!("{caller:?} {}", request.deadline().is_some()))
    });
    let (_server, client) = pair(device, Server::builder().add_service(router.clone())).await;
    let server = Server::builder().add_service(router).intercept(|_| Ok(Request::new(())));
    let (_other, replaced) = pair(device, server).await;
    let request = || {
        let mut request = Request::new(());
        request.set_timeout(LONG);
        request
    };
    let plain = client.unary(WHO, request()).await.expect("an answer").into_inner();
    let kept = replaced.unary(WHO, request()).await.expect("an answer").into_inner();
    assert!(kept.starts_with("Some(") && kept.ends_with("true"), "{kept}");
    // The channels of a process on one device have one NIC.
    assert_eq!(kept, plain);
}

async fn an_interceptor_that_waits_ends_with_its_call(device: &str) {
    let waits = |_| std::future::pending::<Result<Request<()>, Status>>();
    let (server, client) =
        pair(device, Server::builder().add_service(router()).intercept_async(waits)).await;
    for long in [1, 100_000] {
        let mut request = Request::new(Bytes::from(vec![1; long]));
        request.set_timeout(Duration::from_millis(50));
        let late = client.unary(LENGTH, request).await.expect_err("it never begins");
        assert_eq!(late.code(), Code::DeadlineExceeded, "{late}");
    }
    while server.running() > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn a_router_without_a_server_has_its_interceptors_see_calls_that_have_no_caller() {
    let mut router = router().intercept(admits);
    let client = Client::new(router.clone());
    let refused = client.unary(WHO, ()).await.expect_err("it has no name");
    assert_eq!(refused.code(), Code::Unauthenticated);
    assert_eq!(client.unary(WHO, named("ann")).await.expect("it has one").into_inner(), "ann ");
    let request = Request::to(WHO.id(), doorbell_rpc::Body::empty());
    let answer: Result<Response<_>, _> = router.ready().await.expect("it is").call(request).await;
    assert_eq!(answer.expect_err("it has no name").code(), Code::Unauthenticated);
}

on_each_device!(
    an_interceptor_refuses_calls_or_leaves_what_it_knows_for_the_handler,
    a_refused_call_with_a_long_body_waits_for_no_memory,
    interceptors_see_calls_of_all_methods_in_the_order_in_which_they_were_added,
    an_interceptor_that_panics_fails_its_call_alone,
    an_interceptor_that_returns_another_request_changes_neither_caller_nor_deadline,
    an_interceptor_that_waits_ends_with_its_call,
);
