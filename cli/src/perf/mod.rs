//! `doorbell perf`: the one way figures are taken.

mod am;
mod bytestream;
mod cable;
mod costs;
mod frames;
mod latencies;
mod ledger;
mod logp;
mod meter;
mod pair;
mod patience;
mod pattern;
mod peer;
mod plan;
mod report;
mod rpc;
mod sockets;
mod splitc;
mod stream;
mod test;
mod verbs;

use std::io;
use std::net::{IpAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;

use anyhow::{Context, bail};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use doorbell_splitc::Carrier;
use nix::poll::{PollFd, PollFlags, PollTimeout};
use serde_json::json;

use peer::{PATIENCE, Peer};
use plan::{Amount, Carriage, Plan};
pub use test::NotThere;
use test::Test;

/// Measures: latencies and streams, of Split-C, of RPC, of Active Messages, of byte streams, of the
/// NIC, of devices alone and of the kernel's sockets.
///
/// A latency is half the round trip of a ping-pong, or the whole time of what is awaited; the first
/// tenth is left out. A stream goes one way, and counts what was received and checked. The contents
/// and the sequence of every message are checked (of a stream of the NIC, of Active Messages, or of
/// bytes, that are longer than 1024 bytes what tells each from others, the contents of each eighth,
/// and what is in memory at the end): only then the exit status is 0. It is 1 when anything was
/// lost or wrong, and 2 for a test that is not there yet.
///
/// A breakdown of costs, am_costs or splitc_costs, runs both ends on one thread of this process, so
/// all time is the host's. It takes no --pair, --listen or --connect.
#[derive(clap::Args, Clone)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// What to measure
    #[arg(value_parser = PossibleValuesParser::new(Test::names()).map(|name| Test::named(&name)))]
    test: Test,

    /// The device: shm, udp, packet, packet-v2; without --pair also where, as packet:eth0 [default:
    /// packet, of am_costs and splitc_costs shm]
    #[arg(long, value_name = "DEV")]
    device: Option<String>,

    /// Bytes of a message, a write or an access [default: 16, of streams 4096, of am_bulk_bw and
    /// bytestream_bw 65536, of RPC 64, of Split-C 8]
    #[arg(long, value_name = "N")]
    size: Option<usize>,

    /// Round trips, messages or accesses; rounds of LogP and of costs [default: 100000 round trips,
    /// 10000 of wake_lat, 31 rounds of LogP, 61 of costs]
    #[arg(long, value_name = "N", conflicts_with = "seconds")]
    iters: Option<u64>,

    /// For how long [default: streams, get_lat and put_lat 1 second, idle_cpu 2]
    #[arg(long, value_name = "S")]
    seconds: Option<f64>,

    /// Run both ends here: two processes on two cores, with a network of their own between them
    #[arg(long, conflicts_with_all = ["listen", "connect"])]
    pair: bool,

    /// Wait for the other end on this address, which carries no figures: it is where the two agree
    #[arg(long, value_name = "IP:PORT", conflicts_with = "connect")]
    listen: Option<String>,

    /// The address on which the other end listens
    #[arg(long, value_name = "IP:PORT")]
    connect: Option<String>,

    /// Send each packet in a frame of its own, not runs that the interface or the kernel cuts
    #[arg(long)]
    no_offload: bool,

    /// Over shared memory, map nothing of the other end's: what is written there goes by the rings
    #[arg(long)]
    no_map: bool,

    /// MTU of the interfaces of --pair
    #[arg(long, value_name = "N", default_value_t = 9000)]
    mtu: u32,

    /// Connections beside the one that is measured, which have carried something and are idle
    #[arg(long, value_name = "N", default_value_t = 0)]
    connections: usize,

    /// Devices beside the one that is measured, at the same interface, asleep, as of other
    /// processes
    #[arg(long, value_name = "N", default_value_t = 0)]
    others: usize,

    /// How many requests of Active Messages may be under way at a time [default: 8, of Split-C 64]
    #[arg(long, value_name = "K")]
    credits: Option<usize>,

    /// How Active Messages are carried
    #[arg(long, value_enum, default_value_t = Carriage::Together)]
    policy: Carriage,

    /// Have NICs hold senders of Active Messages up, not credits: each peer has so many receives
    #[arg(long, value_name = "N")]
    nic_credits: Option<usize>,

    /// How many calls of rpc_bw are in flight at a time [default: 64]
    #[arg(long, value_name = "N")]
    in_flight: Option<usize>,

    /// Run the handlers of RPC as tasks, rather than where their requests are received
    #[arg(long)]
    tasks: bool,

    /// Have each message of rpc_stream go to the server and come back
    #[arg(long)]
    both_ways: bool,

    /// How Split-C reaches the other's memory: mapped, one-sided, messages, mixed [default: mapped
    /// over shm, otherwise mixed]
    #[arg(long, value_name = "CARRIER")]
    carrier: Option<Carrier>,

    /// Have the NIC run by a thread of its own; with --pair on a core of its own, if there are four
    #[arg(long)]
    dedicated: bool,

    /// How long the NIC spins on a silent device before sleeping, in microseconds [default: for
    /// ever; 50 if a thread of its own has no core of its own]
    #[arg(long, value_name = "MICROS")]
    spin: Option<u64>,

    /// A line of JSON instead of words
    #[arg(long)]
    json: bool,

    /// The same as comma-separated values, with a line of their names before
    #[arg(long, conflicts_with = "json")]
    csv: bool,

    /// The second process of --pair.
    #[arg(long, hide = true)]
    end: bool,

    /// Standard input is a socket that listens, whose next connection leads to the other end.
    #[arg(long, hide = true)]
    accept: bool,
}

const EXAMPLES: &str = "\
Examples:
  doorbell perf write_lat --pair                        16 bytes over raw Ethernet, both ends here
  doorbell perf write_bw --pair --device shm --size 65536
  doorbell perf frame_lat --pair                        the device alone, to compare with
  doorbell perf frame_bw --pair --device packet-v2 --size 64
  doorbell perf rpc_bw --pair --device udp --in-flight 64
  doorbell perf rpc_stream --pair --device udp --both-ways
  doorbell perf histogram --pair --device shm           random updates of a table that both share
  doorbell perf am_costs                                what a request and its reply spend time on
  doorbell perf tcp_lat --pair                          the kernel's, to compare with
  doorbell perf frame_lat --device packet:eth0 --listen 0.0.0.0:4790      on one machine, and
  doorbell perf frame_lat --device packet:eth0 --connect 192.0.2.1:4790   on the other";

/// How figures are printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    Words,
    Json,
    Csv,
}

impl Args {
    /// The device, by its name.
    fn device(&self) -> &str {
        self.device.as_deref().unwrap_or(self.test.customary_device())
    }

    fn form(&self) -> Form {
        match (self.json, self.csv) {
            (true, _) => Form::Json,
            (_, true) => Form::Csv,
            _ => Form::Words,
        }
    }
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let plan = Plan::of(args)?;
    if let Test::Costs(layer) = plan.test {
        report::print(&plan, &costs::run(layer, args, &plan)?, args.form())?;
        return Ok(());
    }
    if args.end {
        return pair::second(args, &plan);
    }
    if args.pair {
        return pair::first(args, &plan);
    }
    if args.accept {
        return meet(args, &plan, accepted()?, false);
    }
    match (&args.listen, &args.connect) {
        (Some(address), _) => {
            let listener = TcpListener::bind(address);
            let listener = listener.with_context(|| format!("listening on {address}"))?;
            let (stream, from) = listener.accept().context("waiting for the other end")?;
            eprintln!("doorbell: {from} is the other end");
            meet(args, &plan, stream, false)
        }
        (_, Some(address)) => {
            let stream = TcpStream::connect(address).with_context(|| {
                format!("connecting to {address}: start the other end with --listen first")
            })?;
            meet(args, &plan, stream, true)
        }
        _ => bail!(
            "{test} is measured between two ends, and nothing says where the other one is: add \
             --pair to run both on this machine, or --listen IP:PORT on one machine and --connect \
             IP:PORT on the other",
            test = plan.test.name()
        ),
    }
}

/// The next connection to the socket that standard input is.
fn accepted() -> anyhow::Result<TcpStream> {
    let socket = io::stdin().as_fd().try_clone_to_owned().context("the socket that listens")?;
    let mut fds = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
    let patience = PollTimeout::try_from(PATIENCE).expect("it is less than a month");
    let ready = nix::poll::poll(&mut fds, patience).context("waiting for the other end")?;
    anyhow::ensure!(ready > 0, "the other end has not connected for {PATIENCE:?}");
    let (stream, _) = TcpListener::from(socket).accept().context("accepting the other end")?;
    Ok(stream)
}

/// One end of a test whose other end is on another machine.
fn meet(args: &Args, plan: &Plan, stream: TcpStream, leads: bool) -> anyhow::Result<()> {
    let here = stream.local_addr().context("the connection to the other end")?.ip();
    play(
        args,
        plan,
        &mut Peer::over(stream, leads)?,
        &Place { device: args.device(), here, spare: None },
    )
}

/// Where an end is.
struct Place<'a> {
    /// Its device, with what that is opened on.
    device: &'a str,
    /// The address of its sockets.
    here: IpAddr,
    /// The processor for its NIC's thread, if there is one for that.
    spare: Option<usize>,
}

/// One end of a test: agrees with the other, measures, and tells.
fn play(args: &Args, plan: &Plan, peer: &mut Peer, place: &Place<'_>) -> anyhow::Result<()> {
    peer.agree(plan)?;
    let figures = match plan.test {
        Test::Verbs(verb) => verbs::run(verb, plan, peer, place),
        Test::Am(test) => am::run(test, plan, peer, place),
        Test::BytestreamBw => bytestream::run(plan, peer, place),
        Test::Rpc(test) => rpc::run(test, plan, peer, place),
        Test::SplitC(test) => splitc::run(test, plan, peer, place),
        Test::LogP(layer) => logp::run(layer, plan, peer, place),
        test if test.is_of_the_kernel() => sockets::run(plan, peer, place.here),
        _ => frames::run(plan, peer, place.device),
    };
    if let Some(figures) = figures? {
        report::print(plan, &figures, args.form())?;
    }
    // Whatever the other end found wrong, it has not said this.
    peer.swap(&json!("all checked")).map(drop)
}
