//! Streams of messages: from the server, or from the client and back.

use std::future::ready;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, bail};
use bytes::Bytes;
use doorbell_rpc::{Channel, Client, Method, Router, Status, Streaming};
use futures_util::{StreamExt, stream};

use super::codec::Body;
use crate::perf::figures::Quantity;
use crate::perf::layers::verbs::Beat;
use crate::perf::shared::bodies::Bodies;
use crate::perf::shared::pattern::wholly;
use crate::perf::{Amount, Plan};

/// How many messages are wanted of the server.
const FROM_SERVER: Method<u64, Bytes, Body> = Method::new("perf/from_server");

/// Messages there, and each of them back.
const ECHO: Method<Bytes, Bytes, Body> = Method::new("perf/echo");

/// Messages between looks at the clock.
const A_LOOK: u64 = 64;

/// Adds the methods that stream messages of a size.
pub fn serve(router: Router, bodies: Arc<Bodies>, size: usize) -> Router {
    let expected = bodies.clone();
    let from_server = move |request: doorbell_rpc::Request<u64>| {
        let bodies = bodies.clone();
        let messages = stream::iter(0..request.into_inner());
        ready(Ok(Streaming::new(messages.map(move |number| Ok(bodies.body(number).1)))))
    };
    let echo = move |request: doorbell_rpc::Request<Streaming<Bytes>>| {
        let (bodies, mut number) = (expected.clone(), 0);
        let messages = request.into_inner().map(move |message| {
            let message = message?;
            let found = bodies.place_of(&message, wholly(size, number));
            if found != Some(Bodies::place(number)) {
                let why = format!("message {number} of the stream is not what was sent");
                return Err(Status::data_loss(why));
            }
            number += 1;
            Ok(message)
        });
        ready(Ok(Streaming::new(messages)))
    };
    router.server_streaming(FROM_SERVER, from_server).streaming(ECHO, echo)
}

/// Has messages streamed to this end, from the server or by way of it, and checks them. Returns how
/// many there were, and how many a second.
pub async fn run(
    client: &Client<Channel>,
    bodies: Arc<Bodies>,
    plan: &Plan,
    beat: &Beat,
) -> anyhow::Result<(u64, Quantity)> {
    let (amount, since) = (plan.amount, Instant::now());
    let mut messages = match plan.both_ways {
        true => {
            let sent = bodies.clone();
            // The first message goes in any case.
            let goes = move |number: &u64| {
                let looks = number.is_multiple_of(A_LOOK) || matches!(amount, Amount::Times(_));
                ready(*number == 0 || !looks || !amount.is_over(*number, || since.elapsed()))
            };
            let numbers = stream::iter(0..).take_while(goes);
            client.streaming(ECHO, numbers.map(move |number| sent.body(number).1)).await?
        }
        false => {
            let wanted = match amount {
                Amount::Times(times) => times,
                Amount::For(_) => u64::MAX,
            };
            client.server_streaming(FROM_SERVER, wanted).await?
        }
    }
    .into_inner();
    let (mut number, meter) = (0, plan.meter());
    while let Some(message) = messages.message().await.context("the stream")? {
        let found = bodies.place_of(&message, wholly(plan.size, number));
        if found != Some(Bodies::place(number)) {
            bail!("message {number} of the stream is not what was sent");
        }
        number += 1;
        if number.is_multiple_of(A_LOOK) {
            beat.count();
            meter.at(number, since.elapsed());
            // Messages that come back end when this end sends no more.
            if !plan.both_ways && amount.has_passed(|| since.elapsed()) {
                break;
            }
        }
    }
    let took = since.elapsed();
    if let Amount::Times(times) = amount
        && number != times
    {
        bail!("the stream ended behind {number} messages, and there should be {times}");
    }
    Ok((number, Quantity::Rate(number as f64 / took.as_secs_f64())))
}
