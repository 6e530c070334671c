//! Jobs: how the processes of one program find each other, on one machine or many, whichever
//! launcher has started them. A process learns its rank, meets the others, and tells them the
//! addresses of its network devices.
//!
//! ```
//! use std::time::Duration;
//!
//! use doorbell_job::{JobError, Place};
//!
//! fn main() -> Result<(), JobError> {
//!     let Some(place) = Place::find(Duration::from_secs(30))? else {
//!         println!("no launcher has started this process: it is alone");
//!         return Ok(());
//!     };
//!     println!("process {} of {}", place.rank(), place.size());
//!     let members = place.meet()?; // waits until all processes have come
//!     let addresses = members.exchange("udp:192.0.2.7:5000")?; // mine; returns those of all
//!     println!("process 0 is at {}", addresses[0]);
//!     members.finish()
//! }
//! ```
//!
//! # The parts
//!
//! | | |
//! |---|---|
//! | [`Place`], [`Environment`] | the rank of a process, the size of its job, and what the launcher told it |
//! | [`Members`], [`Card`] | a process that has met the others, and how they describe themselves |
//! | [`Devices`], [`open`], [`Routes`], [`Route`] | the device by which each pair of processes is connected |
//! | [`Service`], [`Terms`], [`Standing`] | the rendezvous, for programs that are launchers |
//! | [`Children`], [`Starter`] | processes that a process starts itself |
//!
//! ```text
//!  launcher: doorbell run, Hydra, Slurm, Open MPI, or anything that sets variables
//!     │ environment, or a PMI socket
//!  Place: the rank of this process, the size of the job, and where to meet
//!     │ a card of each process: its host and its addresses
//!  rendezvous: process 0 serves the others by TCP, or PMI exchanges the cards
//!     │ all cards
//!  Members: every process, and the route to it
//! ```
//!
//! The launchers are `doorbell run`; Hydra and Slurm, by PMI-1; Slurm and Open MPI, by their
//! environment; and anything else that can set four variables, such as Kubernetes.
//!
//! | variable | |
//! |---|---|
//! | `DOORBELL_RANK`, `DOORBELL_SIZE` | the number of this process, and how many there are |
//! | `DOORBELL_RENDEZVOUS` | `HOST:PORT`, where process 0 serves the others |
//! | `DOORBELL_SECRET`, or `DOORBELL_SECRET_FILE` | what only processes of the job know: drawn at random, at least 16 characters |
//! | `DOORBELL_WITHIN` | how many seconds all processes together may take to come |
//! | `DOORBELL_DEVICE` | the [devices](Devices) by which processes may reach each other, as `shm,udp` |
//! | `DOORBELL_INTERFACE` | the network interface of devices that are named without one |
//! | `DOORBELL_ADDRESSES` | instead of all that but the rank: the addresses of all, with commas |
//!
//! # The rendezvous
//!
//! The processes meet at a small service over TCP, which process 0 or the launcher runs until all
//! are done. The service bounds how long all may take to come, and tells every process who has not
//! come, who has come twice, and who has ended. To meet, to tell each other one text, and to end
//! takes eight messages for each process.
//!
//! The secret is never sent. Each side proves that it knows the secret by HMAC-SHA256 over numbers
//! that both have drawn and the port, which is the same on both sides; so a service at another port
//! of the host can't pass for this one by handing messages on. The service proves first. Whoever
//! reaches the port therefore has something to test guesses on: secrets must be random, and those of
//! fewer than 16 characters are refused. What is told after the proof is neither encrypted nor
//! authenticated.
//!
//! The key of the job follows from the secret and from a random text of each run, by another HMAC:
//! two runs with one secret have different keys, and a key tells nothing about the secret.
//!
//! The service holds at most 64 connections more than the job has processes, each in a thread with
//! 128 KiB of stack, and lines of at most 4 KiB from those that have proved nothing. Where more
//! come, the oldest connection of the host that has most makes room. A connection has ten seconds
//! for the greeting and the proof together. Nothing that a stranger says ends a job, but a stranger
//! who opens connections without a pause can keep the processes from meeting in time.

#![deny(unsafe_code, clippy::multiple_unsafe_ops_per_block)]

mod aside;
mod card;
mod devices;
mod environment;
mod error;
mod limits;
mod members;
mod nodes;
mod place;
mod pmi;
mod rendezvous;
mod report;
mod routes;
mod secret;
mod spawned;
mod start;
#[allow(unsafe_code)]
mod sys;

pub use card::Card;
pub use devices::{Candidate, Devices};
pub use environment::Environment;
pub use error::JobError;
pub use limits::check_descriptors;
pub use members::Members;
pub use place::{Place, own_addresses};
pub use rendezvous::{MOST_TEXT, Service, Standing, Terms, nonce as secret};
pub use report::{SECONDARY, report};
pub use routes::{Route, Routes, open};
pub use spawned::{Absence, Children, LONGEST_ADDRESS, LONGEST_SECRET, Starter, Teller};

/// The most processes of a job.
pub const MOST_PROCESSES: usize = 65_536;
