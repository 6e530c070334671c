//! What the papers about frames measure, between two processes of this program: messages by a
//! protocol, with times and rates of the program's calls.
//!
//! | file | what it does |
//! |---|---|
//! | `pair` | starts the other process, and lays a cable to it |
//! | `side` | posts messages, and looks what became of them: by frames, or by TCP |
//! | `measures` | the loops that are measured |
//! | `lines` | runs this for a report, and reads what was found |

mod lines;
mod measures;
mod pair;
mod side;

use anyhow::Context;
use clap::ValueEnum;
use doorbell_messages::frames::{Emp, Offload, Policy, Rmpp};
use serde_json::{Value, json};

use crate::out;
use crate::perf::peer::Peer;
pub use lines::{Exchanges, value};
use pair::Where;
use side::Side;

/// The name of the command, which reports run.
pub const NAME: &str = "paper-exchange";

/// Exchanges messages between two processes, and prints what was measured as one JSON value. For
/// the reports of papers alone.
#[derive(clap::Args, Clone, Debug)]
#[command(hide = true)]
pub struct Args {
    /// What is measured
    #[arg(value_enum)]
    measure: Measure,
    /// The protocol that carries the messages
    #[arg(long, value_enum, default_value = "emp")]
    protocol: Protocol,
    #[arg(long, default_value = "packet")]
    device: String,
    /// The MTU of the cable
    #[arg(long, default_value_t = 9000)]
    mtu: u32,
    /// The lengths of messages
    #[arg(long, value_delimiter = ',', default_value = "4")]
    sizes: Vec<usize>,
    /// The data of a frame
    #[arg(long)]
    frame: Option<usize>,
    /// The frames of a collection
    #[arg(long, default_value_t = 3)]
    collection: u8,
    /// How many frames before the end of a window more are requested
    #[arg(long, default_value_t = 0)]
    early: u16,
    /// The part of the work that NICs do: 0, 1 or 2, as the steps of the paper
    #[arg(long, default_value_t = 0)]
    step: u8,
    /// Who does the protocol's work
    #[arg(long, value_enum, default_value = "program")]
    runs: Runs,
    /// For how long each is measured
    #[arg(long, default_value_t = 0.2)]
    seconds: f64,
    /// The microseconds of computation between messages
    #[arg(long, value_delimiter = ',', default_value = "0")]
    work: Vec<f64>,
    /// This is the process that the first has started
    #[arg(long, hide = true)]
    end: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Measure {
    /// Half the time of a message there and back
    Latency,
    /// Messages one way, and an answer behind the last
    Stream,
    /// Messages there and back, several at a time
    PingPong,
    /// The time of each call, with five messages each way
    Calls,
    /// The same with computation between posting and waiting
    Share,
    /// Computation with messages there and back beside it
    Availability,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Protocol {
    Emp,
    Rmpp,
    Tcp,
}

/// Who does the protocol's work at the first end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Runs {
    /// The program, when it looks
    Program,
    /// A thread, of which the NIC alone is run
    Nic,
    /// A thread that does all of it
    Thread,
}

impl Args {
    fn policy(&self) -> Policy {
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

/// Runs one of the two processes.
pub fn run(args: &Args) -> anyhow::Result<()> {
    if args.end {
        return pair::second(args, |peer, place| play(args, peer, place).map(drop));
    }
    pair::first(args, |peer, place| {
        let found = play(args, peer, place)?;
        out::print(&format!("{found}\n"))
    })
}

/// Plays one side: the first measures, and the second does its part.
fn play(args: &Args, peer: &mut Peer, place: &Where) -> anyhow::Result<Value> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("a runtime")?;
    runtime.block_on(async {
        let mut side = Side::open(args, peer, place).await?;
        let mut found = Vec::new();
        for &size in &args.sizes {
            for &work in &args.work {
                side.prepare(size);
                peer.meet(|| side.turn())?;
                let mut entry = measures::run(args.measure, args.seconds, work, &mut side, peer)?;
                if let Some(map) = entry.as_object_mut() {
                    map.insert("size".to_owned(), json!(size));
                    map.insert("work_us".to_owned(), json!(work));
                }
                found.push(entry);
                peer.meet(|| side.turn())?;
            }
        }
        Ok(json!({ "found": found, "counted": side.counted() }))
    })
}
