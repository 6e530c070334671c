//! What a world can be configured to be.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use doorbell_verbs::Progress;

/// How operations on the memory of a process are carried to that process.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Carrier {
    /// Loads, stores and atomic instructions on the heap of the other process, which is mapped
    /// here. For processes of one host on the device `shm`, where it is the default.
    Mapped,
    /// RDMA reads, writes, fetch-and-adds and compare-and-swaps. The other process does nothing for
    /// them, its NIC does. Operations that RDMA does not know go as [`Messages`](Self::Messages).
    OneSided,
    /// Active Messages, many operations in each, handled by the other process, as the paper of
    /// Begel, Buonadonna, Culler and Gay has it.
    Messages,
    /// Whichever of [`OneSided`](Self::OneSided) and [`Messages`](Self::Messages) serves an
    /// operation better: messages for split-phase operations on a few bytes, which share packets,
    /// and one-sided operations for what is awaited by itself and for long ranges. The default
    /// where memory is not mapped.
    Mixed,
}

impl fmt::Display for Carrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mapped => "mapped",
            Self::OneSided => "one-sided",
            Self::Messages => "messages",
            Self::Mixed => "mixed",
        })
    }
}

impl FromStr for Carrier {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = [Self::Mapped, Self::OneSided, Self::Messages, Self::Mixed];
        all.into_iter().find(|carrier| carrier.to_string() == text).ok_or_else(|| {
            format!("`{text}` is no carrier: there are mapped, one-sided, messages and mixed")
        })
    }
}

/// What a world is to be like. Every process of the world has the same configuration.
///
/// ```
/// use doorbell::splitc::{Config, Job};
///
/// let config = Config { heap: 1 << 20, ..Config::default() };
/// Job::threads(2).config(config).run(async |world| Ok(world.barrier().await?))?;
/// # Ok::<(), doorbell::splitc::RunError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Config {
    /// How many bytes of shared memory each process has for allocations: 1 GiB by default. The
    /// system provides what is allocated, and no more.
    pub heap: usize,
    /// How operations are carried, if not by what the device allows: see [`Carrier`].
    pub carrier: Option<Carrier>,
    /// How many messages a process may have under way to each other one, k in the paper: 64 by
    /// default. Stores are acknowledged once for every max(1, k/4) messages of them.
    pub credits: usize,
    /// How long all processes may take to come up: 30 seconds by default.
    pub start: Duration,
    /// How long a process may be silent before it is taken for dead: 5 seconds by default. Over
    /// shared memory the death of a process is noticed at once, whatever this says.
    pub patience: Duration,
    /// Who runs the NIC and the handlers. [`Progress::Inline`], the default: a process serves its
    /// peers whenever it waits for something of the world, and not while it computes.
    /// [`Progress::Dedicated`]: threads of their own do, whatever the process does.
    pub progress: Progress,
    /// For how long a process that waits looks again and again before it sleeps: 50 µs by default.
    pub spin: Duration,
    /// What processes must show to be admitted: a number that only processes of the same job know.
    /// `Job` makes one up for [threads](crate::Job::threads) and
    /// [processes](crate::Job::processes); members that are [given their
    /// addresses](crate::Job::member) have zero unless told otherwise.
    pub key: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            heap: 1 << 30,
            carrier: None,
            credits: 64,
            start: Duration::from_secs(30),
            patience: Duration::from_secs(5),
            progress: Progress::Inline,
            spin: Duration::from_micros(50),
            key: 0,
        }
    }
}
