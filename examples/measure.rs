//! What a message of one's own costs: the LogP parameters of requests and replies between two
//! threads, by the library behind `doorbell logp`.
//!
//! `cargo run --release --example measure` takes some seconds, and prints for how long a processor
//! is busy with a message that it sends (o_s) and receives (o_r), the latency (L), the gap between
//! messages (g), and the round trip.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use doorbell::am::{Bundle, Endpoint, Handlers, Name, Peer, ReplyId, RequestId};
use doorbell::logp::{Measurement, Monotonic, Plan, Requester};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

const PING: RequestId<u64> = RequestId::new(0, "ping");
const PONG: ReplyId<u64> = ReplyId::new(0, "pong");

/// How many requests may be under way.
const CREDITS: usize = 64;

/// The end that asks: how it sends a request, and how it takes answers.
struct Asker {
    peer: Peer,
    bundle: Bundle,
    sent: u64,
    answered: Arc<AtomicU64>,
}

impl Requester for Asker {
    type Error = anyhow::Error;

    fn send(&mut self, _bytes: usize) -> anyhow::Result<()> {
        let credit = loop {
            match self.peer.try_credit()? {
                Some(credit) => break credit,
                None => _ = self.bundle.poll(true),
            }
        };
        self.sent += 1;
        Ok(credit.request(PING, self.sent)?)
    }

    fn poll(&mut self) -> anyhow::Result<()> {
        self.bundle.poll(true);
        match self.peer.ending() {
            None => Ok(()),
            Some(ending) => Err(anyhow::anyhow!("the end that answers: {ending}")),
        }
    }

    fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }
}

fn runtime() -> std::io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

async fn open(handlers: Handlers) -> anyhow::Result<Endpoint> {
    Ok(Endpoint::builder().credits(CREDITS).open("shm", handlers).await?)
}

/// The end that answers, until it is told that all is measured.
fn answer(
    named: oneshot::Sender<Name>,
    mut over: oneshot::Receiver<Infallible>,
) -> anyhow::Result<()> {
    runtime()?.block_on(async {
        let handlers = Handlers::new().request(PING, |request, number| request.reply(PONG, number));
        let endpoint = open(handlers).await?;
        if named.send(endpoint.name().clone()).is_err() {
            anyhow::bail!("the end that asks has gone");
        }
        let bundle = endpoint.bundle();
        bundle
            .wait_until(|| {
                matches!(over.try_recv(), Err(oneshot::error::TryRecvError::Closed)).then_some(())
            })
            .await;
        Ok(())
    })
}

fn main() -> anyhow::Result<()> {
    let (named, name) = oneshot::channel();
    let (measured, over) = oneshot::channel();
    let answering = thread::spawn(move || answer(named, over));
    runtime()?.block_on(async {
        let answered = Arc::new(AtomicU64::new(0));
        let counted = answered.clone();
        let handlers =
            Handlers::new().reply(PONG, move |_, _| _ = counted.fetch_add(1, Ordering::Relaxed));
        let endpoint = open(handlers).await?;
        let peer = endpoint.connect(name.await?).await?;
        let asker = Asker { peer, bundle: endpoint.bundle(), sent: 0, answered };
        // Longer requests are not measured here.
        let plan = Plan { lengths: Vec::new(), ..Plan::thorough() };
        let mut measurement = Measurement::new(asker, Monotonic::new(), plan)?;
        while measurement.round()? {}
        if let Some(found) = measurement.parameters() {
            println!("{found}");
        }
        anyhow::Ok(())
    })?;
    drop(measured);
    answering.join().expect("the end that answers does not panic")
}
