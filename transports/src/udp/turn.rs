//! A turn of the device: which sockets are looked at, and when.
//!
//! Each turn looks at the hot socket, the one where something came last. The others stay in an
//! epoll instance of the device's, which is looked at now and then: each turn while they have
//! something, and more and more seldom while they have nothing. The hot socket is not in the epoll
//! instance, since that costs the sender of each frame a little.

use std::io;

use doorbell_core::nic::Inbox;

use super::headers;
use super::peer::ClosedPort;
use super::state::Udp;
use crate::burst::Burst;

/// The most looks at the hot socket for each look at the others.
const LOOKS: u32 = 16;
/// After so many looks at the hot socket in vain, another socket becomes the hot one.
const COLD: u32 = 8;

impl Udp {
    /// Takes the frames that have come, and returns how many they were.
    #[inline]
    pub(super) fn take_turn(&mut self, inbox: &mut impl Inbox) -> usize {
        let (mut burst, hot) = (self.burst, self.turns.hot);
        let taken = burst.take(|| self.take(hot, inbox));
        self.burst = burst;
        self.turns.looks += 1 + taken as u32;
        if taken == 0 {
            self.turns.idle += 1;
        } else {
            self.turns.idle = 0;
            if self.turns.hot_is_watched && !self.turns.asleep {
                self.unwatch_hot();
            }
        }
        if self.turns.looks < self.turns.most { taken } else { taken + self.look_around(inbox) }
    }

    /// Looks at all sockets but the hot one, and at what else there is to do. Returns how many
    /// frames and messages were found.
    #[inline(never)]
    fn look_around(&mut self, inbox: &mut impl Inbox) -> usize {
        self.turns.looks = 0;
        let before = self.statistics.frames_received;
        if let Some((to, traffic)) = self.wanted.take() {
            self.connect(to, traffic, inbox);
        }
        // Connecting empties sockets: a driver that would sleep otherwise must hear of those
        // frames.
        let mut found = (self.statistics.frames_received - before) as usize;
        if self.unsettled {
            self.settle();
        }
        let (sockets, ready) = self.watch.ready();
        for &socket in &sockets[..ready] {
            let socket = socket as usize;
            let here = self.drain(socket, Burst::MOST, inbox);
            found += here;
            if here == 0 {
                self.read_reports(socket);
            }
            if here > 0 && self.turns.idle >= COLD && !self.turns.asleep {
                self.make_hot(socket);
            }
        }
        for ClosedPort { at, quoted } in self.closed.take() {
            inbox.port_closed(headers::host(at), &quoted);
            found += 1;
        }
        self.turns.most = if found > 0 { 1 } else { (2 * self.turns.most).min(LOOKS) };
        found
    }

    /// Watches every socket before a sleep, and has the next turn look at all of them.
    pub(super) fn watch_all(&mut self) -> io::Result<()> {
        self.watch_hot()?;
        (self.turns.asleep, self.turns.looks) = (true, self.turns.most);
        self.wait_for_room()
    }
}
