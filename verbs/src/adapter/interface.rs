//! The interface of a NIC with its device, which the progress engine drives.

use std::os::fd::OwnedFd;
use std::time::Duration;

use doorbell_core::encap::PathId;
use doorbell_core::nic::{Copied, SendQueue, Way};
use doorbell_core::time::Time;
use doorbell_transports::{
    Address, Capabilities, GrantError, PeerProcess, ReachError, SharedMemory, Statistics, Trouble,
};

use crate::control::Control;
use crate::error::OpenError;

/// The outcome of a turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Turned {
    /// Whether anything arrived, or, for [`settle`](Adapter::settle), was sent.
    pub found: bool,
    /// Whether a task was woken, which may need this thread.
    pub woke: bool,
    /// Whether anything arrived while packets were being sent.
    pub heard: bool,
}

/// A software NIC over a device of some type. Dynamic dispatch costs one indirect call in each
/// turn, and spares all types above a type parameter.
pub(crate) trait Adapter: Send {
    fn control(&mut self) -> &mut Control;

    /// Receives a burst of packets. If nothing arrived, does work that nobody waits for.
    /// Acknowledgements that the burst calls for are left to [`settle`](Self::settle), so that a
    /// program's answer can go first.
    fn turn(&mut self) -> Turned;

    /// Sends posted requests, and the acknowledgements that earlier bursts called for.
    fn settle(&mut self) -> Turned;

    /// Reads the clock if the device is armed, since nobody has read it for long then. Time-outs of
    /// new requests start from the right time by that.
    fn refresh_clock(&mut self);

    /// Sends the request that was posted last to a queue, before anything else.
    fn posted(&mut self, queue: &SendQueue);

    /// Sends a message without keeping a copy, if the message can be sent now and can't be lost.
    /// Returns whether it was sent.
    fn send_copied(&mut self, queue: &mut SendQueue, message: &Copied<'_>) -> bool;

    /// Completes the first `count` requests that were posted to a queue since it was connected: a
    /// message of the peer's program proves that they have arrived.
    fn acknowledged_by_program(&mut self, queue: &SendQueue, count: u32);

    /// Returns whether there is work for [`settle`](Self::settle) beyond what the last turn has
    /// caused.
    fn has_work(&self) -> bool;

    /// Returns the time of the last look at the clock.
    fn now(&self) -> Time;

    /// Returns whether traffic is so sparse that a waiting task sleeps as soon as nothing comes.
    fn is_sparse(&self) -> bool;

    /// Notes that a task is about to sleep which spins for at most `spin`. Where traffic is sparse,
    /// delayed acknowledgements are sent now, so that no timer wakes the process for them.
    fn about_to_sleep(&mut self, spin: Duration);

    /// Returns whether the device is armed.
    fn is_armed(&self) -> bool;

    /// Arms the device, or arms it again: it becomes readable when a frame arrives or a time-out
    /// passes.
    fn arm(&mut self) -> std::io::Result<()>;

    /// Disarms the device, and returns whether it was armed.
    fn disarm(&mut self) -> bool;

    /// Arms the device again if a request that was posted since has an earlier time-out.
    fn rearm_earlier(&mut self);

    /// Returns the descriptors that become readable when the NIC needs a turn.
    fn watched(&self) -> std::io::Result<Vec<OwnedFd>>;

    fn address(&self) -> &Address;
    fn capabilities(&self) -> &Capabilities;
    fn reach(&mut self, peer: &Address) -> Result<Option<Way>, ReachError>;
    fn statistics(&mut self) -> Statistics;
    fn trouble(&mut self) -> Option<Trouble>;
    fn grant(&mut self, to: PathId, tag: u128, memory: &SharedMemory) -> Result<(), GrantError>;

    /// Takes in what peers have granted so far, if a task waits for a grant. Of very many grants,
    /// some are left for later turns.
    fn look_for_grants(&mut self);

    /// Returns the process at the other end of a link of the device, if the kernel tells.
    fn peer_process(&mut self, link: PathId) -> Option<PeerProcess>;

    /// Moves the NIC to a closed device. When the old adapter is dropped, its device is closed.
    fn close(&mut self) -> Result<Box<dyn Adapter>, OpenError>;
}
