//! What the program's two ends of a queue pair share with the NIC.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::nic::config::queue_pair_state::State;
use crate::nic::queues::doorbells::Doorbells;
use crate::wire::{Qpn, Service};

/// The identity and the state of a queue pair, which the program's two ends share with the NIC.
#[derive(Clone)]
pub(crate) struct SharedWithProgram {
    pub qpn: Qpn,
    pub place: u32,
    pub service: Service,
    pub state: Arc<AtomicU8>,
    pub doorbells: Arc<Doorbells>,
}

impl SharedWithProgram {
    /// Whether the queue pair is in this state, or in one behind it in the order of their codes.
    #[inline]
    pub fn is_from(&self, state: State) -> bool {
        self.state.load(Ordering::Acquire) >= state as u8
    }

    pub fn state(&self) -> State {
        State::from_code(self.state.load(Ordering::Acquire))
    }
}
