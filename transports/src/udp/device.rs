//! The device as a NIC and its driver see it.

use std::io;
use std::iter;
use std::os::fd::{AsFd, BorrowedFd};

use doorbell_core::encap::{Full, Path, PathId};
use doorbell_core::nic::{Inbox, Outbox, Way};
use doorbell_core::payload::Payload;
use doorbell_core::time::Time;
use doorbell_core::wire::{Headers, PathMtu, UdpPort};

use super::error::{NAME, no_way};
use super::headers;
use super::state::{Udp, scoped};
use crate::address::{Address, ReachError};
use crate::device::{Capabilities, Device, Statistics, Trouble};

impl Outbox for Udp {
    #[inline]
    fn push(&mut self, path: &Path, headers: Headers, payload: impl Payload) -> Result<u64, Full> {
        self.encode(path, headers, payload).map(|()| 0)
    }

    #[inline]
    fn flush(&mut self) {
        self.send();
        if self.waiting.is_some() {
            self.send_waiting();
        }
    }

    #[inline]
    fn time(&self) -> Option<Time> {
        Some(self.clock.now())
    }

    fn delivered(&mut self, _: PathId) -> u64 {
        0
    }
}

impl Device for Udp {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    #[inline]
    fn receive(&mut self, inbox: &mut impl Inbox) -> usize {
        self.take_turn(inbox)
    }

    fn now(&self) -> Time {
        self.clock.now()
    }

    fn address(&self) -> &Address {
        &self.address
    }

    fn reach(&mut self, peer: &Address) -> Result<Option<Way>, ReachError> {
        let &Address::Udp(to) = peer else {
            let (address, takes) = (peer.clone(), "udp:IP:PORT");
            return Err(ReachError::Kind { address, device: NAME, takes });
        };
        let to = scoped(to, self.own);
        if let Some(why) = headers::not_a_peers(to) {
            return Err(ReachError::NoPeers { address: peer.clone(), why });
        }
        let Some(outer) = headers::between(self.own, to) else {
            let takes = if self.own.is_ipv4() { "udp:IPv4:PORT" } else { "udp:[IPv6]:PORT" };
            return Err(ReachError::Kind { address: peer.clone(), device: NAME, takes });
        };
        let (own, roce) = (self.own.port(), UdpPort::ROCE_V2.0);
        if (own == roce) != (to.port() == roce) {
            return Err(ReachError::Port { address: peer.clone(), own });
        }
        self.scout.connect(to).map_err(|why| no_way(peer, self.own, to, why))?;
        let beside = PathMtu::LEAST_INTERFACE - PathMtu::Mtu256.bytes();
        let least = self.capabilities.mtu.bytes() + beside;
        match self.scout.narrower_than(least) {
            Some(mtu) => {
                Err(ReachError::Narrow { address: peer.clone(), mtu, least: least as u32 })
            }
            None => {
                self.senders.reached(to);
                Ok(Some(Way::Network(outer)))
            }
        }
    }

    fn readiness(&self) -> BorrowedFd<'_> {
        self.timer.readiness()
    }

    fn arm(&mut self, until: Option<Time>) -> io::Result<()> {
        self.statistics.sleeps += 1;
        self.watch_all()?;
        let after = until.map(|until| until.since(self.now()));
        self.timer.arm(iter::once(&self.watch), after)
    }

    fn disarm(&mut self) {
        self.timer.disarm(iter::once(&self.watch));
        self.stop_waiting_for_room();
        self.turns.asleep = false;
    }

    fn trouble(&mut self) -> Option<Trouble> {
        self.interface.trouble(self.listener.as_fd())
    }

    fn statistics(&mut self) -> Statistics {
        let peers = self.peers.iter().map(|peer| peer.socket.overrun()).sum::<u64>();
        self.statistics.overrun = self.listener.overrun() + peers;
        self.statistics
    }
}
