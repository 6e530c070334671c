//! The processor time of a call whose two ends share one thread.
//!
//! A client and a server run on one current-thread runtime, so whoever waits keeps the other end
//! from running for as long as the waiting task spins. Each case makes call after call, with no
//! other load, and prints what one call costs.
//!
//! ```text
//! cargo run --release --example processor_time
//! cargo run --release --example processor_time -- --device udp:127.0.0.1:0 --seconds 2 --json
//! ```

use std::io::{self, Write};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use bytes::Bytes;
use clap::{Parser, ValueEnum};
use doorbell::am::{self, Handlers};
use doorbell::messages::{self, Match};
use doorbell::rpc::{self, Channel, Server, Status};
use nix::time::{ClockId, clock_gettime};

#[derive(Parser)]
#[command(about = "The processor time of a call whose two ends share one thread")]
struct Args {
    /// The device that each end opens
    #[arg(long, default_value = "shm")]
    device: String,

    /// The case to run, instead of all
    #[arg(long)]
    case: Option<Case>,

    /// Seconds for which each case is measured, after a tenth of that time to warm up
    #[arg(long, default_value = "0.5", value_parser = seconds)]
    seconds: Duration,

    /// Print a line of JSON for each case
    #[arg(long)]
    json: bool,
}

/// Parses a time that a measurement may take.
fn seconds(text: &str) -> Result<Duration, String> {
    let parsed = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    parsed.filter(|time| !time.is_zero()).ok_or_else(|| "more than zero seconds".to_owned())
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Case {
    /// A typed call of an Active Message handler
    Am,
    /// A tagged message, which its receiver answers with another
    TagPingPong,
    /// A single tagged message, whose receiver waits for it
    Tag,
    /// A call of a method of a service
    Rpc,
}

const CASES: [Case; 4] = [Case::Am, Case::TagPingPong, Case::Tag, Case::Rpc];

impl Case {
    /// Returns the name of the case in JSON, and in words.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Am => ("am_call", "Active Message call"),
            Self::TagPingPong => ("tag_ping_pong", "tagged message there and back"),
            Self::Tag => ("tag", "tagged message"),
            Self::Rpc => ("rpc_call", "RPC"),
        }
    }
}

/// The time that one call of a case took.
struct Cost {
    processor: Duration,
    elapsed: Duration,
}

/// Returns the time for which processors have run this process.
fn processor_time() -> Result<Duration> {
    let time = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID);
    Ok(time.context("asking for the processor time")?.into())
}

/// Makes call after call for the given time, and returns the mean cost of a call.
async fn mean(seconds: Duration, mut call: impl AsyncFnMut() -> Result<()>) -> Result<Cost> {
    let warms_up = Instant::now();
    while warms_up.elapsed() < seconds / 10 {
        call().await?;
    }
    let (began, used, mut calls) = (Instant::now(), processor_time()?, 0);
    while began.elapsed() < seconds {
        for _ in 0..16 {
            call().await?;
        }
        calls += 16;
    }
    let processor = processor_time()? - used;
    Ok(Cost { processor: processor / calls, elapsed: began.elapsed() / calls })
}

const ADD: am::Call<(u64, u64), u64> = am::Call::new("add");

async fn am_call(args: &Args) -> Result<Cost> {
    let adds = Handlers::new().on(ADD, |_, (a, b)| a + b);
    let server = am::Endpoint::open(&args.device, adds).await?;
    let client = am::Endpoint::open(&args.device, Handlers::new()).await?;
    let peer = client.connect(server.name()).await?;
    mean(args.seconds, async || {
        peer.call(ADD, (2, 3)).await?;
        Ok(())
    })
    .await
}

const PING: u64 = 1;
const PONG: u64 = 2;
const BODY: Bytes = Bytes::from_static(&[7; 16]);

async fn tag_ping_pong(args: &Args) -> Result<Cost> {
    let far = messages::Endpoint::open(&args.device).await?;
    let near = messages::Endpoint::open(&args.device).await?;
    let to_far = near.connect(far.name()).await?;
    let to_near = far.connect(near.name()).await?;
    let answers = tokio::spawn(async move {
        while far.receive(Match::exactly(PING)).await.is_ok() {
            if to_near.send(PONG, BODY).await.is_err() {
                break;
            }
        }
    });
    let cost = mean(args.seconds, async || {
        to_far.send(PING, BODY).await?;
        near.receive(Match::exactly(PONG)).await?;
        Ok(())
    })
    .await;
    answers.abort();
    cost
}

async fn tag(args: &Args) -> Result<Cost> {
    let far = messages::Endpoint::open(&args.device).await?;
    let near = messages::Endpoint::open(&args.device).await?;
    let to_far = near.connect(far.name()).await?;
    mean(args.seconds, async || {
        let receiving = far.receive(Match::exactly(PING));
        to_far.send(PING, BODY).await?;
        receiving.await?;
        Ok(())
    })
    .await
}

#[rpc::service]
trait Adder {
    async fn add(&self, a: u64, b: u64) -> Result<u64, Status>;
}

struct Sums;

impl Adder for Sums {
    async fn add(&self, a: u64, b: u64) -> Result<u64, Status> {
        Ok(a + b)
    }
}

async fn rpc_call(args: &Args) -> Result<Cost> {
    let server = Server::builder().add_service(AdderServer::new(Sums)).open(&args.device).await?;
    let adder = AdderClient::new(Channel::connect(&server.name().to_string()).await?);
    mean(args.seconds, async || {
        adder.add(2, 3).await?;
        Ok(())
    })
    .await
}

fn micros(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1000.0
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let args = Args::parse();
    for case in CASES.into_iter().filter(|case| args.case.is_none_or(|only| only == *case)) {
        let cost = match case {
            Case::Am => am_call(&args).await?,
            Case::TagPingPong => tag_ping_pong(&args).await?,
            Case::Tag => tag(&args).await?,
            Case::Rpc => rpc_call(&args).await?,
        };
        let (processor, elapsed) = (micros(cost.processor), micros(cost.elapsed));
        let (name, words) = case.names();
        if args.json {
            writeln!(
                io::stdout(),
                r#"{{"case":"{name}","processor_us":{processor:.3},"elapsed_us":{elapsed:.3}}}"#
            )?;
        } else {
            writeln!(io::stdout(), "{words}: {processor:.2} µs of processor time")?;
        }
    }
    Ok(())
}
