//! The configuration of a world: heap size, carrier, credits, timeouts and progress.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use doorbell_verbs::Progress;

/// The means by which operations on another process's memory are carried out.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Carrier {
    /// Loads, stores and atomic instructions on the target's heap, which is mapped into this
    /// process. For processes of one host on the device `shm`, where `Mapped` is the default.
    Mapped,
    /// RDMA reads, writes, fetch-and-adds and compare-and-swaps: the target's NIC carries them out,
    /// and the target process takes no part. Operations that RDMA does not have are sent as
    /// [`Messages`](Self::Messages).
    OneSided,
    /// Active Messages, each of which aggregates many operations, and which the target process
    /// handles: the scheme of the paper by Begel, Buonadonna, Culler and Gay.
    Messages,
    /// Whichever of [`OneSided`](Self::OneSided) and [`Messages`](Self::Messages) serves an
    /// operation better: messages for split-phase operations on a few bytes, which are aggregated,
    /// and one-sided operations for long ranges and for operations that are awaited one by one. The
    /// default where memory is not mapped.
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

/// The configuration of a world, which is the same in every process.
///
/// ```
/// use doorbell_splitc::{Config, Job};
///
/// let config = Config { heap: 1 << 20, ..Config::default() };
/// Job::threads(2).config(config).run(async |world| Ok(world.barrier().await?))?;
/// # Ok::<(), doorbell_splitc::RunError>(())
/// ```
#[derive(Clone)]
pub struct Config {
    /// The size in bytes of each process's heap, from which shared memory is allocated: 1 GiB by
    /// default. The system provides memory only for what is allocated.
    pub heap: usize,
    /// The carrier of operations on other processes' memory. By default the device decides:
    /// [`Carrier::Mapped`] where it maps heaps, [`Carrier::Mixed`] elsewhere.
    pub carrier: Option<Carrier>,
    /// How many messages a process may have under way to each other process, k in the paper: 64 by
    /// default. Stores are acknowledged once for every max(1, k/4) messages of stores.
    pub credits: usize,
    /// How long all processes together may take to join the world: 30 seconds by default.
    pub start: Duration,
    /// How long a process may be silent before others take it for dead: 5 seconds by default. Over
    /// shared memory the death of a process is noticed at once, whatever `patience` is.
    pub patience: Duration,
    /// How long a process waits, in a collective or for operations, before it reports what it waits
    /// for and for whom: a minute by default, and then after twice as long each time; never if this
    /// is [`Duration::MAX`]. The report is a warning of `tracing`; in a program that has no
    /// subscriber it goes to standard error.
    pub stall: Duration,
    /// The threads that drive the NIC and run the handlers. With [`Progress::Inline`], the default,
    /// a process serves its peers whenever it waits for something of the world, and not, or over a
    /// network only now and then, while it computes. With [`Progress::Dedicated`], threads of the
    /// library's own serve the peers, whatever the process does.
    pub progress: Progress,
    /// How long a waiting process polls before it sleeps: 50 µs by default.
    pub spin: Duration,
    /// The number that only processes of the same job know, and that each process proves to the
    /// others that it knows before it is told anything or admitted. `Job` makes one up for
    /// [threads](crate::Job::threads) and [processes](crate::Job::processes), and derives one from
    /// the secret of a launcher's job. Members that are [given their addresses](crate::Job::member)
    /// have zero unless told otherwise, which is no key: it serves only where all addresses are of
    /// this host, `shm` or the loopback's. At any other address, [`World::join`](crate::World::join)
    /// refuses it, and numbers below 2³², which nobody has drawn. Over `udp` on the loopback, a
    /// world without a key is open to every user of the machine.
    ///
    /// The key never goes over the network. But whoever has got a proof, by recording how two
    /// processes connect or by asking one of them, can test guesses of the key on it. So draw the key
    /// from all 64 bits: `head -c 8 /dev/urandom | od -An -tx8 | tr -d ' '` prints one, for
    /// `DOORBELL_KEY`. Somebody on the way between two processes who passes on, and changes, what
    /// they say to each other is not kept out.
    pub key: u64,
}

/// Shows all but the key.
impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { heap, carrier, credits, start, patience, stall, progress, spin, key } = self;
        f.debug_struct("Config")
            .field("heap", heap)
            .field("carrier", carrier)
            .field("credits", credits)
            .field("start", start)
            .field("patience", patience)
            .field("stall", stall)
            .field("progress", progress)
            .field("spin", spin)
            .field("key", &if *key == 0 { "none" } else { "not shown" })
            .finish()
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            heap: 1 << 30,
            carrier: None,
            credits: 64,
            start: Duration::from_secs(30),
            patience: Duration::from_secs(5),
            stall: doorbell_am::stall::USUAL,
            progress: Progress::Inline,
            spin: Duration::from_micros(50),
            key: 0,
        }
    }
}
