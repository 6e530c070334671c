//! What differs among raw devices: how they know their peers.

use std::os::fd::BorrowedFd;

use doorbell_core::encap::Path;
use doorbell_core::nic::Way;
use doorbell_core::time::Time;

use crate::address::{Address, ReachError};
use crate::clock::Clock;
use crate::device::Trouble;
use crate::sys::packet::PacketSocket;

/// How a raw device knows its peers.
pub trait Peers: Send + 'static {
    /// True if packets to peers may go in runs. If they don't, each leaves when it is pushed, and
    /// none may be of IPv4, whose packets need identifications.
    const RUNS: bool;
    /// The most bytes of memory that knowing peers takes.
    const MEMORY: usize = 0;

    /// Finds the way to a peer, as [`Device::reach`](crate::Device::reach) does. Questions to
    /// others are sent through `socket`.
    fn reach(
        &mut self,
        peer: &Address,
        clock: &Clock,
        socket: &PacketSocket,
    ) -> Result<Option<Way>, ReachError>;

    /// Handles a frame that is about peers, and answers it. Returns false for a frame that is the
    /// NIC's.
    #[inline]
    fn take(&mut self, _frame: &[u8], _socket: &PacketSocket) -> bool {
        false
    }

    /// Handles frames that came by another socket, and asks again where nobody answered. Returns
    /// how many frames came.
    #[inline]
    fn turn(&mut self, _clock: &Clock, _socket: &PacketSocket) -> usize {
        0
    }

    /// Returns the other socket, by which frames about peers come, if there is one.
    fn socket(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Returns the time when something is to be asked again.
    fn next(&self) -> Option<Time> {
        None
    }

    /// Changes the destination of a frame whose peer has moved to another Ethernet address.
    #[inline]
    fn redirect(&self, _path: &Path, _frame: &mut [u8]) {}

    /// Returns what is wrong among the peers, if something is.
    fn trouble(&mut self) -> Option<Trouble> {
        None
    }
}
