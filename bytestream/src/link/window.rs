//! The window that this end has given to its peer: how many bytes the peer may still send.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::wire::Violation;

/// The window of one stream's peer, in bytes.
///
/// Each byte of the window is in one of three places. The peer has room for it until the peer sends
/// it; then it is unread until the program reads it; then it is read until the peer is told so,
/// together with others.
pub(crate) struct Window {
    /// How many bytes the peer may send while nothing is unread.
    all: u32,
    /// How many bytes the peer may still send.
    room: AtomicU32,
    /// How many bytes were read of which the peer was not told yet.
    read: AtomicU32,
    /// How many bytes were received and not read.
    unread: AtomicU32,
}

impl Window {
    /// A window of `all` bytes, for all of which the peer has room.
    pub fn new(all: u32) -> Self {
        let (room, read, unread) = (AtomicU32::new(all), AtomicU32::new(0), AtomicU32::new(0));
        Self { all, room, read, unread }
    }

    /// Counts a message of `len` bytes as received and unread. Returns how many bytes were unread
    /// before, or an error if the peer was not allowed to send as many.
    pub fn receive(&self, len: usize) -> Result<u32, Violation> {
        let len = u32::try_from(len).unwrap_or(u32::MAX);
        let less = |room: u32| room.checked_sub(len);
        let taken = self.room.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less);
        taken.map_err(|room| Violation::Overrun { len, room })?;
        Ok(self.unread.fetch_add(len, Ordering::Relaxed))
    }

    /// Counts `len` bytes that were unread as read. Returns how many bytes were unread before, and
    /// whether so many were read that a message for them alone is worth its while.
    #[inline]
    pub fn read(&self, len: usize) -> (u32, bool) {
        // No more bytes than were received, which are at most `all`.
        let len = len as u32;
        let before = self.unread.fetch_sub(len, Ordering::Relaxed);
        let read = self.read.fetch_add(len, Ordering::SeqCst) + len;
        (before, read >= self.worth_a_message())
    }

    /// Returns how many bytes that were read are worth a message of their own.
    pub fn worth_a_message(&self) -> u32 {
        self.all.div_ceil(2)
    }

    /// Returns whether the peer has no room, and was not told yet of bytes that were read. If one
    /// thread takes the last of the room while another reads, at least one of them sees that.
    pub fn keeps_peer_waiting(&self) -> bool {
        self.room.load(Ordering::SeqCst) == 0 && self.read.load(Ordering::SeqCst) > 0
    }

    /// Gives back to the peer the room of all bytes that were read, if they are at least `least`.
    /// Returns how many they are, which the caller tells the peer; 0 if the peer is told nothing.
    pub fn give_back(&self, least: u32) -> u32 {
        if self.read.load(Ordering::Relaxed) < least.max(1) {
            return 0;
        }
        let read = self.read.swap(0, Ordering::Relaxed);
        self.room.fetch_add(read, Ordering::Relaxed);
        read
    }

    /// Returns how many bytes were received and not read.
    pub fn unread(&self) -> u32 {
        self.unread.load(Ordering::Relaxed)
    }

    /// Returns how many messages of at most `segment` bytes are needed for what the peer may still
    /// send, or is soon told that it may, while `unread` bytes are unread.
    pub fn messages(&self, unread: u32, segment: usize) -> usize {
        // A segment has no more bytes than this type counts, and division by it is quicker.
        self.all.saturating_sub(unread).div_ceil(segment as u32) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_may_send_the_window_and_what_it_was_told_was_read() {
        let window = Window::new(100);
        assert_eq!(window.receive(60), Ok(0));
        assert_eq!(window.receive(40), Ok(60));
        assert_eq!(window.receive(1), Err(Violation::Overrun { len: 1, room: 0 }));
        assert_eq!(window.read(30), (100, false));
        assert_eq!(window.give_back(window.worth_a_message()), 0);
        assert_eq!(window.read(20), (70, true));
        // The peer was not told yet.
        assert_eq!(window.receive(1), Err(Violation::Overrun { len: 1, room: 0 }));
        assert_eq!(window.give_back(window.worth_a_message()), 50);
        assert_eq!(window.receive(51), Err(Violation::Overrun { len: 51, room: 50 }));
        assert_eq!(window.receive(50), Ok(50));
        assert_eq!((window.unread(), window.give_back(1)), (100, 0));
        assert!(!window.keeps_peer_waiting());
        assert_eq!(window.read(1), (100, false));
        assert!(window.keeps_peer_waiting());
        assert_eq!(window.give_back(1), 1);
        assert!(!window.keeps_peer_waiting());
    }

    #[test]
    fn the_messages_that_may_come_are_those_for_all_that_is_not_unread() {
        let window = Window::new(100);
        assert_eq!([0, 1, 36, 37, 100].map(|unread| window.messages(unread, 32)), [4, 4, 2, 2, 0]);
    }
}
