//! The arguments of `doorbell perf`.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ValueEnum, value_parser};
use doorbell_splitc::Carrier;

use super::list;
use super::test::Test;
use crate::usage;

/// Measures a latency, a rate or a cost: of devices alone, verbs, Active Messages, Split-C, messages,
/// byte streams, RPC, or the kernel's sockets.
///
/// A latency is half the round trip of a ping-pong, or the whole time of an operation that is
/// awaited; the first tenth of the figures is left out. A stream goes one way, and counts what was
/// received and checked. The contents and the sequence of every message are checked. Of longer
/// messages than 1024 bytes in a stream of the NIC, of Active Messages or of bytes, only the bytes
/// that tell a message from others are checked, all of each eighth message, and what is in memory
/// at the end. The exit status is 0 if everything was right, 1 if anything was lost or wrong, and 2
/// for arguments that make no sense.
///
/// A breakdown of costs, such as am_costs, runs both ends on one thread of this process, so
/// all time is the host's. It takes no --pair, --listen or --connect, and a command that was built
/// with the feature `costs`: another one says how that is done, and exits with 2.
///
/// The test `layers` runs tests of all layers one after the other, each with both ends on this
/// machine, and takes no --listen or --connect.
///
/// Figures name the profile of Cargo's that the command was built by.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = EXAMPLES, after_long_help = format!("{}\n{EXAMPLES}", list::text()))]
pub struct Args {
    /// What to measure: a test that --list names
    #[arg(required = true, hide_possible_values = true)]
    #[arg(value_parser = PossibleValuesParser::new(Test::names()).map(|name| Test::named(&name)))]
    pub test: Option<Test>,

    /// List all tests, with a line on what each measures
    #[arg(long, exclusive = true)]
    pub list: bool,

    /// The device: shm, udp, packet or packet-v2; without --pair with its place, as in packet:eth0
    /// [default: packet; shm for layers and breakdowns of costs]
    #[arg(long, value_name = "DEV")]
    pub device: Option<String>,

    /// Bytes of a message, a write or an access [default: 16; 4096 for streams, 65536 for
    /// am_bulk_bw and bytestream_bw, 64 for RPC and call_bw, 8 for Split-C]
    #[arg(long, value_name = "N")]
    pub size: Option<usize>,

    /// Number of round trips, messages or accesses, or of rounds of LogP and of costs [default:
    /// 100000 round trips, 10000 for wake_lat, 31 rounds of LogP, 61 of costs]
    #[arg(long, value_name = "N", conflicts_with = "seconds", value_parser = value_parser!(u64).range(1..))]
    pub iters: Option<u64>,

    /// How many seconds to measure [default: 1 for streams, get_lat, put_lat and each
    /// test of layers, 2 for idle_cpu]
    #[arg(long, value_name = "S")]
    pub seconds: Option<f64>,

    /// Run both ends here: two processes on two cores, with a network of their own between them
    #[arg(long, conflicts_with_all = ["listen", "connect"])]
    pub pair: bool,

    /// Wait for the other end on this address, by which the two ends agree on the test
    #[arg(long, value_name = "IP:PORT", conflicts_with = "connect", value_parser = usage::place)]
    pub listen: Option<String>,

    /// The address on which the other end listens
    #[arg(long, value_name = "IP:PORT", value_parser = usage::place)]
    pub connect: Option<String>,

    /// Send each packet in a frame of its own, not in runs that the interface or the kernel cuts
    #[arg(long)]
    pub no_offload: bool,

    /// Have each end drop so large a share of the packets that come, as a network that loses them, and
    /// send again only what was lost
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = usage::share)]
    pub loss: f64,

    /// Over shared memory, do not map the other end's memory, so that writes go through the rings
    #[arg(long)]
    pub no_map: bool,

    /// MTU of the interfaces of --pair
    #[arg(long, value_name = "N", default_value_t = 9000, value_parser = usage::mtu())]
    pub mtu: u32,

    /// Number of connections beside the measured one, which have carried something and are idle
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub connections: usize,

    /// Number of devices beside the measured one, asleep at the same interface, as other processes
    /// have them
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub others: usize,

    /// How many requests of Active Messages may be under way at a time [default: 8; 64 for Split-C;
    /// as many as --in-flight for call_bw]
    #[arg(long, value_name = "K")]
    pub credits: Option<usize>,

    /// How Active Messages are carried
    #[arg(long, value_enum, default_value_t = Carriage::Together)]
    pub policy: Carriage,

    /// Have the NIC and not credits hold up senders of Active Messages; each peer has N receives
    #[arg(long, value_name = "N")]
    pub nic_credits: Option<usize>,

    /// How many calls of rpc_bw or call_bw are in flight at a time [default: 64]
    #[arg(long, value_name = "N")]
    pub in_flight: Option<usize>,

    /// Run the handlers of RPC as tasks, rather than where their requests are received
    #[arg(long)]
    pub tasks: bool,

    /// Have each message of rpc_stream go to the server and come back
    #[arg(long)]
    pub both_ways: bool,

    /// How Split-C reaches the other's memory: mapped, one-sided, messages, mixed [default: mapped
    /// over shm, otherwise mixed]
    #[arg(long, value_name = "CARRIER")]
    pub carrier: Option<Carrier>,

    /// Bytes of a long message between members of a group that one read pulls
    #[arg(long, value_name = "N")]
    pub block: Option<usize>,

    /// How many reads of a long message between members of a group are under way at a time
    #[arg(long, value_name = "N")]
    pub blocks: Option<usize>,

    /// Post N receives beforehand that take none of the messages of tag_lat, each by a mask of its
    /// own
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub posted: usize,

    /// Have the NIC run by a thread of its own; with --pair on a core of its own, if there are four
    #[arg(long)]
    pub dedicated: bool,

    /// How long the NIC spins on a silent device before sleeping, in microseconds [default: for
    /// ever; 50 if a thread of its own has no core of its own]
    #[arg(long, value_name = "MICROS")]
    pub spin: Option<u64>,

    /// Print a line of JSON instead of words
    #[arg(long)]
    pub json: bool,

    /// Print comma-separated values instead of words, below a line with their names
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,

    /// The second process of --pair.
    #[arg(long, hide = true)]
    pub end: bool,

    /// Standard input is a socket that listens, whose next connection leads to the other end.
    #[arg(long, hide = true)]
    pub accept: bool,
}

const EXAMPLES: &str = "\
Examples:
  doorbell perf --list                         all tests
  doorbell perf write_lat --pair               16 bytes over raw Ethernet
  doorbell perf write_bw --pair --device shm --size 65536
  doorbell perf frame_lat --pair               the device alone, to compare with
  doorbell perf frame_bw --pair --device packet-v2 --size 64
  doorbell perf rpc_bw --pair --device udp --in-flight 64
  doorbell perf rpc_stream --pair --device udp --both-ways
  doorbell perf histogram --pair --device shm  updates of a shared table
  doorbell perf tag_lat --pair --posted 1000   matching beside other receives
  doorbell perf collectives --pair             a group of two
  doorbell perf layers --device udp            what each layer adds
  doorbell perf am_costs                       what a request spends time on
  doorbell perf tcp_lat --pair                 the kernel's, to compare with

Between two machines, on the first and on the second:
  doorbell perf frame_lat --device packet:eth0 --listen 0.0.0.0:4790
  doorbell perf frame_lat --device packet:eth0 --connect 192.0.2.1:4790";

/// How figures are printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    Words,
    Json,
    Csv,
}

impl Args {
    /// The test. Without one, the arguments are those of `--list`, with which nothing is measured.
    pub fn test(&self) -> Test {
        self.test.expect("arguments without --list have a test")
    }

    /// The device, by its name.
    pub fn device(&self) -> &str {
        self.device.as_deref().unwrap_or(self.test().customary_device())
    }

    pub(crate) fn form(&self) -> Form {
        match (self.json, self.csv) {
            (true, _) => Form::Json,
            (_, true) => Form::Csv,
            _ => Form::Words,
        }
    }
}

/// How Active Messages are carried.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Carriage {
    /// Short ones that have company share a send; of a packet that is placed the write tells
    Together,
    /// Each is a send of its own, as in AMVIA's third version
    Apart,
    /// Each size has a connection of its own, and nothing is written, as in AMVIA's first version
    PerSize,
}

impl Carriage {
    /// The name by which it is chosen.
    pub fn name(self) -> String {
        self.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned())
    }
}
