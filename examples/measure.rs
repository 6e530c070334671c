//! What a message of one's own costs: the LogP parameters of requests and replies between two
//! threads, by the library behind `doorbell logp`.
//!
//! `cargo run --release --example measure` takes some seconds, at most twenty, and prints for how
//! long a processor is busy with a message that it sends (o_s) and receives (o_r), the latency (L),
//! the gap between messages (g), and the round trip. Each of the two threads needs a processor:
//! where both share a processor, the times are those of the system's scheduler. On a busy machine
//! fewer rounds are done in the time, or none.

use std::convert::Infallible;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use doorbell::am::{Bundle, Endpoint, Handlers, Name, Peer, ReplyId, RequestId};
use doorbell::logp::{Measurement, Monotonic, Plan, Requester};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

const PING: RequestId<u64> = RequestId::new(0, "ping");
const PONG: ReplyId<u64> = ReplyId::new(0, "pong");

/// How many requests may be under way.
const CREDITS: usize = 64;

/// How long the measurement may take.
const LONGEST: Duration = Duration::from_secs(20);
/// After how many looks for answers the clock is read: reading it each time would cost more than a
/// look does.
const LOOKS: u64 = 256;

/// The end that asks: how it sends a request, and how it takes answers.
struct Asker {
    peer: Peer,
    bundle: Bundle,
    sent: u64,
    answered: Arc<AtomicU64>,
    time: Time,
}

/// The time that is left for the measurement.
struct Time {
    looks: u64,
    deadline: Instant,
}

impl Time {
    /// Counts a look for answers. Fails when the time is over.
    fn look(&mut self) -> anyhow::Result<()> {
        self.looks += 1;
        if self.looks.is_multiple_of(LOOKS) && Instant::now() > self.deadline {
            anyhow::bail!("the measurement did not finish within {LONGEST:?}");
        }
        Ok(())
    }
}

impl Requester for Asker {
    type Error = anyhow::Error;

    fn send(&mut self, _bytes: usize) -> anyhow::Result<()> {
        let credit = loop {
            match self.peer.try_credit()? {
                Some(credit) => break credit,
                None => {
                    self.time.look()?;
                    self.bundle.poll(true);
                }
            }
        };
        self.sent += 1;
        Ok(credit.request(PING, self.sent)?)
    }

    fn poll(&mut self) -> anyhow::Result<()> {
        self.time.look()?;
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
fn answer(named: oneshot::Sender<Name>, over: oneshot::Receiver<Infallible>) -> anyhow::Result<()> {
    runtime()?.block_on(async {
        let handlers = Handlers::new().request(PING, |request, number| request.reply(PONG, number));
        let endpoint = open(handlers).await?;
        if named.send(endpoint.name().clone()).is_err() {
            anyhow::bail!("the end that asks has gone");
        }
        let bundle = endpoint.bundle();
        // Handlers run until the measurement is over, which is heard of even while the bundle
        // sleeps.
        tokio::select! {
            never = bundle.wait_until(|| None::<Infallible>) => match never {},
            _ = over => {}
        }
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
        let time = Time { looks: 0, deadline: Instant::now() + LONGEST };
        let asker = Asker { peer, bundle: endpoint.bundle(), sent: 0, answered, time };
        // Longer requests are not measured here.
        let plan = Plan { lengths: Vec::new(), ..Plan::thorough() };
        let mut measurement = Measurement::new(asker, Monotonic::new(), plan)?;
        // The rounds before a failure count, if there are any.
        let done = loop {
            match measurement.round() {
                Ok(true) => {}
                Ok(false) => break Ok(()),
                Err(why) => break Err(why),
            }
        };
        match (measurement.parameters(), done) {
            (Some(found), Ok(())) => writeln!(io::stdout(), "{found}")?,
            (Some(found), Err(why)) => {
                writeln!(io::stdout(), "{found}; of fewer rounds than planned: {why}")?;
            }
            (None, Err(why)) => return Err(why),
            (None, Ok(())) => {}
        }
        anyhow::Ok(())
    })?;
    drop(measured);
    answering.join().expect("the end that answers does not panic")
}
