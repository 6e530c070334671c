//! The measurements of the command `doorbell`: latencies, rates and costs of every layer, and
//! papers whose measurements are repeated here.
//!
//! ```text
//!  paper    repeats the measurements of a paper      ───┐ runs the command again,
//!  perf     measures one latency, rate or cost       ◄──┘ as `doorbell perf`
//!  logp     a result of `doorbell perf`'s tests of LogP, and the devices that it names
//! ```
//!
//! What every command that measures shares: `runs` starts `doorbell perf` as a process, `machine`
//! describes the machine, `judging` compares what is uncertain, and `out`, `files`, `interrupts`,
//! `processors` and `usage` are this process's output, reports, signals, processors and arguments.

#![forbid(unsafe_code)]

pub mod files;
pub mod interrupts;
pub mod judging;
pub mod logp;
pub mod machine;
pub mod out;
pub mod paper;
pub mod perf;
pub mod processors;
pub mod runs;
pub mod usage;
