//! The membership of a process in a world, and the errors of joining.

use std::time::Duration;

use thiserror::Error;

use crate::causes::with_causes;

/// The membership of a process in a world: its rank, and the addresses of all processes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Membership {
    /// The rank of this process.
    pub rank: usize,
    /// The addresses of the NICs of all processes, in the order of their ranks, such as
    /// `udp:192.0.2.7:5000` or `shm:job/3`.
    pub addresses: Vec<String>,
    /// The device that this process opens, such as `packet:eth0`. If it is `None`, this process's
    /// own address names the device.
    pub device: Option<String>,
}

/// Why a process did not become part of a world.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum JoinError {
    /// The membership or the configuration is invalid.
    #[error("{0}")]
    Config(String),
    /// The device could not be opened, or did not provide what a world needs.
    #[error("process {rank} can't open {device}: {}", with_causes(&**.why))]
    Device {
        /// The rank of this process.
        rank: usize,
        /// The name of the device, or the address of the NIC once it is open.
        device: String,
        /// The error that the device returned.
        why: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A limit of this process or of its machine, such as that of file descriptors, does not allow
    /// what a world of so many processes takes.
    #[error("process {rank} can't join {others} other processes: {why}")]
    Limit {
        /// The rank of this process.
        rank: usize,
        /// How many processes this one is to reach.
        others: usize,
        /// The limit, and how much is needed.
        why: String,
    },
    /// A process of the world was lost while this one joined, or refused a connection for good.
    #[error("process {rank} at {address} was lost while this process joined: {why}")]
    Lost {
        /// The rank of the other process.
        rank: usize,
        /// The address where the other process should be.
        address: String,
        /// How the other process was lost.
        why: String,
    },
    /// A process of the world could not be connected to in time.
    #[error("process {rank} at {address} was not met within {within:?}: {why}")]
    Missing {
        /// The rank of the other process.
        rank: usize,
        /// The address where the other process should be.
        address: String,
        /// How long joining may take, by the configuration.
        within: Duration,
        /// The error of the last attempt.
        why: String,
    },
    /// The processes of a job that a launcher has started could not tell each other their
    /// addresses.
    #[error(transparent)]
    Job(doorbell_job::JobError),
    /// A process of the world ended before it had joined.
    #[error("process {rank} ended with {status} before it had joined")]
    Ended {
        /// The rank of that process.
        rank: usize,
        /// The exit status of the process.
        status: std::process::ExitStatus,
    },
    /// The process at an address is not of this world, or runs another version of the library.
    #[error("process {rank} at {address} is not of this world: {why}")]
    Stranger {
        /// The rank that the other process should have.
        rank: usize,
        /// The address of the other process.
        address: String,
        /// The reason why the process is not of this world.
        why: String,
    },
    /// The carrier that was chosen does not reach a process.
    #[error(transparent)]
    Carrier(crate::Error),
}

/// The reason why an attempt to connect to a process has failed.
pub(super) enum Attempt {
    /// The process may not be up yet, and another attempt may succeed.
    Again(String),
    /// A limit of this process does not allow the connection, and further attempts are useless.
    Limit(String),
    /// The process has refused the connection for good.
    Refused(String),
    /// The process at the address is not of this world, and further attempts are useless.
    Stranger(String),
}
