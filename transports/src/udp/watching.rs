//! Which sockets of a device are watched, and for what.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use super::state::{LISTENER, Udp};

impl Udp {
    fn descriptor(&self, socket: usize) -> BorrowedFd<'_> {
        match socket {
            LISTENER => self.listener.as_fd(),
            peer => self.peers[peer - 1].socket.as_fd(),
        }
    }

    /// Makes another socket the hot one, which each turn looks at.
    pub(super) fn make_hot(&mut self, socket: usize) {
        if self.watch_hot().is_ok() {
            (self.turns.hot, self.turns.idle) = (socket, 0);
            self.turns.hot_is_watched = true;
            self.unwatch_hot();
        }
    }

    /// Watches the hot socket, too.
    pub(super) fn watch_hot(&mut self) -> io::Result<()> {
        let hot = self.turns.hot;
        if !self.turns.hot_is_watched {
            self.watch.add(self.descriptor(hot), hot as u64)?;
            self.turns.hot_is_watched = true;
        }
        Ok(())
    }

    /// Stops watching the hot socket.
    #[cold]
    pub(super) fn unwatch_hot(&mut self) {
        // It can't fail: the socket is watched.
        let _ = self.watch.remove(self.descriptor(self.turns.hot));
        self.turns.hot_is_watched = false;
    }

    /// Watches the sockets at which frames wait for room to send, and no others for room.
    pub(super) fn wait_for_room(&mut self) -> io::Result<()> {
        let stuck = self.target.peer.filter(|_| self.stuck).map(|peer| peer + 1);
        let waits = [stuck, self.waiting.as_ref().map(|_| LISTENER)];
        if self.waits_for_room != waits {
            self.stop_waiting_for_room();
            for socket in waits.into_iter().flatten() {
                self.watch.watch_room(self.descriptor(socket), socket as u64, true)?;
            }
            self.waits_for_room = waits;
        }
        Ok(())
    }

    /// Stops watching sockets for room to send: all of them, since frames may wait at other sockets
    /// than before.
    pub(super) fn stop_waiting_for_room(&mut self) {
        for socket in std::mem::take(&mut self.waits_for_room).into_iter().flatten() {
            // It can't fail: while somebody sleeps, all sockets are watched.
            let _ = self.watch.watch_room(self.descriptor(socket), socket as u64, false);
        }
    }
}
