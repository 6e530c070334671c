//! What the host's time of an exchange is spent on: of a request of Active Messages and its reply,
//! of a get of Split-C, of a tagged message there and one back, or of a call of RPC.
//!
//! Both ends run on one thread of this process, so all time is the host's. Active Messages and the
//! layers above are compiled twice into the command that `doorbell-cli-costs` builds, from the same
//! sources: with spans that are measured, and without. Both copies make the exchange, in turn. What
//! the parts of the first amount to is told beside what the second takes, which shows how far the
//! spans disturb. Other builds of the command have no second copy, and refuse to measure.

#[cfg(feature = "costs")]
mod measured;
mod report;

#[cfg(feature = "costs")]
pub use measured::run;
pub use report::{fields, words};
#[cfg(not(feature = "costs"))]
pub use without::run;

/// How the command is built with what measures spans.
pub const BUILT_BY: &str = "cargo build --release -p doorbell-cli-costs --features costs";

/// Whether the command was built with the second copy, whose spans are measured.
pub const CAN_MEASURE: bool = cfg!(feature = "costs");

#[cfg(not(feature = "costs"))]
mod without {
    use anyhow::anyhow;

    use super::BUILT_BY;
    use crate::perf::figures::Figures;
    use crate::perf::plan::test::Costs;
    use crate::perf::{Args, Plan};
    use crate::usage;

    /// Refuses to measure, since the code with spans is not there.
    pub fn run(_: Costs, _: &Args, plan: &Plan) -> anyhow::Result<Figures> {
        Err(usage::wrong(anyhow!(
            "{} measures a second copy of Active Messages, which has spans of time, and this \
             command was built without it: build one from Doorbell's sources by `{BUILT_BY}`",
            plan.test.name()
        )))
    }
}
