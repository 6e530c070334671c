//! The windows of a message, as its receiver clears them.

use doorbell_verbs::RemoteMemory;

use crate::frames::engine::timing::Time;
use crate::frames::wire::Clear;

/// The windows of a message that its receiver has cleared so far.
#[derive(Debug, Default)]
pub struct Windows {
    /// The number of the first frame that was not cleared yet.
    cleared: u32,
    /// The last clear to send.
    latest: Option<Clear>,
    /// When frames that are missing are asked for again.
    deadline: Option<Time>,
    tries: u32,
}

impl Windows {
    /// Returns the first frame that was not cleared yet.
    pub fn cleared(&self) -> u32 {
        self.cleared
    }

    /// Returns the last clear to send, to be repeated.
    pub fn latest(&self) -> Option<Clear> {
        self.latest
    }

    /// Makes a clear to send of the wanted frames from `base` on.
    pub fn clear(
        &mut self,
        base: u32,
        wanted: u64,
        memory: Option<RemoteMemory>,
        deadline: Time,
    ) -> Clear {
        let turn = match self.latest.map_or(1, |latest| latest.turn.wrapping_add(1)) {
            // Zero stands for a receiver without a receive.
            0 => 1,
            turn => turn,
        };
        let clear = Clear { turn, base, wanted, memory };
        self.latest = Some(clear);
        self.cleared = self.cleared.max(base + (64 - wanted.leading_zeros()));
        self.deadline = Some(deadline);
        clear
    }

    /// Notes that a frame has come.
    pub fn has_come(&mut self, deadline: Time) {
        self.tries = 0;
        if self.deadline.is_some() {
            self.deadline = Some(deadline);
        }
    }

    pub fn next_timeout(&self) -> Option<Time> {
        self.deadline
    }

    /// Returns how often missing frames have been asked for, this time included, if that is due.
    pub fn time_out(&mut self, now: Time) -> Option<u32> {
        if self.deadline.is_none_or(|deadline| deadline > now) {
            return None;
        }
        self.tries += 1;
        Some(self.tries)
    }
}
