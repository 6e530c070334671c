//! The arguments of an exchange.

use clap::builder::RangedU64ValueParser;
use clap::{ValueEnum, value_parser};
use doorbell_messages::frames::{Emp, Offload, Policy, Rmpp};

use crate::runs::DEVICES;
use crate::usage;

/// The most bytes of a message.
const LONGEST: u64 = 1 << 30;

fn size() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(..=LONGEST)
}

/// The name of the command, which reports run.
pub const NAME: &str = "paper-exchange";

/// Exchanges messages between two processes, and prints what was measured as one JSON value. For
/// the reports of papers alone.
#[derive(clap::Args, Clone, Debug)]
#[command(hide = true)]
pub struct Args {
    /// The measurement to run
    #[arg(value_enum)]
    pub measure: Measure,
    /// The protocol that carries the messages
    #[arg(long, value_enum, default_value = "emp")]
    pub protocol: Protocol,
    #[arg(long, default_value = "packet", value_parser = DEVICES)]
    pub(crate) device: String,
    /// The MTU of the cable
    #[arg(long, default_value_t = 9000, value_parser = usage::mtu())]
    pub mtu: u32,
    /// The lengths of messages
    #[arg(long, value_delimiter = ',', default_value = "4", value_parser = size())]
    pub sizes: Vec<usize>,
    /// The data of a frame
    #[arg(long)]
    pub frame: Option<usize>,
    /// The frames of a collection
    #[arg(long, default_value_t = 3)]
    pub collection: u8,
    /// How many frames before the end of a window more are requested
    #[arg(long, default_value_t = 0)]
    pub early: u16,
    /// The part of the work that NICs do: 0, 1 or 2, as the steps of the paper
    #[arg(long, default_value_t = 0, value_parser = value_parser!(u8).range(..=2))]
    pub step: u8,
    /// The program or thread that does the protocol's work at the first end
    #[arg(long, value_enum, default_value = "program")]
    pub runs: Runs,
    /// For how long each is measured
    #[arg(long, default_value_t = 0.2, value_parser = usage::seconds)]
    pub seconds: f64,
    /// The microseconds of computation between messages
    #[arg(long, value_delimiter = ',', default_value = "0")]
    pub work: Vec<f64>,
    /// Run as the second process, which the first has started
    #[arg(long, hide = true)]
    pub end: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Measure {
    /// Half the time of a message there and back
    Latency,
    /// Messages one way, and an answer behind the last
    Stream,
    /// Messages there and back, several at a time
    PingPong,
    /// The time of each call, with five messages each way
    Calls,
    /// The time of each call as in `calls`, with computation between posting and waiting
    Share,
    /// Computation with messages there and back beside it
    Availability,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Protocol {
    Emp,
    Rmpp,
    Tcp,
}

/// The program or thread that does the protocol's work at the first end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Runs {
    /// The program, when it looks
    Program,
    /// A thread, of which the NIC alone is run
    Nic,
    /// A thread that does all of it
    Thread,
}

impl Args {
    /// Returns the policy of the endpoints.
    pub fn policy(&self) -> Policy {
        let offload = match self.step {
            0 => Offload::None,
            1 => Offload::Receive,
            _ => Offload::Both,
        };
        match self.protocol {
            Protocol::Rmpp => Rmpp::default().early(self.early).offload(offload).into(),
            _ => Emp::default().collection(self.collection).into(),
        }
    }
}
