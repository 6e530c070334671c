//! Calls and notices: kinds of messages that are a name and types.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use doorbell_am::{
    Call, CallError, Endpoint, EndpointConfig, Flow, Handlers, Notice, Peer, Policy, Request,
    SendError, Undeliverable,
};
use tokio::sync::mpsc;

use crate::common::{Over, endpoint, endpoint_with, everywhere};

const ADD: Call<(u64, u64), u64> = Call::new("add");
const DIVIDE: Call<(i32, i32), i32> = Call::new("divide");
const LATER: Call<u64, String> = Call::new("later");
const REVERSE: Call<Bytes, Bytes> = Call::new("reverse");
const MEAN: Call<Vec<f64>, Option<f64>> = Call::new("mean");
const JOIN: Call<(u64, String), String> = Call::new("join");
const LENGTH: Call<u64, (u64, u64)> = Call::new("length");
const SAY: Notice<(u32, String)> = Notice::new("say");
const BACK: Call<u64, u64> = Call::new("back");

/// An endpoint with these handlers, and a peer of another that is that.
async fn connected<S>(over: Over, handlers: Handlers<S>) -> (Peer, [Endpoint; 2]) {
    let (server, client) = (endpoint(over, handlers).await, endpoint(over, Handlers::new()).await);
    let peer = client.connect(server.name()).await.expect("it is there");
    (peer, [server, client])
}

#[test]
fn a_handler_returns_the_answer_of_a_call() {
    everywhere(|over| async move {
        let (peer, _ends) = connected(
            over,
            Handlers::new()
                .on(ADD, |_, (a, b)| a + b)
                .on_async(LATER, |_, millis| async move {
                    tokio::time::sleep(Duration::from_millis(millis)).await;
                    format!("after {millis} ms")
                })
                .on(JOIN, |_, (count, text)| text.repeat(count as usize)),
        )
        .await;
        assert_eq!(peer.call(ADD, (2, 3)).await, Ok(5));
        assert_eq!(peer.call(LATER, 2).await.as_deref(), Ok("after 2 ms"));
        assert_eq!(peer.call(JOIN, (3, "ab".to_owned())).await.as_deref(), Ok("ababab"));
    });
}

#[test]
fn payloads_go_there_and_back_at_every_size() {
    everywhere(|over| async move {
        let (peer, _ends) = connected(
            over,
            Handlers::new()
                .on(REVERSE, |_, bytes| bytes.iter().rev().copied().collect::<Bytes>())
                .on_async(MEAN, |_, numbers| async move {
                    let sum: f64 = numbers.iter().sum();
                    (!numbers.is_empty()).then(|| sum / numbers.len() as f64)
                }),
        )
        .await;
        for len in [0, 1, 8, 63, 64, 65, 500, 4095, 4096] {
            let bytes: Bytes = (0..len).map(|at| at as u8).collect();
            let back = peer.call(REVERSE, bytes.clone()).await.expect("it answers");
            assert!(back.iter().rev().eq(bytes.iter()), "{len} bytes");
        }
        assert_eq!(peer.call(MEAN, vec![1.0, 2.5]).await, Ok(Some(1.75)));
        assert_eq!(peer.call(MEAN, vec![]).await, Ok(None));
        let many: Vec<f64> = (0..512).map(f64::from).collect();
        assert_eq!(peer.call(MEAN, many).await, Ok(Some(255.5)));
        let too_many = peer.call(MEAN, vec![0.0; 513]).await.expect_err("it is too long");
        let text = too_many.to_string();
        assert!(
            text.contains("`mean` of") && text.contains("4104") && text.contains("4096"),
            "{text}"
        );
    });
}

#[test]
fn a_payload_beside_the_arguments_is_found_in_the_request() {
    everywhere(|over| async move {
        const ALSO: Call<u64, (u64, u64)> = Call::new("also");
        let (peer, _ends) = connected(
            over,
            Handlers::new()
                .on(LENGTH, |request, n| (n, request.payload().len() as u64))
                .on_async(ALSO, |request, n| async move { (n, request.payload().len() as u64) }),
        )
        .await;
        for len in [0, 5, 100, 4096] {
            let found = peer.call_with(LENGTH, 7, vec![1; len]).await;
            assert_eq!(found, Ok((7, len as u64)));
            assert_eq!(
                peer.call_with(ALSO, 8, Bytes::from(vec![1; len])).await,
                Ok((8, len as u64))
            );
        }
        assert_eq!(peer.call_with(LENGTH, 7, b"abc").await, Ok((7, 3)));
        assert_eq!(peer.call_with(LENGTH, 7, "abcd").await, Ok((7, 4)));
        let boxed: Box<[u8]> = [1, 2].into();
        assert_eq!(peer.call_with(LENGTH, 7, boxed).await, Ok((7, 2)));
    });
}

/// A program that keeps payloads holds the buffers in which they came, and other buffers serve
/// meanwhile.
#[test]
fn received_payloads_may_be_kept_for_any_time() {
    everywhere(|over| async move {
        const KEEP: Call<(u64, Bytes)> = Call::new("keep");
        let kept = Arc::<Mutex<Vec<(u64, Bytes)>>>::default();
        let handlers = Handlers::with(kept.clone()).on(KEEP, |kept, _, what| {
            kept.lock().expect("nobody panics").push(what);
        });
        let (peer, ends) = connected(over, handlers).await;
        let content = |number: u64| Bytes::from(vec![number as u8; 1000 + number as usize]);
        for number in 0..200 {
            assert_eq!(peer.call(KEEP, (number, content(number))).await, Ok(()));
        }
        drop((peer, ends));
        let kept = std::mem::take(&mut *kept.lock().expect("nobody panics"));
        assert_eq!(kept.len(), 200);
        assert!(kept.iter().all(|(number, bytes)| *bytes == content(*number)));
    });
}

#[test]
fn an_error_that_a_handler_returns_reaches_its_caller_with_its_text_and_its_sources() {
    everywhere(|over| async move {
        const PARSE: Call<String, u64> = Call::new("parse");
        const READ: Call<(), u64> = Call::new("read");
        let (peer, _ends) = connected(
            over,
            Handlers::new()
                .on(DIVIDE, |_, (a, b)| a.checked_div(b).ok_or("there is no such quotient"))
                .on_async(PARSE, |_, text| async move { text.parse::<u64>() })
                .on(READ, |_, ()| {
                    let read = std::fs::read("/nowhere/at all");
                    anyhow::Context::context(read, "reading what was asked for").map(|_| 1)
                }),
        )
        .await;
        assert_eq!(peer.call(DIVIDE, (7, -2)).await, Ok(-3));
        let why = peer.call(DIVIDE, (1, 0)).await.expect_err("there is no quotient");
        assert_eq!(why.failure(), Some("there is no such quotient"));
        let name = peer_name(&why);
        assert_eq!(
            why.to_string(),
            format!("calling `divide` of {name}: its handler failed: there is no such quotient")
        );
        assert_eq!(peer.call(PARSE, "7".to_owned()).await, Ok(7));
        let why = peer.call(PARSE, "seven".to_owned()).await.expect_err("it is no number");
        assert_eq!(why.failure(), Some("invalid digit found in string"));
        let why = peer.call(READ, ()).await.expect_err("there is no such file");
        let text = why.failure().expect("the handler failed");
        assert!(text.starts_with("reading what was asked for: No such file"), "{text}");
    });
}

fn peer_name(why: &CallError) -> String {
    match why {
        CallError::Failed { call, .. } => call.peer().to_owned(),
        other => panic!("not as it should be: {other}"),
    }
}

#[test]
fn the_text_of_an_error_is_cut_where_the_caller_takes_no_more() {
    everywhere(|over| async move {
        const COMPLAIN: Call<u64, ()> = Call::new("complain");
        let complains = |count: u64| Err::<(), _>("ä".repeat(count as usize));
        let (peer, _ends) =
            connected(over, Handlers::new().on(COMPLAIN, move |_, count| complains(count))).await;
        for (asked, found) in [(0, 0), (2048, 4096), (2049, 4096), (100_000, 4096)] {
            let why = peer.call(COMPLAIN, asked).await.expect_err("it complains");
            assert_eq!(why.failure().map(str::len), Some(found));
        }
    });
}

#[test]
fn notices_run_their_handlers_in_the_order_in_which_they_were_sent() {
    everywhere(|over| async move {
        let (said, mut heard) = mpsc::unbounded_channel();
        let handlers = Handlers::new().on(SAY, move |_, what| drop(said.send(what)));
        let (peer, _ends) = connected(over, handlers).await;
        for number in 0..1000 {
            peer.notify(SAY, (number, format!("word {number}"))).await.expect("it is sent");
        }
        for number in 0..1000 {
            assert_eq!(heard.recv().await, Some((number, format!("word {number}"))));
        }
    });
}

#[test]
fn handlers_share_a_state_by_reference_or_by_clones() {
    everywhere(|over| async move {
        const PUT: Call<(u64, Bytes), bool> = Call::new("put");
        const GET: Call<u64, Option<Bytes>> = Call::new("get");
        type Table = Arc<Mutex<HashMap<u64, Bytes>>>;
        let table = Table::default();
        let handlers = Handlers::with(table.clone())
            .on(PUT, |table, _, (key, value)| {
                table.lock().expect("nobody panics").insert(key, value).is_some()
            })
            .on_async(GET, |table, _, key| async move {
                table.lock().expect("nobody panics").get(&key).cloned()
            });
        let (peer, _ends) = connected(over, handlers).await;
        assert_eq!(peer.call(GET, 7).await, Ok(None));
        let value = Bytes::from_static(b"seven");
        assert_eq!(peer.call(PUT, (7, value.clone())).await, Ok(false));
        assert_eq!(peer.call(GET, 7).await, Ok(Some(value.clone())));
        assert_eq!(peer.call(PUT, (7, value)).await, Ok(true));
        assert_eq!(table.lock().expect("nobody panics").len(), 1);
    });
}

/// The peer of a request is one that this endpoint has not mapped.
#[test]
fn an_asynchronous_handler_calls_back_whom_it_is_called_by() {
    everywhere(|over| async move {
        let calls_back = Handlers::new().on_async(BACK, |request, number| async move {
            request.peer().call(ADD, (number, 1)).await
        });
        let server = endpoint(over, calls_back).await;
        let client = endpoint(over, Handlers::new().on(ADD, |_, (a, b)| a + b)).await;
        let peer = client.connect(server.name()).await.expect("it is there");
        assert_eq!(peer.call(BACK, 41).await, Ok(42));
    });
}

#[test]
fn a_name_that_the_peer_does_not_have_or_has_with_other_types_fails_the_calls_that_name_it() {
    everywhere(|over| async move {
        const OTHER: Call<(u32, u64), u64> = Call::new("add");
        const OTHER_NOTICE: Notice<(u64, u64)> = Notice::new("add");
        let (peer, _ends) = connected(
            over,
            Handlers::new().on(ADD, |_, (a, b)| a + b).on(LATER, |_, _| String::new()),
        )
        .await;
        let ends_with = |why: &CallError, end: &str| {
            assert!(why.to_string().ends_with(end), "{why}");
        };
        let why = peer.call(DIVIDE, (1, 2)).await.expect_err("it has none");
        ends_with(
            &why,
            "the request was not sent: the peer has no handler of that name: it has `add`, `later`",
        );
        let why = peer.call(OTHER, (1, 2)).await.expect_err("it has another");
        ends_with(
            &why,
            "it is a call of (u32, u64) that answers u64 in this program, and a call of (u64, u64) that \
             answers u64 at the peer: both must declare the same types, and have the same order of bytes",
        );
        let why = peer.notify(OTHER_NOTICE, (1, 2)).await.expect_err("it has another");
        assert!(
            why.to_string().contains(": it is a notice of (u64, u64) in this program"),
            "{why}"
        );
        // And nothing else fails.
        assert_eq!(peer.call(ADD, (2, 3)).await, Ok(5));
    });
}

#[test]
fn a_peer_without_named_handlers_says_that_it_has_none() {
    everywhere(|over| async move {
        let (peer, _ends) = connected(over, Handlers::new()).await;
        let why = peer.call(ADD, (1, 2)).await.expect_err("it has none");
        assert!(why.to_string().contains("it has no handler that has a name"), "{why}");
    });
}

/// The listing of so many takes several answers.
#[test]
fn each_of_many_handlers_with_long_names_is_found() {
    everywhere(|over| async move {
        let name = |number: u64| -> &'static str {
            format!("handler {number} {}", "of a long name ".repeat(15)).leak()
        };
        let kinds: Vec<Call<u64, u64>> = (0..100).map(|number| Call::new(name(number))).collect();
        let handlers = kinds.iter().zip(0..).fold(Handlers::new(), |handlers, (&kind, number)| {
            handlers.on(kind, move |_, other| number * other)
        });
        let (peer, _ends) = connected(over, handlers).await;
        for (&kind, number) in kinds.iter().zip(0..) {
            assert_eq!(peer.call(kind, 3).await, Ok(3 * number));
        }
    });
}

#[test]
fn a_handler_that_panics_is_told_of_and_others_go_on() {
    everywhere(|over| async move {
        const PANIC: Call<(), u64> = Call::new("panic");
        const LATER_PANIC: Call<(), u64> = Call::new("panic later");
        let (peer, _ends) = connected(
            over,
            Handlers::new()
                .on(PANIC, |_, ()| -> u64 { panic!("as it is to") })
                .on_async(LATER_PANIC, |_, ()| async {
                    tokio::task::yield_now().await;
                    if true { panic!("as it is to") } else { 1 }
                })
                .on(ADD, |_, (a, b)| a + b),
        )
        .await;
        for kind in [PANIC, LATER_PANIC] {
            let why = peer.call(kind, ()).await.expect_err("it panics");
            assert_eq!(why.undeliverable(), Some(Undeliverable::Panicked));
        }
        assert_eq!(peer.call(ADD, (2, 3)).await, Ok(5));
    });
}

#[test]
fn an_answer_that_is_longer_than_the_caller_takes_is_told_of() {
    everywhere(|over| async move {
        const GROW: Call<u64, Bytes> = Call::new("grow");
        let handlers = Handlers::new().on(GROW, |_, len| Bytes::from(vec![0; len as usize]));
        let (peer, _ends) = connected(over, handlers).await;
        assert_eq!(peer.call(GROW, 4096).await.map(|bytes| bytes.len()), Ok(4096));
        let why = peer.call(GROW, 4097).await.expect_err("it is too long");
        assert_eq!(why.undeliverable(), Some(Undeliverable::LongReply));
    });
}

#[test]
fn typed_calls_go_by_every_policy_and_flow() {
    everywhere(|over| async move {
        let configs = [
            EndpointConfig { policy: Policy::Apart, ..EndpointConfig::default() },
            EndpointConfig { policy: Policy::PerSize, ..EndpointConfig::default() },
            EndpointConfig { flow: Flow::Nic { receives: 8 }, ..EndpointConfig::default() },
            EndpointConfig { credits: 1, ..EndpointConfig::default() },
        ];
        for config in configs {
            let serves = Handlers::new()
                .on(REVERSE, |_, bytes| bytes.iter().rev().copied().collect::<Bytes>())
                .on_async(BACK, |request, number| async move {
                    request.peer().call(ADD, (number, 1)).await
                });
            let server = endpoint_with(over, serves, config.clone()).await;
            let calls = Handlers::new().on(ADD, |_, (a, b)| a + b);
            let client = endpoint_with(over, calls, config).await;
            let peer = client.connect(server.name()).await.expect("it is there");
            for len in [0, 10, 64, 65, 500, 2000, 4096] {
                let bytes: Bytes = (0..len).map(|at| at as u8).collect();
                let back = peer.call(REVERSE, bytes.clone()).await.expect("it answers");
                assert!(back.iter().rev().eq(bytes.iter()), "{len} bytes");
            }
            assert_eq!(peer.call(BACK, 41).await, Ok(42));
        }
    });
}

#[test]
fn an_endpoint_may_connect_to_itself_and_again_to_another_as_often_as_it_likes() {
    everywhere(|over| async move {
        let own = endpoint(over, Handlers::new().on(ADD, |_, (a, b)| a + b)).await;
        let other = endpoint(over, Handlers::new()).await;
        let peer = own.connect(own.name()).await.expect("it is there");
        assert_eq!(peer.call(ADD, (2, 3)).await, Ok(5));
        for _ in 0..2000 {
            let peer = other.connect(own.name().to_string()).await.expect("it is there");
            assert_eq!(peer.call(ADD, (2, 3)).await, Ok(5));
        }
        assert!(matches!(other.peer(1), Err(SendError::NotMapped(1))), "it has one place");
        assert_eq!(other.peer(0).map(|peer| peer.name()), Ok(Some(own.name().clone())));
        assert_ne!(other.peer(0), Ok(peer), "that is another connection");
        let peer = other.peer(0).expect("it is there");
        assert_eq!(peer.disconnect().await, Ok(()));
        assert!(matches!(peer.disconnect().await, Err(SendError::NotConnected { .. })));
        assert!(peer.call(ADD, (2, 3)).await.is_err());
        let again = other.connect(own.name()).await.expect("it is there");
        assert_eq!(again.call(ADD, (2, 3)).await, Ok(5));
        let why = other.connect("udp:127.0.0.1").await.expect_err("that is no name");
        assert!(why.to_string().contains("ADDRESS#SERVICE"), "{why}");
    });
}

/// A handler may be a function, by its name.
fn add(_: &Request<'_>, (a, b): (u64, u64)) -> u64 {
    a + b
}

async fn later(
    state: Arc<u64>,
    request: doorbell_am::Received,
    number: u64,
) -> Result<u64, CallError> {
    request.peer().call(ADD, (number, *state)).await
}

#[test]
fn functions_are_handlers_too() {
    everywhere(|over| async move {
        let serves = Handlers::with(Arc::new(7)).on_async(BACK, later);
        let server = endpoint(over, serves.merge(Handlers::new().on(ADD, add))).await;
        let client = endpoint(over, Handlers::new().on(ADD, add)).await;
        let peer = client.connect(server.name()).await.expect("it is there");
        assert_eq!(peer.call(BACK, 35).await, Ok(42));
        assert_eq!(peer.call(ADD, (2, 3)).await, Ok(5));
    });
}

/// A peer has eight credits at first, and gets one more with each answer while it uses most of
/// them.
#[test]
fn a_peer_that_has_many_calls_under_way_gets_more_credits() {
    everywhere(|over| async move {
        const HOLD: Call<u64, u64> = Call::new("hold");
        let (begun, mut begins) = mpsc::unbounded_channel();
        let (goes_on, _) = tokio::sync::broadcast::channel::<()>(1);
        let waits = goes_on.clone();
        let handlers = Handlers::new().on_async(HOLD, move |_, number| {
            // Whoever hears that it has begun can have it go on.
            let mut until = waits.subscribe();
            begun.send(()).expect("it is awaited");
            async move {
                let _ = until.recv().await;
                number
            }
        });
        let (peer, _ends) = connected(over, handlers).await;
        let mut under_way = 8;
        while under_way < 64 {
            let calls: Vec<_> = (0..200)
                .map(|number| {
                    let peer = peer.clone();
                    tokio::spawn(async move { peer.call(HOLD, number).await })
                })
                .collect();
            // No more begin before any is answered.
            for _ in 0..under_way {
                begins.recv().await.expect("it begins");
            }
            goes_on.send(()).expect("they wait");
            let mut more = 0;
            for _ in under_way..200 {
                begins.recv().await.expect("it begins");
                more += 1;
                let _ = goes_on.send(());
            }
            assert_eq!(more + under_way, 200);
            while calls.iter().any(|call| !call.is_finished()) {
                let _ = goes_on.send(());
                tokio::task::yield_now().await;
            }
            under_way *= 2;
        }
    });
}

/// Spends all first credits on calls that wait for a call behind them.
#[test]
fn calls_that_all_wait_leave_credits_for_what_they_wait_for() {
    everywhere(|over| async move {
        const WAIT: Call<u64, u64> = Call::new("wait");
        const GO_ON: Call<()> = Call::new("go on");
        for waiting in [8, 40] {
            let goes_on = Arc::new(tokio::sync::Semaphore::new(0));
            let handlers = Handlers::with(goes_on)
                .on_async(WAIT, |goes_on, _, number| async move {
                    goes_on.acquire().await.expect("it is open").forget();
                    number
                })
                .on(GO_ON, move |goes_on, _, ()| goes_on.add_permits(waiting));
            let (peer, _ends) = connected(over, handlers).await;
            let calls: Vec<_> = (0..waiting as u64)
                .map(|number| {
                    let peer = peer.clone();
                    tokio::spawn(async move { peer.call(WAIT, number).await })
                })
                .collect();
            // Behind the others, which have begun to wait for credits.
            tokio::task::yield_now().await;
            assert_eq!(peer.call(GO_ON, ()).await, Ok(()));
            for (call, number) in calls.into_iter().zip(0..) {
                assert_eq!(call.await.expect("no panic"), Ok(number));
            }
        }
    });
}

/// Keeps received bytes for longer than the endpoint, whose NIC goes all the same.
#[tokio::test]
async fn bytes_that_are_kept_do_not_keep_a_device() {
    let server = endpoint(Over::Udp, Handlers::new().on(REVERSE, |_, bytes| bytes)).await;
    let client = Endpoint::open("udp:127.0.0.1:0", Handlers::new()).await.expect("a port");
    let peer = client.connect(server.name()).await.expect("it is there");
    let sent = Bytes::from(vec![7; 4096]);
    let kept = peer.call(REVERSE, sent.clone()).await.expect("it answers");
    let (device, _) = client
        .name()
        .to_string()
        .split_once('#')
        .map(|(device, rest)| (device.to_owned(), rest.to_owned()))
        .expect("a name");
    drop((peer, client));
    // The NIC ends its connections before it goes.
    let again = async {
        while let Err(why) = Endpoint::open(&device, Handlers::new()).await {
            assert!(why.to_string().contains("taken"), "{why}");
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(doorbell_kit::PATIENCE, again).await.expect("the port is free again");
    assert_eq!(kept, sent);
}

/// Whether the names come first or the places.
#[test]
#[should_panic(expected = "`one more` is one too many: an endpoint has 4094 handlers at the most")]
fn a_table_that_is_full_takes_no_handler_at_a_place_either() {
    let name = |number: u64| -> &'static str { number.to_string().leak() };
    let full = (0..4094).fold(Handlers::new(), |handlers, number| {
        handlers.on(Notice::<u64>::new(name(number)), |_, _| {})
    });
    let _ = full.request(doorbell_am::RequestId::<u64>::new(0, "one more"), |_, _| {});
}

#[test]
#[should_panic(expected = "`add` has a handler already")]
fn two_handlers_of_one_name_are_refused() {
    let _ = Handlers::new().on(ADD, |_, (a, b)| a + b).on(ADD, |_, (a, b)| a * b);
}
