//! Calls of all kinds, each of which checks what it is answered: company for peers that misbehave,
//! and a load for long runs.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use doorbell_rpc::{Channel, Client, Code, Method, Raw, Request, Router, Status, Streaming, Usage};
use futures_util::{StreamExt, stream};

/// Adds where the call is received.
pub const ADD: Method<(u64, u64), u64> = Method::new("mixed/add");
/// Answers with the same bytes, short ones or long ones.
pub const ECHO: Method<Bytes, Bytes, Raw> = Method::new("mixed/echo").idempotent();
/// Streams the numbers below another.
pub const COUNT: Method<u64, u64> = Method::new("mixed/count");
/// Adds the numbers of a stream.
pub const SUM: Method<u64, u64> = Method::new("mixed/sum");
/// Streams what is streamed.
pub const MIRROR: Method<Bytes, Bytes, Raw> = Method::new("mixed/mirror");
/// Streams for as long as anybody reads.
pub const ENDLESS: Method<(), u64> = Method::new("mixed/endless");
/// A method that never answers.
pub const FOREVER: Method<(), ()> = Method::new("mixed/forever").idempotent();

/// How many kinds of calls there are, by their numbers' remainders.
pub const KINDS: u64 = 10;

/// The longest body that is echoed.
const LONGEST: u64 = 200_000;

pub fn router() -> Router {
    Router::new()
        .unary(ADD, |request| async move {
            let (a, b) = request.into_inner();
            Ok(a.wrapping_add(b))
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
        .streaming(MIRROR, |request| async move {
            let pieces: Streaming<Bytes> = request.into_inner();
            Ok(pieces)
        })
        .server_streaming(ENDLESS, |_| async {
            Ok(Streaming::new(stream::iter(0..).map(Ok::<u64, Status>)))
        })
        .unary(FOREVER, |_| std::future::pending::<Result<(), Status>>())
}

/// Bytes that tell where they are, and of which call.
fn pattern(number: u64, len: u64) -> Bytes {
    (0..len).map(|at| (at.wrapping_mul(7) ^ (at / 251) ^ number) as u8).collect()
}

/// Makes the call of a number, of the kind that the number says, and checks what is answered.
pub async fn call(client: &Client<Channel>, number: u64) {
    let some = number * 7919 % 400;
    match number % KINDS {
        0 | 1 => {
            let sum = client.unary(ADD, (number, 5)).await.expect("it adds").into_inner();
            assert_eq!(sum, number + 5);
        }
        kind @ (2 | 3) => {
            let len = if kind == 2 { some } else { number * 7919 % LONGEST };
            let body = pattern(number, len);
            let echoed = client.unary(ECHO, body.clone()).await.expect("it echoes").into_inner();
            assert!(echoed == body, "a body of {len} bytes came back as {} others", echoed.len());
        }
        4 => {
            let counted = client.server_streaming(COUNT, some).await.expect("it counts");
            let numbers: Vec<_> = counted.into_inner().collect().await;
            let numbers = numbers.into_iter().map(|number| number.expect("a number"));
            assert!(numbers.eq(0..some));
        }
        5 => {
            let numbers = stream::iter(0..some);
            let sum = client.client_streaming(SUM, numbers).await.expect("it sums").into_inner();
            assert_eq!(sum, (0..some).sum());
        }
        6 => {
            let pieces: Vec<_> = (0..5).map(|piece| pattern(piece, number * 7919 % 9000)).collect();
            let mirrored = client.streaming(MIRROR, stream::iter(pieces.clone())).await;
            let mirrored: Vec<_> = mirrored.expect("it mirrors").into_inner().collect().await;
            let mirrored = mirrored.into_iter().map(|piece| piece.expect("a piece"));
            assert!(mirrored.eq(pieces));
        }
        7 => {
            let endless = client.server_streaming(ENDLESS, ()).await.expect("it streams");
            let first: Vec<_> = endless.into_inner().take(some as usize).collect().await;
            let first = first.into_iter().map(|number| number.expect("a number"));
            assert!(first.eq(0..some));
        }
        8 => {
            let mut request = Request::new(());
            request.set_timeout(Duration::from_millis(1 + some / 100));
            let late = client.unary(FOREVER, request).await.expect_err("it takes for ever");
            assert_eq!(late.code(), Code::DeadlineExceeded, "{late}");
        }
        _ => {
            // Given up at some stage, from the request to the answer.
            let body = pattern(number, number * 7919 % LONGEST);
            let echo = client.unary(ECHO, body);
            let _ = tokio::time::timeout(Duration::from_micros(some), echo).await;
        }
    }
}

/// A client that calls as it should, from several tasks, until it is told to stop.
pub struct Company {
    pub channel: Channel,
    made: Arc<AtomicU64>,
    stop: Arc<AtomicU64>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

impl Company {
    /// Starts tasks that call over a channel, one for each number with which a task begins.
    pub fn over(channel: Channel, numbers: Range<u64>) -> Self {
        let [made, stop] = [0; 2].map(|_| Arc::new(AtomicU64::new(0)));
        let tasks = numbers.map(|mut number| {
            let (client, made, stop) = (Client::new(channel.clone()), made.clone(), stop.clone());
            tokio::spawn(async move {
                while stop.load(Ordering::Relaxed) == 0 {
                    call(&client, number).await;
                    made.fetch_add(1, Ordering::Relaxed);
                    number = number.wrapping_mul(31) % 1_000_003 + 7;
                }
            })
        });
        let tasks = tasks.collect();
        Self { channel, made, stop, tasks }
    }

    /// How many calls were answered rightly.
    pub fn made(&self) -> u64 {
        self.made.load(Ordering::Relaxed)
    }

    /// Waits until so many more calls were answered, as each has to be.
    pub async fn more(&mut self, calls: u64) {
        let until = self.made() + calls;
        while self.made() < until {
            for task in &mut self.tasks {
                if task.is_finished() {
                    return task.await.expect("each call is answered rightly");
                }
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Stops, when all calls were answered rightly. Returns the channel.
    pub async fn stop(self) -> Channel {
        self.stop.store(1, Ordering::Relaxed);
        for task in self.tasks {
            task.await.expect("each call is answered rightly");
        }
        self.channel
    }
}

/// Waits until a server, or a channel, holds nothing any more for calls.
pub async fn holds_nothing(usage: impl Fn() -> Usage) {
    let nothing = async {
        while usage() != Usage::default() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let ended = tokio::time::timeout(Duration::from_secs(30), nothing).await;
    ended.unwrap_or_else(|_| panic!("something is left when all calls are over: {:?}", usage()));
}
