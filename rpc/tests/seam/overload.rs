//! Servers that are called more often than they can answer, over shared memory and sockets: what is
//! refused does not run, each call is answered, and what is held is bounded.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use doorbell_rpc::{Channel, Client, Code, Method, Request, Router, Server, Usage};
use futures_util::future::join_all;

/// Keeps its thread busy for [`WORK`].
const WORK: Method<u64, u64> = Method::new("work");
/// As [`WORK`], where the call is received.
const WORK_INLINE: Method<u64, u64> = Method::new("work inline");

/// How long a handler keeps its thread busy: much longer than calls may wait.
const BUSY: Duration = Duration::from_millis(10);
/// How long a call may wait for its handler to begin.
const WAIT: Duration = Duration::from_millis(1);

/// The calls of a burst, all of which are sent before any is answered.
const BURST: u64 = 200;

/// The longest that anything here may take.
const LONG: Duration = Duration::from_secs(60);

/// How many handlers have begun.
type Begun = Arc<AtomicUsize>;

fn router(begun: &Begun) -> Router {
    let handler = |begun: &Begun| {
        let begun = begun.clone();
        move |request: Request<u64>| {
            let begun = begun.clone();
            async move {
                begun.fetch_add(1, Ordering::SeqCst);
                std::thread::sleep(BUSY);
                Ok(request.into_inner())
            }
        }
    };
    Router::new().unary(WORK, handler(begun)).unary(WORK_INLINE, handler(begun)).inline(WORK_INLINE)
}

/// A server whose calls may wait for [`WAIT`], and a client.
async fn pair(device: &str) -> (Server, Client<Channel>, Channel, Begun) {
    let begun = Begun::default();
    let server = Server::builder().add_service(router(&begun)).shed_after(WAIT);
    let server = server.open(device).await.expect("the device opens");
    let channel = Channel::connect(server.name()).await.expect("the server is there");
    (server, Client::new(channel.clone()), channel, begun)
}

/// Calls in bursts, and returns how many calls were answered by handlers, and how many refused.
async fn bursts(client: &Client<Channel>, method: Method<u64, u64>) -> (usize, usize) {
    let (mut answered, mut refused) = (0, 0);
    for _ in 0..5 {
        let calls =
            (0..BURST).map(|number| async move { (number, client.unary(method, number).await) });
        for (number, outcome) in join_all(calls).await {
            match outcome {
                Ok(answer) => {
                    assert_eq!(answer.into_inner(), number);
                    answered += 1;
                }
                Err(status) => {
                    assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
                    assert!(status.message().contains("overloaded"), "{status}");
                    refused += 1;
                }
            }
        }
    }
    (answered, refused)
}

async fn calls_that_would_wait_for_too_long_are_refused_and_do_not_run(device: &str) {
    for method in [WORK, WORK_INLINE] {
        let (server, client, channel, begun) = pair(device).await;
        let (answered, refused) = bursts(&client, method).await;
        assert_eq!(answered + refused, 5 * BURST as usize);
        assert_eq!(begun.load(Ordering::SeqCst), answered, "each handler that began has answered");
        assert!(refused > 0, "all of {answered} calls were answered, though others had to wait");
        assert_eq!((server.usage(), channel.usage()), (Usage::default(), Usage::default()));
    }
}

async fn a_server_that_was_overloaded_takes_calls_again(device: &str) {
    for method in [WORK, WORK_INLINE] {
        let (_server, client, _channel, begun) = pair(device).await;
        bursts(&client, method).await;
        let before = begun.load(Ordering::SeqCst);
        // A call that nobody is before is refused only if the machine pauses for as long as it may
        // wait.
        let mut refused = 0;
        while let Err(status) = client.unary(method, 1).await {
            assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
            refused += 1;
            assert!(
                refused < 1000,
                "calls are refused by a server that has nothing to do: {status}"
            );
        }
        assert_eq!(begun.load(Ordering::SeqCst), before + 1);
    }
}

async fn a_call_whose_time_is_over_before_its_handler_can_begin_does_not_run(device: &str) {
    let begun = Begun::default();
    let server = Server::builder().add_service(router(&begun)).open(device).await;
    let server = server.expect("the device opens");
    let client = Client::new(Channel::connect(server.name()).await.expect("the server is there"));
    let calls = (0..BURST).map(|number| {
        let mut request = Request::new(number);
        request.set_timeout(3 * BUSY);
        client.unary(WORK, request)
    });
    let late = join_all(calls).await.into_iter().filter(|outcome| match outcome {
        Ok(_) => false,
        Err(status) => {
            assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
            true
        }
    });
    let late = late.count();
    // The server has seen all calls before this one.
    client.unary(WORK, 0).await.expect("it has no deadline");
    let begun = begun.load(Ordering::SeqCst);
    assert!(
        late > 0 && begun < BURST as usize,
        "{late} calls were late, and {begun} handlers began"
    );
    server.close().await.expect("clients take their answers");
    assert_eq!(server.usage(), Usage::default());
}

async fn a_server_holds_no_more_calls_than_may_run(device: &str) {
    const MOST: usize = 8;
    let held = Arc::new(AtomicUsize::new(0));
    let go = Arc::new(tokio::sync::Semaphore::new(0));
    let (most, gate) = (held.clone(), go.clone());
    let running = Arc::new(AtomicUsize::new(0));
    let router = Router::new().unary(WORK, move |request| {
        let (most, gate, running) = (most.clone(), gate.clone(), running.clone());
        async move {
            most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            gate.acquire().await.expect("nobody closes it").forget();
            running.fetch_sub(1, Ordering::SeqCst);
            Ok(request.into_inner())
        }
    });
    let server = Server::builder().add_service(router).most_running(MOST).open(device).await;
    let server = server.expect("the device opens");
    let client = Client::new(Channel::connect(server.name()).await.expect("the server is there"));
    let calls = (0..BURST).map(|number| {
        let (client, go) = (client.clone(), go.clone());
        async move {
            let outcome = client.unary(WORK, number).await;
            let refused = outcome.is_err_and(|status| status.code() == Code::ResourceExhausted);
            // From here on handlers may end.
            if refused {
                go.add_permits(BURST as usize);
            }
            usize::from(refused)
        }
    });
    let refused: usize = join_all(calls).await.into_iter().sum();
    assert!(held.load(Ordering::SeqCst) <= MOST);
    assert!((1..=BURST as usize - MOST).contains(&refused), "{refused} calls were refused");
    server.close().await.expect("clients take their answers");
    assert_eq!(server.usage(), Usage::default());
}

on_each_device!(
    calls_that_would_wait_for_too_long_are_refused_and_do_not_run,
    a_server_that_was_overloaded_takes_calls_again,
    a_call_whose_time_is_over_before_its_handler_can_begin_does_not_run,
    a_server_holds_no_more_calls_than_may_run,
);
