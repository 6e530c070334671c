//! Bundles of several NICs that are served together.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::task::Waker;

use crate::dispatch::Looked;

/// The looks at a bundle between two turns of the NIC of a companion. A turn of a NIC whose device
/// maps memory reads a few words; a turn of any other NIC may be a system call, which would slow
/// down a wait at the first NIC.
const LOOKS_BETWEEN_TURNS: u32 = 16;

/// A bundle, as far as the bundles that are united with it ask it for anything.
pub(super) trait Served: Send + Sync {
    /// Returns whether a turn of the bundle's NIC is cheap.
    fn has_cheap_turns(&self) -> bool;

    /// Returns whether the bundle has something to do besides taking completions.
    fn is_stirred(&self) -> bool;

    /// Handles what has come to the bundle, behind a turn of its NIC if `turn` says so.
    fn look(&self, requests: bool, turn: bool) -> Looked;

    /// Has the waker woken when the bundle has handled a message.
    fn wake_behind_handlers(&self, waker: &Waker);

    /// Returns how many messages the bundle has ever handled.
    fn handled(&self) -> u64;
}

/// The companions of a bundle: other bundles of the process that are served whenever it is.
#[derive(Default)]
pub(super) struct Companions {
    others: OnceLock<Box<[Companion]>>,
}

/// A bundle that is served whenever another is.
struct Companion {
    /// Weak, since companions refer to each other.
    bundle: Weak<dyn Served>,
    /// The looks that pass between two turns of the companion's NIC.
    looks_between: u32,
    looks: AtomicU32,
}

impl Companions {
    /// Returns whether there are other bundles that are served with this one.
    #[inline]
    pub fn are_there(&self) -> bool {
        self.others.get().is_some()
    }

    /// Sets the companions, for good. Returns whether there were none before.
    pub fn set(&self, others: impl Iterator<Item = Arc<dyn Served>>) -> bool {
        let companion = |other: Arc<dyn Served>| Companion {
            looks_between: if other.has_cheap_turns() { 1 } else { LOOKS_BETWEEN_TURNS },
            bundle: Arc::downgrade(&other),
            looks: AtomicU32::new(0),
        };
        self.others.set(others.map(companion).collect()).is_ok()
    }

    /// Handles what has come to the companions, and lets their NICs take turns.
    pub fn look(&self, requests: bool) -> Looked {
        let mut all = Looked::default();
        for companion in self.all() {
            let Some(bundle) = companion.bundle.upgrade() else { continue };
            let turn = companion.is_due() || bundle.is_stirred();
            let looked = bundle.look(requests, turn);
            all.handled += looked.handled;
            all.woke |= looked.woke;
        }
        all
    }

    /// Has the waker woken whenever a companion has handled something.
    pub fn register(&self, waker: &Waker) {
        self.each(|bundle| bundle.wake_behind_handlers(waker));
    }

    /// Returns how many messages the companions have ever handled.
    pub fn handled(&self) -> u64 {
        let mut handled = 0;
        self.each(|bundle| handled += bundle.handled());
        handled
    }

    fn all(&self) -> &[Companion] {
        self.others.get().map_or(&[], |others| others)
    }

    fn each(&self, mut does: impl FnMut(&dyn Served)) {
        let all = self.all().iter().filter_map(|other| other.bundle.upgrade());
        all.for_each(|other| does(&*other));
    }
}

impl Companion {
    /// Returns whether the companion's NIC is to take a turn in this look.
    fn is_due(&self) -> bool {
        // Two threads that look at the same time may lose one count, which delays a turn by one.
        let looks = self.looks.load(Ordering::Relaxed).wrapping_add(1);
        self.looks.store(looks, Ordering::Relaxed);
        looks.is_multiple_of(self.looks_between)
    }
}
