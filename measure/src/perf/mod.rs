//! `doorbell perf`: measures latencies, rates and costs of every layer, always in the same way.
//!
//! | files | what they do |
//! |---|---|
//! | `run` | decides from the arguments where the two ends run |
//! | `pair`, `ends`, `cable` | run both ends on this machine, with a network between them |
//! | `play` | is one end of a test: agrees with the other, measures, and prints |
//! | `report` | prints figures as words, JSON or CSV |
//! | `verbs`, `am`, `tags`, `groups`, `streams`, `bytestream`, `rpc`, `splitc`, `logp`, `costs`, `sockets`, `frames` | measure one layer each |
//! | `peer` | is the stream by which the two ends agree |
//! | `following`, `stream`, `latencies`, `ledger`, `pattern`, `patience`, `meter`, `processor_time` | what measurements share |
//! | `figures`, `breakdown`, `logp_result`, `plan`, `place`, `args`, `test`, `amount` | what is measured, and what was found |
//!
//! Each file uses only those below it.

mod am;
mod amount;
mod args;
mod breakdown;
mod bytestream;
pub(crate) mod cable;
pub(crate) mod costs;
pub(crate) mod ends;
mod figures;
mod following;
mod frames;
mod groups;
mod latencies;
mod ledger;
mod logp;
mod logp_result;
mod meter;
mod pair;
mod patience;
mod pattern;
pub(crate) mod peer;
mod place;
mod plan;
mod play;
mod processor_time;
mod report;
mod rows;
mod rpc;
mod run;
mod sockets;
mod splitc;
mod stream;
mod streams;
mod tags;
mod test;
mod verbs;

pub(crate) use amount::Amount;
pub use args::Args;
pub(crate) use args::{Carriage, Form};
pub(crate) use place::Place;
pub(crate) use plan::Plan;
pub use run::run;
