//! Bundles of several NICs that are served together.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::task::Waker;

use doorbell_verbs::floor::HeldNic;

use crate::bundle::Shared;
use crate::poller::Looked;

/// Looks at a bundle between two turns of the NIC of a companion. A turn of a NIC whose device
/// maps memory reads a few words; a turn of any other NIC may be a system call, which would slow
/// down a wait at the first NIC.
const LOOKS_BETWEEN_TURNS: u32 = 16;

/// The other bundles of a process that are served whenever this bundle is.
#[derive(Default)]
pub(crate) struct Companions {
    others: OnceLock<Box<[Companion]>>,
}

struct Companion {
    /// Companions have each other, and none keeps another.
    bundle: Weak<Shared>,
    /// How many looks pass between two turns of the companion's NIC.
    looks_between: u32,
    looks: AtomicU32,
}

impl Companions {
    /// Whether there are other bundles that are served with this one.
    #[inline]
    pub fn are_there(&self) -> bool {
        self.others.get().is_some()
    }

    /// Sets the companions, for good. Returns whether there were none before.
    pub fn set(&self, others: impl Iterator<Item = Arc<Shared>>) -> bool {
        let companion = |other: Arc<Shared>| Companion {
            looks_between: if other.maps() { 1 } else { LOOKS_BETWEEN_TURNS },
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
            let looked = match companion.is_due() || bundle.is_stirred() {
                true => look_with_turn(&bundle, requests),
                false => bundle.look_alone(requests, HeldNic::none(), None),
            };
            all.handled += looked.handled;
            all.woke |= looked.woke;
        }
        all
    }

    /// Has the waker woken whenever a companion has handled something.
    pub fn register(&self, waker: &Waker) {
        self.each(|bundle| bundle.wake_behind_handlers(waker));
    }

    /// How many messages the companions have handled, ever.
    pub fn handled(&self) -> u64 {
        let mut handled = 0;
        self.each(|bundle| handled += bundle.handled_alone());
        handled
    }

    fn all(&self) -> &[Companion] {
        self.others.get().map_or(&[], |others| others)
    }

    fn each(&self, mut does: impl FnMut(&Shared)) {
        self.all().iter().filter_map(|other| other.bundle.upgrade()).for_each(|other| does(&other));
    }
}

impl Companion {
    /// Whether the companion's NIC is to take a turn in this look.
    fn is_due(&self) -> bool {
        // Two threads that look at the same time may lose one count, which delays a turn by one.
        let looks = self.looks.load(Ordering::Relaxed).wrapping_add(1);
        self.looks.store(looks, Ordering::Relaxed);
        looks.is_multiple_of(self.looks_between)
    }
}

/// Handles what has come to a bundle, behind a turn of its NIC.
fn look_with_turn(bundle: &Shared, requests: bool) -> Looked {
    let mut looked = Looked::default();
    bundle.nic.turn_and_find(|nic| {
        looked = bundle.look_alone(requests, nic, None);
        (looked.handled > 0).then_some(())
    });
    looked
}
