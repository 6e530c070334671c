//! How peers come to have sockets of their own.

use std::net::SocketAddr;

use doorbell_core::nic::Inbox;

use super::peer::{Learnt, Peer};
use super::sender::Sender;
use super::state::{LISTENER, MOST_PEERS, Udp};
use super::traffic::Traffic;

/// The most datagrams that are taken from a socket before its peer changes.
const LEFT: usize = 1024;
/// How many frames must have gone to others since the last one to a peer, before another peer of
/// its kind may take its socket. With more peers than sockets, each would take one from another
/// otherwise.
const FORGOTTEN: u64 = 4096;

impl Udp {
    /// Gives a peer a socket of its own for this traffic, if one can be had.
    #[cold]
    pub(super) fn connect(&mut self, to: SocketAddr, traffic: Traffic, inbox: &mut impl Inbox) {
        // The peer may have a socket already by which nothing is sent, for the moment or for good.
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
            self.peers[place].reassign(to, sender.clone(), self.run_most, used);
        }
        self.unsettled = true;
    }

    /// Puts a socket beside the listener and connects it to a peer. Returns its place among those
    /// of the peers, or `None` if that failed.
    ///
    /// Frames that come meanwhile are taken in the order in which they came. Until a socket is
    /// connected, the kernel may give it what anybody sends. Over IPv4 the kernel then gives it
    /// everything: so what the listener has came earlier, or goes on there afterwards. Over IPv6
    /// the kernel prefers the listener up to the end.
    fn join(&mut self, to: SocketAddr, anywhere: bool, inbox: &mut impl Inbox) -> Option<usize> {
        if self.peers.len() == MOST_PEERS {
            return None;
        }
        let (socket, sender) = (self.listener.another(self.own).ok()?, Sender::new(to, self.own)?);
        socket.bind_beside(&self.listener, self.own, anywhere).ok()?;
        if self.own.is_ipv4() {
            self.drain(LISTENER, LEFT, inbox);
        }
        let connected = socket.connect(to).and_then(|()| socket.local());
        if self.own.is_ipv6() {
            self.drain(LISTENER, LEFT, inbox);
        }
        for _ in 0..LEFT {
            let Ok(len) = self.take_from_anybody(Some(&socket), inbox) else { break };
            self.count(len);
        }
        let place = self.peers.len();
        if connected.ok()? != self.own {
            return None;
        }
        self.watch.add(&socket, place as u64 + 1).ok()?;
        self.peers.push(Peer::new(to, socket, sender, self.run_most));
        Some(place)
    }

    /// Returns the place of a peer whose socket another peer may have for such traffic. A peer that
    /// is only sent datagrams gives way to a connection at once. Otherwise the peer of the same
    /// kind to which nothing was sent for longest gives way, if that is [long](FORGOTTEN).
    fn dispensable(&self, traffic: Traffic) -> Option<usize> {
        // The socket at which a frame waits for room stays: the frame has its identification.
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

    /// Takes the socket of a [dispensable](Self::dispensable) peer, connects it to another peer,
    /// and returns its place.
    fn vacate(
        &mut self,
        to: SocketAddr,
        traffic: Traffic,
        inbox: &mut impl Inbox,
    ) -> Option<usize> {
        let place = self.dispensable(traffic)?;
        self.drain(place + 1, LEFT, inbox);
        let socket = &self.peers[place].socket;
        socket.put_together(false).ok()?;
        socket.stamp(false).and_then(|()| socket.connect(to)).ok()?;
        // The listener may have frames of the new peer, which came earlier.
        self.drain(LISTENER, LEFT, inbox);
        Some(place)
    }

    /// Has peers learn which identification the next frame to them gets, if they need to.
    #[cold]
    pub(super) fn settle(&mut self) {
        self.unsettled = false;
        for peer in &mut self.peers {
            match peer.learn(&mut self.closed) {
                Learnt::Enough => {}
                Learnt::Later => self.unsettled = true,
                // The system will not show identifications to other peers either.
                Learnt::Never => self.connects = false,
            }
        }
        self.aim(self.target.to);
    }
}
