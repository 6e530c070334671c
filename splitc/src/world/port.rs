//! The NICs of a process, and what a world has opened on each.

use std::cell::RefCell;

use doorbell_am::{self as am, Bundle, BundleConfig};
use doorbell_verbs::{CompletionQueue, Domain, Nic, Progress, Registered, Rights};

use crate::config::Config;
use crate::heap::Heap;

/// The most one-sided requests under way to each process.
pub(super) const REQUESTS: usize = 128;

/// The most queue pairs of a NIC.
pub(super) const QUEUE_PAIRS: usize = 16_384;

/// How many queue pairs a process may need for each other process: three connections, and those of
/// attempts, whose numbers rest for a while.
pub(super) const FOR_EACH: usize = 16;

/// A NIC of this process, and what a world has opened on it to reach some of the other processes.
pub(crate) struct Port {
    pub nic: Nic,
    pub bundle: Bundle,
    pub domain: Domain,
    /// The heap of this process, as the NIC knows it.
    pub registered: Registered,
    /// The completion queue of the one-sided requests by this NIC.
    pub completions: RefCell<CompletionQueue>,
}

type Refusal = Box<dyn std::error::Error + Send + Sync>;

impl Port {
    /// Opens on a NIC what a world of `size` processes needs.
    pub fn open(nic: &Nic, heap: &Heap, (config, size): (&Config, usize)) -> Result<Self, Refusal> {
        let domain = nic.domain();
        // The right to write locally, for what this process fetches by one-sided requests lands in
        // its own heap.
        let rights = Rights::REMOTE | Rights::LOCAL_WRITE;
        let registered = domain.register_shared(heap.memory.clone(), rights)?;
        let queues = (FOR_EACH * size).min(QUEUE_PAIRS);
        let completions = nic.completion_queue(queues + 2 * REQUESTS)?;
        let completions = RefCell::new(completions);
        let bundle = bundle(nic, config, size)?;
        Ok(Self { nic: nic.clone(), bundle, domain, registered, completions })
    }
}

/// Makes the bundle of a NIC. In dedicated mode a thread of the bundle's own serves it.
fn bundle(nic: &Nic, config: &Config, size: usize) -> Result<Bundle, am::OpenError> {
    let room = config.credits.saturating_mul(2 * size).clamp(4096, 1 << 17);
    let bundle = BundleConfig { receives: room, sends: room };
    match config.progress {
        Progress::Inline => Bundle::new(nic, &bundle),
        Progress::Dedicated { .. } => {
            // A bundle that is made on a thread without a runtime starts a thread that serves it.
            std::thread::scope(|scope| scope.spawn(|| Bundle::new(nic, &bundle)).join())
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        }
    }
}
