//! What the messages of each peer may take at an endpoint.

/// The limits that an endpoint sets to each of its peers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// How many bytes of one message may wait for its handler.
    pub window: usize,
    /// How many messages may be open at a time.
    pub messages: usize,
}

impl Limits {
    /// The smallest window that an endpoint may have: two packets of the shortest payload that
    /// endpoints may have.
    pub const LEAST_WINDOW: usize = 2048;
    /// The largest window that an endpoint may have.
    pub const MOST_WINDOW: usize = 1 << 30;
    /// The most messages that may be open at a time, since a word has a bit for each.
    pub const MOST_MESSAGES: usize = 64;

    /// Returns the limits, with each at its least or at its most if it was beyond.
    pub fn within_bounds(self) -> Self {
        Self {
            window: self.window.clamp(Self::LEAST_WINDOW, Self::MOST_WINDOW),
            messages: self.messages.clamp(1, Self::MOST_MESSAGES),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { window: 512 << 10, messages: 32 }
    }
}
