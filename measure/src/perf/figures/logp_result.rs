//! What a measurement of LogP has found.

use doorbell_logp::{Parameters, Point};

/// The result of a measurement: the parameters of LogP, and the curves that they are taken from.
#[derive(Clone, PartialEq, Debug)]
pub struct LogpResult {
    pub parameters: Parameters,
    /// How a burst becomes steady, by its length and the computation behind each request.
    pub bursts: Vec<Point>,
    /// A steady rate, by the computation behind each request.
    pub steady: Vec<Point>,
    /// A steady rate, by the length of a request.
    pub long: Vec<Point>,
}
