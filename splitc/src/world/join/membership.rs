//! Who is of a world, and why a process did not join.

use std::time::Duration;

use thiserror::Error;

/// Which process of a world this is, and where the others are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Membership {
    /// The rank of this process.
    pub rank: usize,
    /// The addresses of the NICs of all processes, in the order of their ranks, such as
    /// `udp:192.0.2.7:5000` or `shm:job/3`.
    pub addresses: Vec<String>,
    /// The device that this process opens, such as `packet:eth0`, if that is not what its address
    /// says.
    pub device: Option<String>,
}

/// Why a process did not become part of a world.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum JoinError {
    /// The membership or the configuration makes no sense.
    #[error("{0}")]
    Config(String),
    /// The device could not be opened.
    #[error("process {rank} can't open {device}: {why}")]
    Device {
        /// The rank of this process.
        rank: usize,
        /// The device.
        device: String,
        /// Why.
        why: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Another process was not met.
    #[error("process {rank} at {address} was not met within {within:?}: {why}")]
    Missing {
        /// The rank of the other process.
        rank: usize,
        /// Where the other process should be.
        address: String,
        /// How long was tried.
        within: Duration,
        /// What the last attempt said.
        why: String,
    },
    /// Another process is no part of this world, or of another version.
    #[error("process {rank} at {address} is not of this world: {why}")]
    Stranger {
        /// The rank that the other process should have.
        rank: usize,
        /// Where it is.
        address: String,
        /// What is wrong.
        why: String,
    },
    /// The carrier that was chosen does not reach a process.
    #[error(transparent)]
    Carrier(crate::Error),
}

/// An attempt to meet a process that has failed.
pub(super) enum Attempt {
    /// The process may not be up yet.
    Again(String),
    /// Whoever is there is no process of this world.
    Stranger(String),
}
