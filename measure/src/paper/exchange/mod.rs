//! What the papers about frames measure, between two processes of this program: messages by a
//! protocol, with times and rates of the program's calls.
//!
//! | file | what it does |
//! |---|---|
//! | `args` | what is measured, and how |
//! | `pair` | is where the two processes run |
//! | `side` | posts messages, and looks what became of them: by frames, or by TCP |
//! | `measures` | the loops that are measured |
//! | `lines` | runs this for a report, and reads what was found |

mod args;
mod lines;
mod measures;
mod pair;
mod side;

use anyhow::Context;
use serde_json::{Value, json};

use crate::out;
use crate::perf::ends::peer::Peer;
pub use args::{Args, NAME};
pub use lines::{Exchanges, value};
use pair::Where;
use side::Side;

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

/// Plays one side of an exchange, for each size and each amount of computation. The first side
/// measures, and the second does its part.
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
