//! Kinds of traffic, and which peers are sent to often enough to have a socket of their own.
//!
//! There are few such sockets, so strangers must not be able to decide which peers get them.
//! Packets of a connection go only to peers that have agreed to the connection, which takes answers
//! that somebody who forges addresses does not see. Datagrams go wherever a program sends them,
//! perhaps back to where one seemed to come from: so peers of datagrams get the sockets that
//! connections leave over. Messages of the connection managers answer whoever asks, and do not
//! count.

use std::collections::HashMap;
use std::net::SocketAddr;

use doorbell_core::wire::{Headers, Qpn, Service};

/// The most peers that are counted at once. With one more, counting begins anew.
const MOST: usize = 1024;
/// After how many frames a peer is sent to often.
const OFTEN: u32 = 16;

/// The kind of traffic that a packet is part of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Traffic {
    /// Packets of a connection.
    Connection,
    /// Datagrams that programs send.
    Datagrams,
    /// Messages that connection managers exchange.
    Management,
}

impl Traffic {
    /// Returns the kind of traffic that a packet with these headers is part of.
    pub fn of(headers: &Headers) -> Self {
        match headers.bth.opcode().info().service {
            Service::Rc | Service::Uc => Self::Connection,
            Service::Ud | Service::Cnp if headers.bth.destination() == Qpn::GSI => Self::Management,
            Service::Ud | Service::Cnp => Self::Datagrams,
        }
    }
}

/// Counts of frames by the addresses that they were for, to find the peers that are sent to often.
/// Frames of connections are counted apart from others, so that no number of datagrams makes their
/// counting begin anew.
#[derive(Default)]
pub struct FrequentPeers {
    connections: HashMap<SocketAddr, u32>,
    datagrams: HashMap<SocketAddr, u32>,
}

impl FrequentPeers {
    /// Counts a frame, and returns true if its peer is sent to often by now; then counting begins
    /// anew for that peer.
    pub fn count(&mut self, to: SocketAddr, traffic: Traffic) -> bool {
        let counts = match traffic {
            Traffic::Connection => &mut self.connections,
            Traffic::Datagrams => &mut self.datagrams,
            Traffic::Management => return false,
        };
        if counts.len() == MOST {
            counts.clear();
        }
        let count = counts.entry(to).or_default();
        *count += 1;
        let often = *count == OFTEN;
        if often {
            counts.remove(&to);
        }
        often
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_1024_peers_are_counted_and_datagrams_do_not_have_connections_forgotten() {
        let mut often = FrequentPeers::default();
        let peer = |number: u32| SocketAddr::new(number.to_be_bytes().into(), 4791);
        for _ in 1..OFTEN {
            assert!(!often.count(peer(0), Traffic::Connection));
        }
        for number in 0..10 * MOST as u32 {
            assert!(!often.count(peer(number), Traffic::Datagrams));
            assert!(!often.count(peer(number), Traffic::Management));
            assert!(often.datagrams.len() <= MOST && often.connections.len() <= 1);
        }
        assert!(often.count(peer(0), Traffic::Connection));
    }
}
