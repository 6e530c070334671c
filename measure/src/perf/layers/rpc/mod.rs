//! Calls of RPC, as a program on Tokio makes them: one after the other, many at a time, or one call
//! with streams.
//!
//! A request carries bytes, and the answer says which bytes came. For streams see [`streams`].

mod codec;
mod streams;

use std::process;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, bail};
use bytes::Bytes;
use doorbell_am::{Bundle, BundleConfig};
use doorbell_rpc::{Channel, Client, Method, Router, Server, Status};
use serde_json::json;
use tokio::sync::Notify;
use tokio::task::LocalSet;

use super::callers;
use super::verbs::{Beat, Guard, open};
use crate::perf::ends::peer::Peer;
use crate::perf::figures::latencies::Latencies;
use crate::perf::figures::{Figures, Quantity};
use crate::perf::plan::test::Rpc;
use crate::perf::shared::bodies::Bodies;
use crate::perf::shared::pattern::wholly;
use crate::perf::{Place, Plan};
use codec::Body;

/// Bytes there, and the number of the words that came back.
const SEND: Method<Bytes, u64, Body> = Method::new("perf/send");

/// The end of a test: how many requests were handled.
const END: Method<(), u64> = Method::new("perf/end");

/// How often the end that is called looks after the test.
const A_LOOK: Duration = Duration::from_millis(100);

/// Runs one end of a test.
pub fn run(
    test: Rpc,
    plan: &Plan,
    peer: &mut Peer,
    place: &Place<'_>,
) -> anyhow::Result<Option<Figures>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    LocalSet::new().block_on(&runtime.context("a runtime")?, play(test, plan, peer, place))
}

async fn play(
    test: Rpc,
    plan: &Plan,
    peer: &mut Peer,
    place: &Place<'_>,
) -> anyhow::Result<Option<Figures>> {
    let nic = open(plan, place)?;
    let guard = Guard::over(&nic, peer)?;
    let bundle = Bundle::new(&nic, &BundleConfig::default())?;
    let beat = guard.beat();
    if !peer.leads() {
        serve(plan, peer, &guard, &bundle).await?;
        return Ok(None);
    }
    let name = peer.hear()?;
    let name = name.as_str().context("the other end's name is no text")?;
    let builder = Channel::builder().in_flight(plan.in_flight.max(1)).longest_body(plan.size);
    let channel =
        guard.run(async { Ok(builder.on_bundle(&bundle).connect_lazily(name).await?) }).await?;
    let bodies = Arc::new(Bodies::new(plan.size));
    let caller = Rc::new(Caller { client: Client::new(channel), bodies, beat });
    let (iters, found) = guard
        .run(async {
            match test {
                Rpc::Lat => caller.one_by_one(plan).await,
                Rpc::Bw => {
                    let calls = caller.clone();
                    let call = async move |number| calls.call(number).await;
                    callers::run(plan, &caller.beat, call).await
                }
                Rpc::Stream => {
                    streams::run(&caller.client, caller.bodies.clone(), plan, &caller.beat).await
                }
            }
        })
        .await?;
    let handled = guard.run(async { Ok(caller.client.unary(END, ()).await?.into_inner()) }).await?;
    if test != Rpc::Stream && handled != iters {
        bail!("{iters} calls were made, and the other end has handled {handled}");
    }
    // The server shuts down when all answers are here.
    peer.meet(|| {
        bundle.poll(true);
        Ok(())
    })?;
    Ok(Some(Figures { device: Some(nic.capabilities().name), iters, found }))
}

/// The end that is called: it serves until the other end is done.
async fn serve(plan: &Plan, peer: &mut Peer, guard: &Guard, bundle: &Bundle) -> anyhow::Result<()> {
    let (bodies, handled) = (Arc::new(Bodies::new(plan.size)), Arc::new(AtomicU64::new(0)));
    let (expected, counted, size) = (bodies.clone(), handled.clone(), plan.size);
    let handler = move |request: doorbell_rpc::Request<Bytes>| {
        let number = counted.fetch_add(1, Ordering::Relaxed);
        let body = request.into_inner();
        let found = expected.place_of(&body, wholly(size, number));
        std::future::ready(found.ok_or_else(|| Status::data_loss("the body is not what was sent")))
    };
    let ended = Arc::new(Notify::new());
    let told = ended.clone();
    let end = move |_| {
        told.notify_one();
        std::future::ready(Ok(handled.load(Ordering::Relaxed)))
    };
    let router = Router::new().unary(SEND, handler).unary(END, end);
    let mut router = streams::serve(router, bodies, plan.size);
    if !plan.tasks {
        router = router.inline(SEND);
    }
    let number = 0x0D00_12BE_0000_0001 | u64::from(process::id()) << 8;
    let server = Server::builder().add_service(router).service(number).longest_body(plan.size);
    let server = guard.run(async { Ok(server.on_bundle(bundle).await?) }).await?;
    peer.tell(&json!(server.name().to_string()))?;
    let beat = guard.beat();
    let done = async {
        loop {
            tokio::select! {
                () = ended.notified() => return Ok(()),
                () = tokio::time::sleep(A_LOOK) => beat.count(),
            }
        }
    };
    guard.run(done).await?;
    peer.meet(|| {
        bundle.poll(true);
        Ok(())
    })
}

/// The end that calls.
struct Caller {
    client: Client<Channel>,
    bodies: Arc<Bodies>,
    beat: Beat,
}

impl Caller {
    /// Makes the call of a number, and checks the answer.
    async fn call(&self, number: u64) -> anyhow::Result<()> {
        let (which, body) = self.bodies.body(number);
        let answer = self.client.unary(SEND, body).await?.into_inner();
        if answer != which {
            bail!("the answer to call {number} is {answer}, and not {which}");
        }
        Ok(())
    }

    async fn one_by_one(&self, plan: &Plan) -> anyhow::Result<(u64, Quantity)> {
        let mut times = Latencies::new(plan.amount, plan.meter());
        for round in 0.. {
            if round > 0 && plan.amount.is_over(round, || times.passed()) {
                break;
            }
            times.resume();
            self.call(round).await?;
            times.lap();
            self.beat.count();
        }
        Ok((times.len(), Quantity::Latency(times.summary(1))))
    }
}
