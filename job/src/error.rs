//! The errors of finding the other processes of a job.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

/// The reason why a process could not find the others, or could not end with them.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum JobError {
    /// An environment variable has a value that makes no sense.
    #[error("{variable} is `{found}`: {expected}")]
    Environment {
        /// The name of the variable.
        variable: &'static str,
        /// The value of the variable.
        found: String,
        /// The values that the variable may have.
        expected: &'static str,
    },
    /// An environment variable is not set that belongs to another one.
    #[error("{beside} is set, and {variable} is not: set both, or neither")]
    Lacking {
        /// The variable that is not set.
        variable: &'static str,
        /// The variable that is set.
        beside: &'static str,
    },
    /// An environment variable names a descriptor that is not what it should be.
    #[error(
        "{variable} is {number}, and descriptor {number} is {found}: it should be a connected Unix \
         stream socket that whoever has started this process has left open for it"
    )]
    Descriptor {
        /// The name of the variable.
        variable: &'static str,
        /// The number of the descriptor.
        number: i32,
        /// A description of the descriptor, or `not open`.
        found: String,
    },
    /// The rank of a process is not below the number of processes.
    #[error(
        "{rank_variable} is {rank}, and {size_variable} is {size}: ranks go from 0 to {size}-1"
    )]
    Rank {
        /// The rank of the process.
        rank: usize,
        /// How many processes there are.
        size: usize,
        /// The variable with the rank.
        rank_variable: &'static str,
        /// The variable with the number of processes.
        size_variable: &'static str,
    },
    /// The file with the secret can't be read.
    #[error("the job's secret in {}: {why}", path.display())]
    Secret {
        /// The path of the file.
        path: PathBuf,
        /// The error of the system.
        why: io::Error,
    },
    /// The secret is too short to have been drawn at random. Whoever gets a proof that somebody
    /// knows it could find it by trying.
    #[error(
        "the job's secret of {from} has {found} characters, and must have at least {least} that \
         were drawn at random: whoever reaches the rendezvous could find a shorter one by trying. \
         Draw one by `head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \\n'`"
    )]
    WeakSecret {
        /// The variable or the file that has the secret.
        from: String,
        /// The number of characters of the secret.
        found: usize,
        /// The fewest characters that a secret may have.
        least: usize,
    },
    /// The launcher does not answer as PMI-1 has it.
    #[error("asking the launcher by PMI-1 `{asked}`: {found}")]
    Pmi {
        /// The question to the launcher.
        asked: String,
        /// The text that came instead of an answer.
        found: String,
    },
    /// The rendezvous was not found in time.
    #[error(
        "process {rank} has not found the rendezvous at {} within {within:?}: {why}",
        places.join(", ")
    )]
    NoRendezvous {
        /// The rank of this process.
        rank: usize,
        /// The hosts and ports at which it looked.
        places: Vec<String>,
        /// How long it looked.
        within: Duration,
        /// The reply, or the error, that it met instead.
        why: String,
    },
    /// The rendezvous has told this process that the job does not begin.
    #[error("the job does not begin: {why}")]
    Refused {
        /// The rank of this process.
        rank: usize,
        /// The reason that the rendezvous gave.
        why: String,
    },
    /// Process 0 could not listen to any of the ports on which it may serve the others.
    #[error(
        "process 0 can't serve the others at any of these ports: {ports}: {why}. If the port is in \
         use, another job has it, or a second process says that it is process 0"
    )]
    Ports {
        /// The ports that were tried.
        ports: String,
        /// The error of the last one.
        why: io::Error,
    },
    /// Two processes of one program run different builds of it.
    #[error(
        "process {rank} on {host} runs another build of {program} than process {other} on \
         {other_host}: install the same build on all hosts"
    )]
    Build {
        /// The process whose build differs.
        rank: usize,
        /// The host of the process.
        host: String,
        /// The name of the program.
        program: String,
        /// A process with another build.
        other: usize,
        /// The host of that process.
        other_host: String,
    },
    /// A process's description of itself can't be parsed.
    #[error("what process {rank} tells of itself makes no sense: `{found}`")]
    Card {
        /// The rank of that process.
        rank: usize,
        /// The text that it sent.
        found: String,
    },
    /// Two processes were told to use different devices.
    #[error(
        "process {rank} was told to use the devices {found}, and process {own_rank} {own}: set \
         DOORBELL_DEVICE to the same for all processes"
    )]
    Devices {
        /// The rank of the other process.
        rank: usize,
        /// The devices of the other process.
        found: String,
        /// The rank of this process.
        own_rank: usize,
        /// The devices of this process.
        own: String,
    },
    /// A process could open none of the devices that it was to.
    #[error("process {rank} could open no device: {reasons}")]
    NothingOpened {
        /// The rank of this process.
        rank: usize,
        /// Why each device could not be opened.
        reasons: String,
    },
    /// Two processes have no device in common by which they reach each other.
    #[error("processes {rank} and {other} reach each other by no device: {reasons}")]
    NoDevice {
        /// The rank of this process.
        rank: usize,
        /// The rank of the other process.
        other: usize,
        /// Why each device does not reach the other process.
        reasons: String,
    },
    /// A process has ended without saying that it is done.
    #[error("process {rank} has ended before the job was over")]
    Ended {
        /// The rank of that process.
        rank: usize,
    },
    /// A text is too long for all processes to be told it at once.
    #[error("a text of {len} bytes for all processes: the rendezvous takes {most} at the most")]
    TooLong {
        /// How many bytes the text has.
        len: usize,
        /// The most bytes that a text may have.
        most: usize,
    },
    /// Not all processes have told the others their addresses in time.
    #[error("not all processes have told the others their addresses within {within:?}")]
    Silent {
        /// How long they were waited for.
        within: Duration,
    },
    /// The rendezvous, which lasts as long as the job, has ended.
    #[error("the rendezvous of the job has ended before the job was over")]
    ServiceEnded,
    /// The system refused something.
    #[error("{what}: {why}")]
    System {
        /// The step that the system refused.
        what: &'static str,
        /// The error of the system.
        why: io::Error,
    },
}
