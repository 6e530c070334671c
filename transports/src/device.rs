//! The trait of devices, and what a device tells of itself.

use std::io;
use std::os::fd::BorrowedFd;

use doorbell_core::encap::PathId;
use doorbell_core::nic::{Inbox, Outbox, Way};
use doorbell_core::time::Time;
use doorbell_core::wire::PathMtu;
use thiserror::Error;

use crate::address::{Address, ReachError};
use crate::grant::{Grant, GrantError, SharedMemory};
use crate::sys::unix::PeerProcess;

/// A device, by which packets leave a NIC and come to it.
///
/// Packets are sent by [`Outbox`]: they are encoded in the device's own memory, share a frame where
/// the device knows how, and leave with [`flush`](Outbox::flush). They are received by
/// [`receive`](Self::receive), which lends each packet to an [`Inbox`] as headers, copied once, and
/// a payload that can only be copied from: the device alone knows who else may write that memory.
///
/// A driver of a NIC over a device takes turns, each of which is
///
/// ```
/// # use doorbell_core::nic::Nic;
/// # use doorbell_transports::Device;
/// fn turn(nic: &mut Nic, device: &mut impl Device) -> bool {
///     let lossless = device.capabilities().lossless;
///     let sent = nic.counters().sent;
///     nic.advance(device.now());
///     let found = device.receive(nic) > 0;
///     if lossless {
///         // This opens windows. What may be sent now need not wait until a packet comes again.
///         nic.collect(device);
///     }
///     nic.transmit(device);
///     if lossless {
///         device.settle(nic.unsent_responses());
///     }
///     found || nic.counters().sent != sent
/// }
/// ```
///
/// and returns whether anything came or went. A driver that wants to sleep [arms](Self::arm) the
/// device, takes turns until nothing comes or goes, waits until [`readiness`](Self::readiness) is
/// readable, and [disarms](Self::disarm) the device. It is not enough that nothing comes: the NIC
/// sends a long answer in parts, one a turn. And a NIC that has work is no reason to stay awake: it
/// may wait for room at a peer that sleeps.
pub trait Device: Outbox + Send + 'static {
    /// Returns what the device can do, which does not change while it is open.
    fn capabilities(&self) -> &Capabilities;

    /// Hands the packets that have arrived to `inbox`: those of one frame first, and of more frames
    /// at a time while they keep coming. Returns how many frames there were. A call that finds none
    /// is when a device does its other work.
    ///
    /// Each look for a frame costs a cache line's way or a system call, which the frame before has
    /// to wait for. [`Burst`](crate::Burst) decides how many looks a call makes.
    fn receive(&mut self, inbox: &mut impl Inbox) -> usize;

    /// Tells the device that everything received so far is answered for, except on links where the
    /// NIC has [responses to send](doorbell_core::nic::Nic::unsent_responses). A lossless device
    /// tells its peers that their packets were taken. Other devices do nothing.
    #[inline]
    fn settle(&mut self, owes: impl Fn(PathId) -> bool) {
        let _ = owes;
    }

    /// Returns the time by the device's clock. The NIC and its driver use no other clock, so that
    /// they run in simulated time, too.
    fn now(&self) -> Time;

    /// Returns the address at which peers reach this device.
    fn address(&self) -> &Address;

    /// Finds the way to a peer. `None` means that the way is being looked for: ask again when
    /// something was received, or the readiness was readable.
    ///
    /// # Errors
    /// When the address is not of this device's kind, or no peer answers there.
    fn reach(&mut self, peer: &Address) -> Result<Option<Way>, ReachError>;

    /// Returns a descriptor that becomes readable, while the device is [armed](Self::arm), when
    /// there is something to receive or to do. The descriptor stays the same, and nothing else ever
    /// makes it readable: so it may stay registered with a reactor.
    fn readiness(&self) -> BorrowedFd<'_>;

    /// Prepares the device for a sleep of its driver. From here on, a frame makes the
    /// [readiness](Self::readiness) readable, and so does the time `until`, when the NIC has
    /// something to do. Frames that came before may not: look again before the sleep.
    ///
    /// # Errors
    /// When the system refuses; then nothing would wake the driver.
    fn arm(&mut self, until: Option<Time>) -> io::Result<()>;

    /// Tells the device that its driver is awake, so that frames no longer cost their sender time
    /// for waking it.
    fn disarm(&mut self);

    /// Returns what keeps the device from working at this moment, if something does: an interface
    /// that is down, or gone. The device goes on trying. This asks the system each time, so that
    /// nothing has to be remembered, and taken back, where packets are sent.
    fn trouble(&mut self) -> Option<Trouble> {
        None
    }

    /// Returns what the device has counted.
    fn statistics(&mut self) -> Statistics;

    /// Lets the peer at the end of a link map memory. The peer is told `tag`, a number of the
    /// caller's choosing. A grant can't be taken back.
    ///
    /// # Errors
    /// When peers of this device can't [map](Capabilities::mapping) memory, the link does not exist
    /// any more, or the peer has many grants that it has not taken yet.
    fn grant(&mut self, to: PathId, tag: u128, memory: &SharedMemory) -> Result<(), GrantError> {
        let (_, _, _) = (to, tag, memory);
        Err(GrantError::Unsupported { device: self.capabilities().name })
    }

    /// Returns the process at the other end of a link, as the kernel tells. `None` if the device
    /// has no such link, or the kernel does not tell.
    fn peer_process(&mut self, link: PathId) -> Option<PeerProcess> {
        let _ = link;
        None
    }

    /// Takes the next grant of a peer, mapped into this process. A grant that comes wakes a driver
    /// that sleeps, as frames do.
    fn granted(&mut self) -> Option<Grant> {
        None
    }
}

/// The capabilities of a device.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Capabilities {
    /// The name of the device, by which a program picks it.
    pub name: &'static str,
    /// The largest path MTU whose packets fit, with all headers around them.
    pub mtu: PathMtu,
    /// The largest path MTU whose packets fit when they are encrypted, which makes them longer.
    pub encrypted_mtu: PathMtu,
    /// The most packets that share a frame; 1 if they can't share one.
    pub run: u32,
    /// True if the interface itself cuts such frames into packets, as far as it tells. If it does
    /// not, the system does.
    pub segmentation: bool,
    /// True if the interface computes the checksums of outer headers.
    pub checksum: bool,
    /// True if nothing is lost, repeated or reordered, and the device tells how far its peers have
    /// come.
    pub lossless: bool,
    /// True if peers can map memory that they are granted.
    pub mapping: bool,
    /// The most bytes of memory that the device takes, with as many peers as it allows.
    pub memory: usize,
    /// True if the device is part of a simulated network, where time passes only as the program
    /// lets it pass. No thread of Doorbell's own runs a NIC over such a device.
    pub simulated: bool,
    /// True if packets may name any UDP source port, by which routers choose among routes of equal
    /// cost. Elsewhere the port is the device's own.
    pub labels: bool,
}

/// The trouble of an open device: the reason why it does not work at present.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{what}: {found}; {advice}")]
pub struct Trouble {
    /// The part of the device that has the trouble.
    pub what: String,
    /// The state of that part, as the system tells.
    pub found: String,
    /// The advice to the user: how to end the trouble.
    pub advice: &'static str,
}

doorbell_core::counted! {
    /// Counts of a device since it was opened.
    ///
    /// A device counts frames. Faults of packets are counted by the NIC, which knows packets.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
    #[cfg_attr(feature = "serde", serde(default))]
    pub struct Statistics {
        /// How many frames were sent.
        pub frames_sent: u64,
        /// How many packets were in the frames that were sent.
        pub packets_sent: u64,
        /// How many bytes were sent, with all headers.
        pub bytes_sent: u64,
        /// How many frames were received.
        pub frames_received: u64,
        /// How many bytes were in the frames that were received.
        pub bytes_received: u64,
        /// How many frames the system refused to send.
        pub refused: u64,
        /// How many frames came while there was no room for them.
        pub overrun: u64,
        /// How many frames came that were not for a NIC here, or from no known peer; and how many
        /// peers were turned away.
        pub strangers: u64,
        /// How many links were taken down because what a peer wrote there made no sense.
        pub broken: u64,
        /// How many messages came that a frame which was sent could not be delivered.
        pub unreachable: u64,
        /// How often a driver of the device slept.
        pub sleeps: u64,
    }
}
