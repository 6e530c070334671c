//! Which peers are sent to often enough to have a socket of their own.
//!
//! There are few such sockets, so what makes a peer worth one must not be for strangers to decide.
//! Packets of a connection go only to peers that have agreed to it, which takes answers that who
//! forges addresses does not see. Datagrams go wherever a program sends them, perhaps back to where
//! one seemed to come from: peers of datagrams have sockets that are left over. Management is
//! answered to whoever asks, and counts for nothing.

use std::collections::HashMap;
use std::net::SocketAddr;

use doorbell_core::wire::{Headers, Qpn, Service};

/// How many are counted at once: with one more, counting begins anew.
const MOST: usize = 1024;
/// How many frames are often.
const OFTEN: u32 = 16;

/// What a packet is part of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Traffic {
    /// A connection.
    Connection,
    /// Datagrams of programs.
    Datagrams,
    /// The exchange of the connection managers.
    Management,
}

impl Traffic {
    /// What a packet with these headers is part of.
    pub fn of(headers: &Headers) -> Self {
        match headers.bth.opcode().info().service {
            Service::Rc | Service::Uc => Self::Connection,
            Service::Ud | Service::Cnp if headers.bth.destination() == Qpn::GSI => Self::Management,
            Service::Ud | Service::Cnp => Self::Datagrams,
        }
    }
}

/// Frames counted by whom they were for: those of connections apart, so that no number of datagrams
/// has their counting begin anew.
#[derive(Default)]
pub struct Often {
    connections: HashMap<SocketAddr, u32>,
    datagrams: HashMap<SocketAddr, u32>,
}

impl Often {
    /// Counts a frame, and says whether it is the last of many.
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
        let mut often = Often::default();
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
