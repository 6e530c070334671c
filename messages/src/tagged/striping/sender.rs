//! The messages that a sender keeps until they are acknowledged.

use std::collections::VecDeque;

/// Messages of the type `M` that were sent over several connections and not acknowledged yet.
#[derive(Debug)]
pub struct Sent<M> {
    /// The sequence number of the first that is kept.
    first: u64,
    /// Each kept message, with the connection that has carried it last, if that has not ended.
    kept: VecDeque<(Option<usize>, M)>,
    /// How many kept messages are to be sent again.
    lost: usize,
}

impl<M> Default for Sent<M> {
    fn default() -> Self {
        Self { first: 0, kept: VecDeque::new(), lost: 0 }
    }
}

impl<M: Clone> Sent<M> {
    /// Keeps the next message, which a connection is to carry. Returns its sequence number.
    pub fn keep(&mut self, connection: usize, message: M) -> u64 {
        self.kept.push_back((Some(connection), message));
        self.first + self.kept.len() as u64 - 1
    }

    /// Drops the messages before a sequence number, which the receiver has. Returns whether that
    /// many were sent.
    pub fn acknowledged(&mut self, next: u64) -> bool {
        let count = next.saturating_sub(self.first);
        let was_sent = count <= self.kept.len() as u64;
        if was_sent {
            let dropped = self.kept.drain(..count as usize);
            self.lost -= dropped.filter(|(by, _)| by.is_none()).count();
            self.first += count;
        }
        was_sent
    }

    /// Notes that a connection has ended: what it has carried is to be sent again.
    pub fn ended(&mut self, connection: usize) {
        let carried = self.kept.iter_mut().filter(|(by, _)| *by == Some(connection));
        carried.for_each(|(by, _)| {
            *by = None;
            self.lost += 1;
        });
    }

    /// Returns the first message that is to be sent again, which a connection is to carry now, with
    /// its sequence number.
    pub fn again(&mut self, connection: usize) -> Option<(u64, M)> {
        if self.lost == 0 {
            return None;
        }
        let place = self.kept.iter().position(|(by, _)| by.is_none())?;
        let (by, message) = &mut self.kept[place];
        *by = Some(connection);
        self.lost -= 1;
        Some((self.first + place as u64, message.clone()))
    }

    /// Returns whether a message is to be sent again.
    pub fn has_again(&self) -> bool {
        self.lost > 0
    }

    /// Returns how many messages are kept.
    pub fn kept(&self) -> usize {
        self.kept.len()
    }
}
