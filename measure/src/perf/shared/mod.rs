//! What tests of several layers share: `stream` sends one way, `pattern` makes and checks the
//! contents of messages, `bodies` those of calls, `ledger` counts what was received and in which
//! order, `patience` is for how long an end waits, and `processor_time` is how much of a processor
//! this process has taken.

pub mod bodies;
pub mod ledger;
pub mod patience;
pub mod pattern;
pub mod processor_time;
pub mod stream;
