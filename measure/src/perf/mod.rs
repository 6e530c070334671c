//! `doorbell perf`: measures latencies, rates and costs of every layer, always in the same way.
//!
//! | files and folders | what they do |
//! |---|---|
//! | `run` | decides from the arguments where the two ends run |
//! | `pair` | runs both ends on this machine |
//! | `play` | is one end of a test: agrees with the other, measures, and prints |
//! | `report`, `rows` | print figures as words, JSON or CSV |
//! | `floors` | runs tests of all layers in turn, for a table of what each layer adds |
//! | `layers` | measure one layer each, from verbs to RPC and Split-C, and the kernel's sockets |
//! | `costs` | break the time of an exchange down |
//! | `shared` | what tests of several layers share |
//! | `ends` | two processes, the network between them, and the stream by which they agree |
//! | `figures` | what was found |
//! | `plan` | what is measured: the arguments, the tests, the amount, the place |
//!
//! Each file uses only those below it.

pub(crate) mod costs;
pub(crate) mod ends;
mod figures;
mod floors;
mod layers;
mod pair;
mod plan;
mod play;
mod report;
mod rows;
mod run;
mod shared;

pub(crate) use plan::Plan;
pub(crate) use plan::amount::Amount;
pub use plan::args::Args;
pub(crate) use plan::args::{Carriage, Form};
pub(crate) use plan::place::Place;
pub use run::run;
