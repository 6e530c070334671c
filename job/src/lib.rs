//! Jobs: how the processes of a program find each other, whoever has started them.
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
//! A program asks for its [`Place`], opens its NIC, and [meets](Place::meet) the others, who tell
//! each other the addresses of theirs. The same binary is started by `doorbell run` on one machine
//! or several, and by the launchers that clusters have: Hydra and Slurm by PMI-1, Slurm and Open
//! MPI by their environment, and anything else, Kubernetes for one, that can set four variables.
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
//! The processes meet at a small service over TCP, which process 0 runs until all are done. It
//! bounds how long all may take to come, and tells everybody who has not come, who has come twice,
//! and who has ended. The secret is never sent: each side proves that it knows it (HMAC-SHA256).
//! What is told after that is neither encrypted nor authenticated.

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
