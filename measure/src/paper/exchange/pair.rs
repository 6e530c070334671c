//! Where the two processes of an exchange run.

use std::net::IpAddr;

use super::args::{Args, Protocol};
use crate::perf::ends::peer::Peer;
use crate::perf::ends::{self, ADDRESSES};
use crate::processors;

/// The place of a process of an exchange.
pub struct Where {
    /// The device of the process, with what it is opened on.
    pub device: String,
    /// The address of the process's sockets.
    pub here: IpAddr,
    /// Whether the process is the one that measures.
    pub leads: bool,
    /// The processor for a thread that works for the program. With two processors, that is the
    /// other program's.
    pub thread: usize,
    /// Whether the processor for the thread has nothing else to do.
    pub is_alone: bool,
}

impl Where {
    fn new(args: &Args, end: usize) -> anyhow::Result<Self> {
        let spare = ends::spare(end);
        let thread = spare.map_or_else(|| processors::allowed(1), Ok)?;
        let device = ends::device(&args.device, end);
        let (here, leads) = (ADDRESSES[end], end == 0);
        Ok(Self { device, here, leads, thread, is_alone: spare.is_some() })
    }
}

/// Runs the first process, which starts the second.
pub fn first(
    args: &Args,
    plays: impl FnOnce(&mut Peer, &Where) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let place = Where::new(args, 0)?;
    ends::first(cable(args), |peer| plays(peer, &place))
}

/// Runs the second process.
pub fn second(
    args: &Args,
    plays: impl FnOnce(&mut Peer, &Where) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let place = Where::new(args, 1)?;
    ends::second(cable(args), |peer| plays(peer, &place))
}

/// Returns the MTU of the network between the two processes, or nothing if they need none.
fn cable(args: &Args) -> Option<u32> {
    (args.protocol == Protocol::Tcp || args.device != "shm").then_some(args.mtu)
}
