//! Probing of servers from which calls wait for answers, and streams for their next messages.

use doorbell_am::Peer;
use doorbell_verbs::floor::{Awaits, Prober};

use super::calls::Calls;

impl Awaits for Calls {
    fn prober(&self) -> &Prober {
        &self.prober
    }

    fn is_waiting(&self) -> bool {
        !self.peers().is_empty()
    }

    fn probe(&self) {
        self.peers().iter().for_each(Peer::probe);
    }
}
