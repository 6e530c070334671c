//! A device on an interface, over any way to know peers.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use doorbell_core::encap::{Full, Opener, Path, PathId, Run, Sealed, alone};
use doorbell_core::nic::{Inbox, Outbox, Way, receive_frame};
use doorbell_core::payload::Payload;
use doorbell_core::time::Time;
use doorbell_core::wire::{Headers, IpId};
use rustix::net::sockopt::socket_error;

use super::frame::LONGEST;
use super::intake::Intake;
use super::interface::BoundInterface;
use super::peers::Peers;
use crate::address::{Address, ReachError};
use crate::burst::Burst;
use crate::clock::Clock;
use crate::device::{Capabilities, Device, Statistics, Trouble};
use crate::stamp::WallClock;
use crate::sys::epoll_timer::EpollTimer;
use crate::sys::packet::PacketSocket;
use crate::sys::virtio;

/// A device on an interface, which sends and receives raw frames.
pub struct Raw<P> {
    pub(crate) peers: P,
    interface: BoundInterface,
    intake: Intake,
    /// The socket that sends packets that are alone. Where no packets go in runs, it is the socket
    /// of the intake.
    pub(crate) singles: PacketSocket,
    opener: Opener,
    burst: Burst,
    /// Memory for a virtio header, and behind it the frame that is being filled.
    outgoing: Box<[u8]>,
    run: Option<Run>,
    /// The identification of the next packet.
    id: IpId,
    address: Address,
    capabilities: Capabilities,
    statistics: Statistics,
    timer: EpollTimer,
    clock: Clock,
    /// The clock by which the kernel stamps frames.
    wall: WallClock,
}

impl<P: Peers> Raw<P> {
    /// Makes a device that sends runs of up to `run` packets.
    pub(crate) fn new(
        name: &'static str,
        address: Address,
        peers: P,
        interface: BoundInterface,
        intake: Intake,
        singles: PacketSocket,
        run: u32,
    ) -> io::Result<Self> {
        let outgoing: Box<[u8]> = vec![0; virtio::LEN + LONGEST].into();
        let capabilities = Capabilities {
            name,
            mtu: interface.mtu,
            encrypted_mtu: interface.encrypted_mtu,
            run,
            segmentation: run > 1 && interface.segments(),
            checksum: run > 1,
            lossless: false,
            mapping: false,
            simulated: false,
            labels: P::RUNS,
            memory: P::MEMORY
                + intake.memory()
                + outgoing.len()
                + if P::RUNS { singles.sending() } else { 0 },
        };
        Ok(Self {
            peers,
            interface,
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
            timer: EpollTimer::new()?,
            clock: Clock::new(),
            wall: WallClock::default(),
        })
    }

    /// Makes the device send each packet in a frame of its own.
    #[must_use]
    pub fn without_offload(mut self) -> Self {
        let now = self.capabilities;
        self.capabilities = Capabilities { run: 1, segmentation: false, checksum: false, ..now };
        self
    }

    /// Takes a step towards being the first socket on the interface that the kernel asks whether a
    /// frame is its own; no step while a driver sleeps on the socket that there is.
    #[cold]
    fn come_to_front(&mut self) {
        if !self.timer.is_armed() {
            self.intake.go_on(self.clock.now());
            if !P::RUNS {
                self.singles = self.intake.socket().clone();
            }
        }
    }

    /// Sends the packets that were put into the frame.
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

    /// Counts a frame of some packets and bytes that was sent, or refused.
    #[inline]
    fn count(&mut self, sent: io::Result<usize>, packets: u32, len: usize) {
        match sent {
            Ok(_) => {
                self.statistics.frames_sent += 1;
                self.statistics.packets_sent += u64::from(packets);
                self.statistics.bytes_sent += len as u64;
            }
            // A frame that the interface refuses is lost. The NIC sends it again, or says so.
            Err(_) => self.statistics.refused += 1,
        }
    }

    /// Sends a packet in a frame of its own, where all packets go so.
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
        self.count(sent, 1, len);
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
        self.count(sent, sealed.packets, sealed.len);
    }

    #[inline]
    fn time(&self) -> Option<Time> {
        Some(self.clock.now())
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
        let Self { intake, singles, peers, opener, burst, statistics, clock, wall, .. } = self;
        let taken = burst.take(|| {
            intake.next(|frame, segment, stamp| {
                if !peers.take(frame, singles) {
                    statistics.frames_received += 1;
                    statistics.bytes_received += frame.len() as u64;
                    inbox.arrived(wall.time_of(stamp, clock));
                    receive_frame(inbox, opener, frame, segment);
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
        self.timer.readiness()
    }

    fn arm(&mut self, until: Option<Time>) -> io::Result<()> {
        self.statistics.sleeps += 1;
        self.intake.filter(true);
        let now = self.now();
        let own = self.peers.next().into_iter().chain(self.intake.next_step(now));
        let after = own.chain(until).min().map(|until| until.since(now));
        let sockets = [Some(self.intake.listening()), self.peers.socket()];
        self.timer.arm(sockets.into_iter().flatten(), after)
    }

    fn disarm(&mut self) {
        let sockets = [Some(self.intake.listening()), self.peers.socket()];
        self.timer.disarm(sockets.into_iter().flatten());
        // A socket with an error, such as that its interface was taken down, stays ready. Reading
        // the error takes it away, so that the driver can sleep again.
        for socket in sockets.into_iter().flatten() {
            let _ = socket_error(socket);
        }
    }

    fn trouble(&mut self) -> Option<Trouble> {
        self.interface.trouble(self.singles.as_fd()).or_else(|| self.peers.trouble())
    }

    fn statistics(&mut self) -> Statistics {
        self.statistics.overrun += self.intake.overrun();
        self.statistics.strangers += self.intake.strangers();
        self.statistics
    }
}
