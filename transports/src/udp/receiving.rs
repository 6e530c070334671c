//! How frames arrive, at whichever socket, and how peers come to have one.
//!
//! One socket is looked at in each turn, the one where something came last. The others stay in an
//! epoll of the device's, which is looked at now and then: each turn while they have something, and
//! more and more seldom while they don't. A socket is taken out of it when it is the one that is
//! looked at, for to be in it costs the sender of each frame a little.

use std::io;
use std::net::SocketAddr;
use std::os::fd::RawFd;

use doorbell_core::nic::Inbox;

use super::often::Traffic;
use super::peer::{Closed, Learnt, NOTES, Peer, hint_of_narrow_path};
use super::sender::Sender;
use super::{LISTENER, MOST_PEERS, Udp, headers};
use crate::burst::Burst;
use crate::sys::udp::{Note, UdpSocket};

/// The most looks at one socket for each look at the others.
const LOOKS: u32 = 16;
/// After so many looks in vain, another socket is looked at.
const COLD: u32 = 8;
/// How many datagrams are taken at most from a socket at once for all.
const LEFT: usize = 1024;
/// A socket is taken from a peer for another of its kind only if none of so many frames was to it:
/// or, with more peers than sockets, each would take it from another.
const FORGOTTEN: u64 = 4096;

impl Udp {
    /// Takes what has come.
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

    /// Takes a frame from a socket, if there is one.
    #[inline]
    fn take(&mut self, socket: usize, inbox: &mut impl Inbox) -> bool {
        let taken = match socket {
            LISTENER => self.take_from_anybody(None, inbox),
            peer => self.peers[peer - 1].receive(&mut self.opener, &mut self.buffer, inbox),
        };
        match taken {
            Ok(len) => {
                self.count(len);
                true
            }
            Err(why) => {
                if why.kind() != io::ErrorKind::WouldBlock {
                    self.statistics.unreachable += 1;
                    self.heed(socket);
                }
                false
            }
        }
    }

    #[inline]
    fn count(&mut self, len: usize) {
        // An empty datagram is no frame: it showed its sender an identification.
        if len > 0 {
            self.statistics.frames_received += 1;
            self.statistics.bytes_received += (self.headers_len + len) as u64;
        }
    }

    /// Takes a frame from a socket that is given what anybody sends; the listener, if none is
    /// named.
    fn take_from_anybody(
        &mut self,
        socket: Option<&UdpSocket>,
        inbox: &mut impl Inbox,
    ) -> io::Result<usize> {
        let received = socket.unwrap_or(&self.listener).receive(&mut self.buffer, true)?;
        match received.from.and_then(|from| self.senders.from(from)) {
            Some(sender) => {
                let datagrams = &self.buffer[..received.len];
                sender.deliver(&mut self.opener, datagrams, received.segment, inbox);
            }
            None => self.statistics.strangers += 1,
        }
        Ok(received.len)
    }

    /// Takes what has come elsewhere.
    #[inline(never)]
    fn look_around(&mut self, inbox: &mut impl Inbox) -> usize {
        self.turns.looks = 0;
        let before = self.statistics.frames_received;
        if let Some((to, traffic)) = self.wanted.take() {
            self.connect(to, traffic, inbox);
        }
        // Sockets are emptied on the way: who sleeps when nothing is found must hear of that.
        let mut found = (self.statistics.frames_received - before) as usize;
        if self.unsettled {
            self.settle();
        }
        let (sockets, ready) = self.watch.ready();
        for &socket in &sockets[..ready] {
            let socket = socket as usize;
            let here = self.empty(socket, Burst::MOST, inbox);
            found += here;
            if here == 0 {
                self.heed(socket);
            }
            if here > 0 && self.turns.idle >= COLD && !self.turns.asleep {
                self.heat(socket);
            }
        }
        for Closed { at, quoted } in self.closed.take() {
            inbox.port_closed(headers::host(at), &quoted);
            found += 1;
        }
        self.turns.most = if found > 0 { 1 } else { (2 * self.turns.most).min(LOOKS) };
        found
    }

    /// Takes what has come at a socket, but at most so many.
    fn empty(&mut self, socket: usize, most: usize, inbox: &mut impl Inbox) -> usize {
        (0..most).take_while(|_| self.take(socket, inbox)).count()
    }

    /// Reads what the kernel has noted of a socket, which is ready for ever otherwise.
    #[cold]
    pub(super) fn heed(&mut self, socket: usize) {
        match socket {
            LISTENER => {
                for note in (0..NOTES).map_while(|_| self.listener.note()) {
                    match note {
                        Note::TooLong { mtu, here: false } => {
                            hint_of_narrow_path(&mut self.narrow, mtu);
                        }
                        Note::Closed { at, quoted } => {
                            self.closed.add(Closed { at, quoted });
                        }
                        _ => {}
                    }
                }
            }
            peer => self.peers[peer - 1].heed(&mut self.closed),
        }
    }

    fn descriptor(&self, socket: usize) -> RawFd {
        match socket {
            LISTENER => self.listener.as_raw_fd(),
            peer => self.peers[peer - 1].socket.as_raw_fd(),
        }
    }

    /// Has another socket be the one that is looked at.
    fn heat(&mut self, socket: usize) {
        if self.watch_hot().is_ok() {
            (self.turns.hot, self.turns.idle) = (socket, 0);
            self.turns.hot_is_watched = true;
            self.unwatch_hot();
        }
    }

    fn watch_hot(&mut self) -> io::Result<()> {
        let hot = self.turns.hot;
        if !self.turns.hot_is_watched {
            self.watch.add(self.descriptor(hot), hot as u64)?;
            self.turns.hot_is_watched = true;
        }
        Ok(())
    }

    #[cold]
    fn unwatch_hot(&mut self) {
        // What is watched can be watched no longer.
        let _ = self.watch.remove(self.descriptor(self.turns.hot));
        self.turns.hot_is_watched = false;
    }

    /// Before sleeping: every socket is watched, and the next turn looks at all of them.
    pub(super) fn watch_all(&mut self) -> io::Result<()> {
        self.watch_hot()?;
        (self.turns.asleep, self.turns.looks) = (true, self.turns.most);
        self.wait_for_room()
    }

    /// Has room for the frames that wait wake whoever sleeps, and room elsewhere nobody.
    pub(super) fn wait_for_room(&mut self) -> io::Result<()> {
        let stuck = self.target.peer.filter(|_| self.stuck).map(|peer| peer + 1);
        let waits = [stuck, self.waiting.as_ref().map(|_| LISTENER)];
        if self.waits_for_room != waits {
            self.wait_for_room_no_more();
            for socket in waits.into_iter().flatten() {
                self.watch.room(self.descriptor(socket), socket as u64, true)?;
            }
            self.waits_for_room = waits;
        }
        Ok(())
    }

    /// After sleeping, room wakes nobody: wherever it was waited for, since whoever is armed may
    /// send elsewhere.
    pub(super) fn wait_for_room_no_more(&mut self) {
        for socket in std::mem::take(&mut self.waits_for_room).into_iter().flatten() {
            // It is watched: while somebody sleeps, all are.
            let _ = self.watch.room(self.descriptor(socket), socket as u64, false);
        }
    }

    /// Gives a peer a socket of its own for this traffic, if there is one to be had.
    #[cold]
    fn connect(&mut self, to: SocketAddr, traffic: Traffic, inbox: &mut impl Inbox) {
        // It may have one by which it is not sent to, for the moment or for good.
        let has_one = self.peers.iter().any(|peer| peer.address == to);
        let full = self.peers.len() == MOST_PEERS && self.dispensable(traffic).is_none();
        if has_one || full || self.scout.connect(to).is_err() {
            return;
        }
        let mut place = None;
        if self.anywhere {
            place = self.join(to, true, inbox);
            self.anywhere = place.is_some();
        }
        let place = place.or_else(|| self.join(to, false, inbox));
        let Some(place) = place.or_else(|| self.vacate(to, traffic, inbox)) else { return };
        self.peers[place].connected = traffic == Traffic::Connection;
        if let Some(sender) = self.senders.from(to) {
            let used = self.statistics.frames_sent;
            self.peers[place].meet(to, sender.clone(), self.run_most, used);
        }
        self.unsettled = true;
    }

    /// Puts a socket beside the listener, connected; its place among the peers', if there is one.
    ///
    /// What comes meanwhile is taken in the order in which it came. Until a socket is connected it
    /// may be given what anybody sends, and then, over IPv4, it is given all of it: so what the
    /// listener has came before, or goes on there afterwards. Over IPv6 the listener is preferred
    /// up to the end.
    fn join(&mut self, to: SocketAddr, anywhere: bool, inbox: &mut impl Inbox) -> Option<usize> {
        if self.peers.len() == MOST_PEERS {
            return None;
        }
        let (socket, sender) = (self.listener.another(self.own).ok()?, Sender::new(to, self.own)?);
        socket.bind_beside(&self.listener, self.own, anywhere).ok()?;
        if self.own.is_ipv4() {
            self.empty(LISTENER, LEFT, inbox);
        }
        let connected = socket.connect(to).and_then(|()| socket.local());
        if self.own.is_ipv6() {
            self.empty(LISTENER, LEFT, inbox);
        }
        for _ in 0..LEFT {
            let Ok(len) = self.take_from_anybody(Some(&socket), inbox) else { break };
            self.count(len);
        }
        let place = self.peers.len();
        if connected.ok()? != self.own {
            return None;
        }
        self.watch.add(socket.as_raw_fd(), place as u64 + 1).ok()?;
        self.peers.push(Peer::new(to, socket, sender, self.run_most));
        Some(place)
    }

    /// The place of a peer whose socket another may have for such traffic. A peer that is only sent
    /// datagrams gives way to a connection at once. Otherwise it is the one of its kind that has
    /// not been sent to for longest, if that is long.
    fn dispensable(&self, traffic: Traffic) -> Option<usize> {
        // A frame that waits for room is numbered for the socket by which it is to leave.
        let waits = self.target.peer.filter(|_| self.stuck);
        let oldest = |connected: bool| {
            let peers = self.peers.iter().enumerate().filter(|(place, _)| Some(*place) != waits);
            peers.filter(|(_, peer)| peer.connected == connected).min_by_key(|(_, peer)| peer.used)
        };
        let forgotten = |(_, peer): &(usize, &Peer)| {
            self.statistics.frames_sent.saturating_sub(peer.used) >= FORGOTTEN
        };
        let found = match traffic {
            Traffic::Connection => oldest(false).or_else(|| oldest(true).filter(forgotten)),
            Traffic::Datagrams => oldest(false).filter(forgotten),
            Traffic::Management => None,
        };
        found.map(|(place, _)| place)
    }

    /// Takes the socket of such a peer, and connects it; its place.
    fn vacate(
        &mut self,
        to: SocketAddr,
        traffic: Traffic,
        inbox: &mut impl Inbox,
    ) -> Option<usize> {
        let place = self.dispensable(traffic)?;
        self.empty(place + 1, LEFT, inbox);
        let socket = &self.peers[place].socket;
        socket.put_together(false).and_then(|()| socket.connect(to)).ok()?;
        // What the listener has of the new peer came before.
        self.empty(LISTENER, LEFT, inbox);
        Some(place)
    }

    /// Has peers that can't be sent to yet learn what they need for that.
    #[cold]
    fn settle(&mut self) {
        self.unsettled = false;
        for peer in &mut self.peers {
            match peer.learn(&mut self.closed) {
                Learnt::Enough => {}
                Learnt::Later => self.unsettled = true,
                // Nor will it to others.
                Learnt::Never => self.connects = false,
            }
        }
        self.aim(self.target.to);
    }
}
