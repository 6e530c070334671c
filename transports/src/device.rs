//! What a device is.

use std::io;
use std::os::fd::BorrowedFd;

use doorbell_core::encap::PathId;
use doorbell_core::nic::{Inbox, Outbox, Way};
use doorbell_core::time::Time;
use doorbell_core::wire::PathMtu;
use thiserror::Error;

use crate::address::{Address, ReachError};
use crate::grant::{Grant, GrantError, SharedMemory};
use crate::sys::process::PeerProcess;

/// How packets leave a NIC, and how they come to it.
///
/// To send is [`Outbox`]: packets are encoded in the device's own memory, share a frame where the
/// device knows how, and leave with [`flush`](Outbox::flush). To receive is
/// [`receive`](Self::receive), which lends each packet to an [`Inbox`] as headers, copied once, and
/// a payload that can only be copied from: who else may write that memory is the device's business.
///
/// A turn of whoever drives a NIC over a device is
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
///         // Which opens windows: what may be sent now is not to wait until something is found again.
///         nic.collect(device);
///     }
///     nic.transmit(device);
///     if lossless {
///         device.settle(nic.owes());
///     }
///     found || nic.counters().sent != sent
/// }
/// ```
///
/// which says whether anything came or went. To sleep is to [`arm`](Self::arm), to take turns until
/// nothing does, to wait until [`readiness`](Self::readiness) is readable, and to
/// [`disarm`](Self::disarm). That nothing comes is not enough: of a long answer, a NIC sends a part
/// a turn. And that the NIC has work is no reason to stay awake: it may wait for room at a peer
/// that sleeps.
pub trait Device: Outbox + Send + 'static {
    /// What it can do, which does not change while it is open.
    fn capabilities(&self) -> &Capabilities;

    /// Hands what has arrived to `inbox`: one frame first, more at a time while they keep coming.
    /// How many frames it was; what else a device must do while nothing arrives, it does when
    /// there are none.
    ///
    /// The first look at a frame that comes alone costs a cache line's way or a system call, and
    /// whoever waits for it waits for every other look, too. [`Burst`](crate::Burst) is for that.
    fn receive(&mut self, inbox: &mut impl Inbox) -> usize;

    /// What has been received so far is answered for, but on those links where the NIC still
    /// [owes](doorbell_core::nic::Nic::owes) an answer: a lossless device tells its peers that it
    /// was taken. Others do nothing.
    #[inline]
    fn settle(&mut self, owes: impl Fn(PathId) -> bool) {
        let _ = owes;
    }

    /// The time. All that stands above goes by this clock, so that it runs on a simulated one, too.
    fn now(&self) -> Time;

    /// Where peers reach this device.
    fn address(&self) -> &Address;

    /// The way to a peer, or `None` while it is being looked for: ask again when something was
    /// received, or the readiness told.
    ///
    /// # Errors
    /// When the address is not of this device's kind, or nobody is there.
    fn reach(&mut self, peer: &Address) -> Result<Option<Way>, ReachError>;

    /// What becomes readable, while [armed](Self::arm), when there is something to receive or to
    /// do. It stays the same, and nothing else ever makes it readable: so it may stay registered.
    fn readiness(&self) -> BorrowedFd<'_>;

    /// Called before sleeping, until the time when the NIC has something to do: from here on, that
    /// or a frame makes the descriptor readable. What came before may not: look again.
    ///
    /// # Errors
    /// When the system refuses; then nothing would wake who sleeps.
    fn arm(&mut self, until: Option<Time>) -> io::Result<()>;

    /// Called after waking: frames cost their sender nothing more for waking.
    fn disarm(&mut self);

    /// What keeps it from working at this moment, if something does: an interface that is down, or
    /// gone. It goes on trying. This asks the system, and so nothing has to be remembered, and
    /// taken back, where packets are sent.
    fn trouble(&mut self) -> Option<Trouble> {
        None
    }

    /// What it has counted.
    fn statistics(&mut self) -> Statistics;

    /// Lets the peer at the end of a link map memory, by a number of the caller's choosing. It
    /// can't be taken back.
    ///
    /// # Errors
    /// When the device is not one whose peers can [map](Capabilities::mapping) memory, the link is
    /// no more, or the peer has many grants that it has not taken yet.
    fn grant(&mut self, to: PathId, tag: u128, memory: &SharedMemory) -> Result<(), GrantError> {
        let (_, _, _) = (to, tag, memory);
        Err(GrantError::Unsupported { device: self.capabilities().name })
    }

    /// The process at the other end of a link, as the kernel tells. `None` where devices have no
    /// links, the link is no more, or the kernel does not tell.
    fn peer_process(&mut self, link: PathId) -> Option<PeerProcess> {
        let _ = link;
        None
    }

    /// The next grant of a peer's, mapped here. One that came wakes whoever sleeps, as frames do.
    fn granted(&mut self) -> Option<Grant> {
        None
    }
}

/// What a device can do.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Capabilities {
    /// What it is called: the word that a program picks it by.
    pub name: &'static str,
    /// The largest path MTU whose packets fit, with everything around them.
    pub mtu: PathMtu,
    /// How many packets share a frame at most; one, if they can't.
    pub run: u32,
    /// Whether the interface itself cuts such frames into packets, as far as it tells: whether or
    /// not it does, they arrive as packets.
    pub segmentation: bool,
    /// Whether checksums of outer headers are the interface's work.
    pub checksum: bool,
    /// Whether nothing is lost, repeated or reordered, and the device tells how far its peers have
    /// come.
    pub lossless: bool,
    /// Whether peers can map memory that they are granted.
    pub mapping: bool,
    /// How much memory the device takes at most, in bytes, with as many peers as it allows.
    pub memory: usize,
    /// Whether the device is part of a simulated network, where time passes only as the program
    /// lets it pass: no thread of Doorbell's own runs a NIC over such a device.
    pub simulated: bool,
}

/// What keeps an open device from working.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{what}: {found}; {advice}")]
pub struct Trouble {
    /// What of it.
    pub what: String,
    /// What the system says.
    pub found: String,
    /// What to do.
    pub advice: &'static str,
}

/// What a device has counted since it was opened.
///
/// What is wrong with packets is counted by the NIC, which knows them; a device counts frames.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
pub struct Statistics {
    /// Frames sent.
    pub frames_sent: u64,
    /// Packets in them.
    pub packets_sent: u64,
    /// Their bytes, with everything around them.
    pub bytes_sent: u64,
    /// Frames received.
    pub frames_received: u64,
    /// Their bytes.
    pub bytes_received: u64,
    /// Frames that the system did not take for sending.
    pub refused: u64,
    /// Frames that came while there was no room for them.
    pub overrun: u64,
    /// Frames that were not for a NIC here, or from nobody known; and peers that were turned away.
    pub strangers: u64,
    /// Links that were taken down since what a peer wrote there made no sense.
    pub broken: u64,
    /// Notices that a frame which was sent found nobody.
    pub unreachable: u64,
    /// How often somebody slept.
    pub sleeps: u64,
}
