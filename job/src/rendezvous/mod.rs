//! Where processes meet: a small service over TCP, by which each tells its card and gets all cards.
//!
//! All of it is lines of text. A process and the service prove to each other that they know the
//! job's secret before either tells anything else; the secret itself never travels.
//!
//! | from | line | |
//! |---|---|---|
//! | process | `doorbell-job VERSION RANK SIZE NONCE` | |
//! | service | `nonce NONCE PROOF` | or `refused WHY` |
//! | process | `card PROOF CARD` | |
//! | service | `cards COUNT RUN`, where RUN is a random text, and the cards in the order of ranks | when all have come; or `failed WHY` |
//! | process | `tell TEXT` | as often as it likes, and all equally often |
//! | service | `told COUNT`, and the texts in the order of ranks | when all have told one |
//! | process | `bye` | it is done, and does not mind the end of others |
//! | process | `after RANK` | it ends because that process has ended |
//! | service | `noted` | to the process that has said so: what others say later comes behind it |
//! | service | `over` | all have said so |
//! | service | `ended RANK` | that process has ended without a `bye` |
//! | service | `first RANK` | that process was the first to end so, without naming another |
//!
//! The connections stay until the end of the job, so that each process hears of the end of others.
//! To meet, to tell each other one text, and to end takes eight messages for each process. Those
//! with the cards or texts of all are as long as there are processes.

mod client;
mod lines;
mod proof;
mod server;

pub use client::{Joined, join};
pub use proof::nonce;
pub use server::{Service, Standing};

/// The version of the lines.
const VERSION: u32 = 5;

/// The longest time that processes wait for each other: about a year, which can be added to any
/// instant.
pub const LONGEST: std::time::Duration = std::time::Duration::from_secs(1 << 25);

/// The longest text that a process can tell all others at once, in bytes. Escaped it has at most
/// three times as many, and fits a line.
pub const MOST_TEXT: usize = 16 << 10;

/// The facts of a job that all its processes know.
#[derive(Clone, Debug)]
pub struct Terms {
    /// How many processes there are.
    pub size: usize,
    /// The secret that only processes of the job know, and that tells the job from others.
    pub secret: Vec<u8>,
    /// How long all processes together may take to come.
    pub within: std::time::Duration,
}
