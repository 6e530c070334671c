//! The table of handshakes of connections that peers request.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use doorbell_core::cm::{ConnectionId, Extensions, Request};
use doorbell_core::connect::Answering;
use doorbell_core::time::Time;

use super::listeners::ConnectionRequest;
use crate::link::Way;

/// How often handshakes of strangers are answered, in any second: each takes some tens of
/// microseconds of the processor's time.
const A_SECOND: u32 = 4000;
/// How many are answered at once.
const AT_ONCE: u32 = 64;

/// A handshake that was answered.
pub(super) struct Handshake {
    pub answering: Box<dyn Answering>,
    pub way: Way,
    pub request: Box<Request>,
    pub agreed: Extensions,
}

/// The handshakes that were answered and have not come to an end. The connection manager bounds how
/// many there are, as half-open connections.
#[derive(Default)]
pub(crate) struct Handshakes {
    pub answered: HashMap<ConnectionId, Handshake>,
    /// Requests whose handshakes wait to be answered.
    pub waiting: VecDeque<ConnectionRequest>,
    /// How many may be answered now, and when that was counted.
    budget: u32,
    counted_at: Time,
}

impl Handshakes {
    /// Forgets the handshake of a connection.
    pub fn forget(&mut self, id: ConnectionId) {
        self.answered.remove(&id);
        self.waiting.retain(|asked| asked.id != id);
    }

    /// Whether a handshake may be answered now; if so, it is counted.
    pub fn may_answer(&mut self, now: Time) -> bool {
        let each = Duration::from_secs(1) / A_SECOND;
        let passed = now.since(self.counted_at).as_nanos() / each.as_nanos();
        if passed > 0 {
            self.budget = AT_ONCE.min(self.budget.saturating_add(passed.min(1000) as u32));
            self.counted_at = now;
        }
        let left = self.budget.checked_sub(1);
        self.budget = left.unwrap_or(0);
        left.is_some()
    }
}
