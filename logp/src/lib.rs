//! The parameters of the LogP model for a way of sending messages, measured from outside.
//!
//! LogP describes a network to a programmer by what a short message costs: the time `o_s` for which
//! the sender's processor is busy, the time `o_r` for which the receiver's is, the latency `L`
//! between the two, and the gap `g`, the shortest time between two messages at a steady rate. LogGP
//! adds `G`, the gap for each further byte of a long message.
//!
//! One side measures all of them: it sends requests that the other side answers. A program says how
//! a request is sent and how answers are taken, and this crate measures:
//!
//! ```
//! use std::collections::VecDeque;
//! use std::convert::Infallible;
//!
//! use doorbell_logp::{Measurement, Monotonic, Plan, Requester};
//!
//! /// "Messages" that come back at once.
//! #[derive(Default)]
//! struct Echo {
//!     under_way: VecDeque<usize>,
//!     answered: u64,
//! }
//!
//! impl Requester for Echo {
//!     type Error = Infallible;
//!
//!     fn send(&mut self, bytes: usize) -> Result<(), Infallible> {
//!         self.under_way.push_back(bytes);
//!         Ok(())
//!     }
//!
//!     fn poll(&mut self) -> Result<(), Infallible> {
//!         self.answered += self.under_way.drain(..).count() as u64;
//!         Ok(())
//!     }
//!
//!     fn answered(&self) -> u64 {
//!         self.answered
//!     }
//! }
//!
//! let plan = Plan { rounds: 5, ..Plan::quick() };
//! let mut measurement = Measurement::new(Echo::default(), Monotonic::new(), plan)?;
//! while measurement.round()? {}
//! let found = measurement.parameters().expect("there were rounds");
//! println!("{found}"); // o_s 0.006 µs (0.006 to 0.007), o_r …
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The parts
//!
//! | | |
//! |---|---|
//! | [`Requester`] | what a program implements: how a request is sent, and how answers are taken |
//! | [`Plan`], [`Clock`], [`Monotonic`] | how much is measured, and by which clock |
//! | [`Measurement`] | the measurement, which goes on round by round |
//! | [`Parameters`], [`Estimate`] | the result: each parameter with its interval |
//! | [`Curve`], [`Point`] | what the single pieces took |
//!
//! # The method
//!
//! The method is that of D. E. Culler, L. T. Liu, R. P. Martin and C. Yoshikawa, *Assessing Fast
//! Network Interfaces*, IEEE Micro 16 (1), 1996. Requests are sent in bursts, with a computation of
//! length Δ behind each.
//!
//! * In a burst that is over before the first answer has come, the processor does nothing but send:
//!   a request takes `o_s`.
//! * At a steady rate without computation, a request takes `g`; or `o_s + o_r`, if the processor is
//!   slower than the network, which then shows no gap of its own.
//! * At a steady rate with a computation longer than the gap, the network is never waited for: a
//!   request takes `o_s + Δ + o_r`.
//! * A request alone is answered after the round-trip time, so `L = RTT / 2 − o_s − o_r`.
//! * At a steady rate of longer requests, each byte more takes `G`.
//!
//! `L` is computed as the rest, and is reported as such. Where the sender's processor carries a
//! message all the way, as between two ends of a virtual Ethernet cable, `o_s` contains that way,
//! and `L` comes out near zero or below.
//!
//! # What is done about noise
//!
//! A measurement has [rounds](Plan::rounds), in each of which everything is measured; so a
//! disturbance hits all parameters of a round and not one parameter of all rounds. Within a round,
//! everything is timed in many short pieces, of which the median counts: a piece in which something
//! else had the processor is no better than any other bad piece. A parameter is the median of its
//! rounds, and comes with an [interval](Estimate) in which that median lies with a probability of
//! 95 %, whatever the distribution is. The cost of reading the clock is measured, and subtracted.
//! Another run finds another median, and differs by more than chance, since its processes have other
//! memory. Only [several runs](Estimate::of_runs) show how far runs differ.
//! The times of the pieces are kept in [curves](Curve).
//!
//! # Features
//!
//! With `serde`, results can be written to files and read from them: [`Parameters`], [`Estimate`],
//! [`Curve`] and [`Point`].

#![forbid(unsafe_code)]

mod bursts;
mod clock;
mod curves;
mod estimate;
mod measurement;
mod parameters;
mod plan;
mod requester;

pub use clock::{Clock, Monotonic};
pub use curves::{Curve, Point};
pub use estimate::Estimate;
pub use measurement::Measurement;
pub use parameters::Parameters;
pub use plan::{Plan, PlanError};
pub use requester::Requester;
