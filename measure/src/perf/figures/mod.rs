//! What a test has found: latencies, a rate, rows, LogP's parameters, or a breakdown of time.

pub mod breakdown;
pub mod latencies;
pub mod logp_result;

use doorbell_verbs::Capabilities;
use serde_json::Value;

use breakdown::Breakdown;
use latencies::Summary;
use logp_result::LogpResult;

/// The result of a test.
#[derive(Clone, PartialEq, Debug)]
pub struct Figures {
    /// The name of the device; `None` for the kernel's own sockets.
    pub device: Option<&'static str>,
    /// Round trips, or messages.
    pub iters: u64,
    pub found: Quantity,
}

/// The fields of one of several measurements, each with its name. All rows of a test have the same
/// names.
pub type Row = Vec<(&'static str, Value)>;

#[derive(Clone, PartialEq, Debug)]
pub enum Quantity {
    Latency(Summary),
    /// A rate in messages a second.
    Rate(f64),
    /// Several measurements, of one run.
    Rows(Vec<Row>),
    /// A share of a processor.
    Share(f64),
    /// The parameters of LogP, and what the device can do that they were measured on.
    LogP(Box<LogpResult>, Capabilities),
    /// A breakdown of the host's time.
    #[cfg_attr(not(feature = "costs"), expect(dead_code, reason = "nothing measures it"))]
    Costs(Box<Breakdown>),
}
