//! Calls of all kinds over a simulated network that loses, repeats, damages and reorders, by seeds:
//! each is answered rightly, once. And over a network that is cut: which calls run again.

mod lost;
mod slow;
mod stopped;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use doorbell_kit::effort;
use doorbell_rpc::{Channel, Client, Code, Method, Raw, Router, Server, Status, Streaming};
use doorbell_simulation::{Faults, passing};
use futures_util::future::join_all;
use futures_util::{StreamExt, stream};

use crate::virtual_time::ends;

const ADD: Method<(u64, u64), u64> = Method::new("add");
const ECHO: Method<Bytes, Bytes, Raw> = Method::new("echo");
const COUNT: Method<u64, u64> = Method::new("count");
const SUM: Method<u64, u64> = Method::new("sum");
const ONCE: Method<u64, u64> = Method::new("once");
const FAIL: Method<u64, u64> = Method::new("fail");

/// How often each number was handled.
type Handled = Arc<Mutex<HashMap<u64, u64>>>;

fn router(handled: &Handled) -> Router {
    let handled = handled.clone();
    Router::new()
        .unary(ADD, |request| async move {
            let (a, b) = request.into_inner();
            Ok(a + b)
        })
        .inline(ADD)
        .unary(ECHO, |request| async move { Ok(request.into_inner()) })
        .server_streaming(COUNT, |request| async move {
            Ok(Streaming::new(stream::iter((0..request.into_inner()).map(Ok))))
        })
        .client_streaming(SUM, |request| async move {
            let numbers: Streaming<u64> = request.into_inner();
            numbers.fold(Ok(0), |sum, number| async move { Ok(sum? + number?) }).await
        })
        .unary(ONCE, move |request| {
            let number = request.into_inner();
            *handled.lock().expect("nobody panics").entry(number).or_default() += 1;
            async move { Ok(number) }
        })
        .unary(FAIL, |request| async move {
            Err::<u64, _>(Status::out_of_range(format!("{} is too many", request.into_inner())))
        })
}

/// Makes the call of a number, of the kind that the number says, and checks the answer.
async fn call(client: &Client<Channel>, number: u64) {
    match number % 6 {
        0 => {
            let sum = client.unary(ADD, (number, 5)).await.expect("it adds").into_inner();
            assert_eq!(sum, number + 5);
        }
        1 => {
            // Some go in messages, and some by RDMA.
            let len = (number * 7919 % 30_000) as usize;
            let body: Bytes = (0..len).map(|at| (at as u64 * number) as u8).collect();
            let echoed = client.unary(ECHO, body.clone()).await.expect("it echoes").into_inner();
            assert!(echoed == body, "a body of {len} bytes");
        }
        2 => {
            let counted = client.server_streaming(COUNT, number * 3).await.expect("it counts");
            let numbers: Vec<u64> =
                counted.into_inner().map(|number| number.expect("a number")).collect().await;
            assert!(numbers.into_iter().eq(0..number * 3));
        }
        3 => {
            let numbers = stream::iter(0..number * 3);
            let sum = client.client_streaming(SUM, numbers).await.expect("it sums").into_inner();
            assert_eq!(sum, (0..number * 3).sum());
        }
        4 => {
            let answer = client.unary(ONCE, number).await.expect("it answers").into_inner();
            assert_eq!(answer, number);
        }
        _ => {
            let status = client.unary(FAIL, number).await.expect_err("it fails");
            assert_eq!(status.code(), Code::OutOfRange);
            assert_eq!(status.message(), format!("{number} is too many"));
        }
    }
}

fn all_are_answered(faults: Faults) {
    for seed in 0..effort(4, 40) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let (ether, _, [far, near]) = ends(seed, faults);
            let handled = Handled::default();
            let all = async {
                let server = Server::builder().add_service(router(&handled)).on_bundle(&far).await;
                let server = server.expect("there is room");
                let channel =
                    Channel::builder().on_bundle(&near).connect_lazily(server.name()).await;
                let client = Client::new(channel.expect("there is room"));
                let numbers = (0..60).map(|number| number + seed * 17);
                join_all(numbers.map(|number| call(&client, number))).await;
                server.close().await.expect("clients take their answers");
            };
            passing(&ether, all).await;
            let handled = handled.lock().expect("nobody panics");
            assert!(handled.values().all(|&times| times == 1), "seed {seed}: {handled:?}");
        });
    }
}

#[test]
fn calls_are_answered_over_a_perfect_cable() {
    all_are_answered(Faults::NONE);
}

#[test]
fn calls_are_answered_whatever_a_cable_loses_repeats_damages_and_reorders() {
    all_are_answered(Faults {
        loss: 0.02,
        duplication: 0.02,
        corruption: 0.01,
        reordering: 0.05,
        ..Faults::NONE
    });
}
