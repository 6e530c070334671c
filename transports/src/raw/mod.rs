//! What raw devices have in common: frames of our own making through packet sockets.
//!
//! A packet that is alone leaves through a plain socket; a run of them through one that tells the
//! kernel how to cut it, which costs a frame a quarter of a microsecond. Whatever comes arrives
//! through one ring, in its order; which ring that is may change.

mod doubles;
mod intake;
mod link;
mod order;
mod schedule;
mod source;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use doorbell_core::encap::{Full, Opener, Path, PathId, Run, Sealed, alone};
use doorbell_core::nic::{Inbox, Outbox, Way};
use doorbell_core::payload::Payload;
use doorbell_core::time::Time;
use doorbell_core::wire::{Ethernet, Headers, IpId};

use crate::address::{Address, ReachError};
use crate::burst::Burst;
use crate::clock::Clock;
use crate::device::{Capabilities, Device, Statistics, Trouble};
use crate::sys;
use crate::sys::packet::PacketSocket;
use crate::sys::sentry::Sentry;
use crate::sys::virtio;

pub(crate) use intake::Intake;
pub(crate) use link::Link;
pub(crate) use source::Recipe;

/// The longest frame: what an IP length field can say, and the Ethernet header.
pub(crate) const LONGEST: usize = Ethernet::LEN + u16::MAX as usize;

/// How a raw device knows its peers.
pub trait Peers: Send + 'static {
    /// Whether packets to them may go in runs. Where they don't, each leaves when it is pushed, and
    /// none may be IPv4's, which would number them.
    const RUNS: bool;
    /// The bytes that knowing them takes at most.
    const MEMORY: usize = 0;

    /// As [`Device::reach`]. What there is to ask is asked through `socket`.
    fn reach(
        &mut self,
        peer: &Address,
        clock: &Clock,
        socket: &PacketSocket,
    ) -> Result<Option<Way>, ReachError>;

    /// Takes a frame that is about peers, and answers it; others are the NIC's.
    #[inline]
    fn take(&mut self, _frame: &[u8], _socket: &PacketSocket) -> bool {
        false
    }

    /// Takes what came by another socket, and asks again where nobody answered. How many frames
    /// came.
    #[inline]
    fn turn(&mut self, _clock: &Clock, _socket: &PacketSocket) -> usize {
        0
    }

    /// The other socket.
    fn socket(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// When something is to be asked again.
    fn next(&self) -> Option<Time> {
        None
    }

    /// Brings a frame to where its peer has moved, if any peer has.
    #[inline]
    fn redirect(&self, _path: &Path, _frame: &mut [u8]) {}

    /// What is wrong among them.
    fn trouble(&mut self) -> Option<Trouble> {
        None
    }
}

/// A device on an interface.
pub struct Raw<P> {
    pub(crate) peers: P,
    link: Link,
    intake: Intake,
    /// Sends packets that are alone. Where none are together, it is the intake's own.
    pub(crate) singles: PacketSocket,
    opener: Opener,
    burst: Burst,
    /// A virtio header, and the frame being filled behind it.
    outgoing: Box<[u8]>,
    run: Option<Run>,
    /// The identification of the next packet.
    id: IpId,
    address: Address,
    capabilities: Capabilities,
    statistics: Statistics,
    sentry: Sentry,
    clock: Clock,
}

impl<P: Peers> Raw<P> {
    /// A device that sends runs of up to `run` packets.
    pub(crate) fn new(
        name: &'static str,
        address: Address,
        peers: P,
        link: Link,
        intake: Intake,
        singles: PacketSocket,
        run: u32,
    ) -> io::Result<Self> {
        let outgoing: Box<[u8]> = vec![0; virtio::LEN + LONGEST].into();
        let capabilities = Capabilities {
            name,
            mtu: link.mtu,
            run,
            segmentation: run > 1 && link.segments(),
            checksum: run > 1,
            lossless: false,
            mapping: false,
            simulated: false,
            memory: P::MEMORY
                + intake.memory()
                + outgoing.len()
                + if P::RUNS { singles.sending() } else { 0 },
        };
        Ok(Self {
            peers,
            link,
            intake,
            singles,
            opener: Opener::default(),
            burst: Burst::new(),
            outgoing,
            run: None,
            id: IpId(0),
            address,
            capabilities,
            statistics: Statistics::default(),
            sentry: Sentry::new()?,
            clock: Clock::new(),
        })
    }

    /// The same device, but that it sends a frame a packet.
    #[must_use]
    pub fn without_offload(mut self) -> Self {
        let now = self.capabilities;
        self.capabilities = Capabilities { run: 1, segmentation: false, checksum: false, ..now };
        self
    }

    /// Goes on to the front of those who are asked whether a frame is theirs. Not while somebody
    /// sleeps on the socket that there is.
    #[cold]
    fn come_to_front(&mut self) {
        if !self.sentry.is_armed() {
            self.intake.go_on(self.clock.now());
            if !P::RUNS {
                self.singles = self.intake.socket().clone();
            }
        }
    }

    /// Sends what was laid into the frame.
    #[inline]
    fn send(&mut self, sealed: &Sealed) -> io::Result<usize> {
        let end = virtio::LEN + sealed.len;
        match sealed.segmentation {
            Some(segmentation) => {
                let (header, _) = self.outgoing.split_at_mut(virtio::LEN);
                header.copy_from_slice(&virtio::header(segmentation));
                self.intake.socket().send(&self.outgoing[..end])
            }
            None => self.singles.send(&self.outgoing[virtio::LEN..end]),
        }
    }

    /// Counts what was sent.
    #[inline]
    fn count(&mut self, sent: io::Result<usize>, (packets, len): (u32, usize)) {
        match sent {
            Ok(_) => {
                self.statistics.frames_sent += 1;
                self.statistics.packets_sent += u64::from(packets);
                self.statistics.bytes_sent += len as u64;
            }
            // A frame that the interface refuses is a frame lost: the NIC copes, or says so.
            Err(_) => self.statistics.refused += 1,
        }
    }

    /// Sends a packet in a frame of its own, where that is how all of them go.
    #[inline]
    fn push_alone(
        &mut self,
        path: &Path,
        headers: Headers,
        payload: impl Payload,
    ) -> Result<u64, Full> {
        let frame = &mut self.outgoing[virtio::LEN..];
        let len = alone(path, frame, self.id, headers, payload)?;
        self.peers.redirect(path, &mut frame[..len]);
        let sent = self.singles.send(&frame[..len]);
        self.count(sent, (1, len));
        Ok(0)
    }
}

impl<P: Peers> Outbox for Raw<P> {
    #[inline]
    fn push(&mut self, path: &Path, headers: Headers, payload: impl Payload) -> Result<u64, Full> {
        if !P::RUNS {
            return self.push_alone(path, headers, payload);
        }
        loop {
            let frame = &mut self.outgoing[virtio::LEN..];
            let run = match &mut self.run {
                Some(run) => run,
                none => {
                    let run = Run::begin(path, frame, self.id, self.capabilities.run);
                    self.peers.redirect(path, frame);
                    none.insert(run)
                }
            };
            match run.push(path, frame, headers, payload) {
                Ok(()) => return Ok(0),
                // A packet that does not fit an empty frame will fit none.
                Err(Full) if run.packets() == 0 => {
                    self.run = None;
                    return Err(Full);
                }
                Err(Full) => self.flush(),
            }
        }
    }

    #[inline]
    fn flush(&mut self) {
        let Some(run) = self.run.take() else { return };
        let sealed = run.seal(&mut self.outgoing[virtio::LEN..]);
        self.id = IpId(self.id.0.wrapping_add(sealed.packets as u16));
        let sent = self.send(&sealed);
        self.count(sent, (sealed.packets, sealed.len));
    }

    fn delivered(&mut self, _: PathId) -> u64 {
        0
    }
}

impl<P: Peers> Device for Raw<P> {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    #[inline]
    fn receive(&mut self, inbox: &mut impl Inbox) -> usize {
        let Self { intake, singles, peers, opener, burst, statistics, clock, .. } = self;
        let taken = burst.take(|| {
            intake.next(|frame, segment| {
                if !peers.take(frame, singles) {
                    statistics.frames_received += 1;
                    statistics.bytes_received += frame.len() as u64;
                    inbox.frame(opener, frame, segment);
                }
            })
        });
        let turned = peers.turn(clock, singles);
        if intake.is_due(taken) {
            self.come_to_front();
        }
        taken + turned
    }

    fn now(&self) -> Time {
        self.clock.now()
    }

    fn address(&self) -> &Address {
        &self.address
    }

    fn reach(&mut self, peer: &Address) -> Result<Option<Way>, ReachError> {
        self.peers.reach(peer, &self.clock, &self.singles)
    }

    fn readiness(&self) -> BorrowedFd<'_> {
        self.sentry.readiness()
    }

    fn arm(&mut self, until: Option<Time>) -> io::Result<()> {
        self.statistics.sleeps += 1;
        self.intake.filter(true);
        let now = self.now();
        let own = self.peers.next().into_iter().chain(self.intake.next_step(now));
        let after = own.chain(until).min().map(|until| until.since(now));
        let sockets = [Some(self.intake.listening()), self.peers.socket()];
        self.sentry.arm(sockets.into_iter().flatten(), after)
    }

    fn disarm(&mut self) {
        let sockets = [Some(self.intake.listening()), self.peers.socket()];
        self.sentry.disarm(sockets.into_iter().flatten());
        // A socket with an error, that its interface was taken down, is ready for ever: asking for
        // it takes it away, and lets one sleep again.
        for socket in sockets.into_iter().flatten() {
            sys::number(socket, libc::SO_ERROR);
        }
    }

    fn trouble(&mut self) -> Option<Trouble> {
        self.link.trouble(self.singles.as_fd()).or_else(|| self.peers.trouble())
    }

    fn statistics(&mut self) -> Statistics {
        self.statistics.overrun += self.intake.overrun();
        self.statistics.strangers += self.intake.strangers();
        self.statistics
    }
}
