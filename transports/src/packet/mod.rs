//! Raw Ethernet by RoCE v1: a frame a packet, sent as it is encoded, received by a ring that the
//! kernel fills and this process polls.
//!
//! The interface's own address is used, so this works where a foreign one never arrives (macvlan).
//! A filter in the kernel passes a process the frames of its own queue pairs and of queue pair 1.

mod filter;

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use doorbell_core::encap::{Full, Opener, Outer, Path, PathId, Run};
use doorbell_core::nic::{Inbox, Numbering, Outbox, Way};
use doorbell_core::payload::Payload;
use doorbell_core::time::Time;
use doorbell_core::wire::{
    EtherType, Ethernet, FlowLabel, Gid, Grh, Headers, IpId, IpProtocol, Ipv6, Mac, PathMtu,
};

use crate::address::{Address, ReachError};
use crate::burst::Burst;
use crate::clock::Clock;
use crate::device::{Capabilities, Device, Statistics, Trouble};
use crate::open::OpenError;
use crate::sys::interface::Interface;
use crate::sys::packet::{PacketSocket, ReceiveRing};
use crate::sys::sentry::Sentry;

/// Room for a packet of 4096 bytes in any headers, and what the kernel says of it, in slots that do
/// not all fall on the same lines of the cache.
const SLOT: usize = 69 * 64;
const SLOTS: usize = 512;

/// The most that stands in a frame beside a packet's payload.
const AROUND: usize = Outer::MAX_LEN + 64;
const LONGEST: usize = PathMtu::Mtu4096.bytes() + AROUND;

/// An interface spoken to by RoCE v1.
pub struct Packet {
    socket: PacketSocket,
    ring: ReceiveRing,
    opener: Opener,
    burst: Burst,
    /// The frame being filled.
    frame: Box<[u8]>,
    run: Option<Run>,
    mac: Mac,
    address: Address,
    capabilities: Capabilities,
    statistics: Statistics,
    sentry: Sentry,
    clock: Clock,
    interface: Box<str>,
    trouble: Option<Trouble>,
}

impl Packet {
    /// Opens an interface for the queue pairs that `numbering` calls this process's.
    ///
    /// # Errors
    /// When it is not there, not up, or its MTU is too small; when raw sockets are not allowed.
    pub fn open(interface: &str, numbering: Numbering) -> Result<Self, OpenError> {
        let found = Interface::named(interface)
            .map_err(|source| OpenError::interface("packet", interface, source))?;
        if !found.up {
            return Err(OpenError::Down { device: "packet", interface: interface.into() });
        }
        let mtu = PathMtu::fitting(found.mtu as usize).ok_or_else(|| OpenError::SmallMtu {
            device: "packet",
            interface: interface.into(),
            mtu: found.mtu,
            least: PathMtu::LEAST_INTERFACE as u32,
        })?;
        let opened = || -> io::Result<_> {
            let socket = PacketSocket::open(false)?;
            let ring = ReceiveRing::new(&socket, SLOT, SLOTS)?;
            let [first, second] = filter::to(found.mac);
            let own = filter::own(Ethernet::LEN + Grh::LEN, numbering);
            socket.filter(&[first, second, own])?;
            socket.bind(found.index, EtherType::ROCE)?;
            Ok((socket, ring, Sentry::new()?))
        };
        let (socket, ring, sentry) =
            opened().map_err(|source| OpenError::raw("packet", interface, source))?;
        Ok(Self {
            socket,
            ring,
            opener: Opener::default(),
            burst: Burst::new(),
            frame: vec![0; LONGEST].into(),
            run: None,
            mac: found.mac,
            address: Address::Packet(found.mac),
            capabilities: Capabilities {
                name: "packet",
                mtu,
                run: 1,
                segmentation: false,
                checksum: false,
                lossless: false,
                mapping: false,
                memory: ReceiveRing::memory(SLOT, SLOTS) + LONGEST,
            },
            statistics: Statistics::default(),
            sentry,
            clock: Clock::new(),
            interface: interface.into(),
            trouble: None,
        })
    }

    /// What the kernel refused the interface for, if that is not a passing lack of room.
    #[cold]
    fn refused(&mut self, why: &io::Error) {
        self.statistics.refused += 1;
        if matches!(why.raw_os_error(), Some(libc::ENETDOWN | libc::ENXIO | libc::ENODEV)) {
            self.trouble = Some(Trouble::interface(&self.interface, why));
        }
    }
}

impl Outbox for Packet {
    #[inline]
    fn push(&mut self, path: &Path, headers: Headers, payload: impl Payload) -> Result<u64, Full> {
        if self.run.is_some() {
            self.flush();
        }
        let mut run = Run::begin(path, &mut self.frame, IpId(0), 1);
        run.push(path, &mut self.frame, headers, payload)?;
        self.run = Some(run);
        Ok(0)
    }

    #[inline]
    fn flush(&mut self) {
        let Some(run) = self.run.take() else { return };
        let sealed = run.seal(&mut self.frame);
        // A frame that the interface refuses is a frame lost: the NIC copes, or says so.
        match self.socket.send(&self.frame[..sealed.len]) {
            Ok(_) => {
                self.statistics.frames_sent += 1;
                self.statistics.packets_sent += 1;
                self.statistics.bytes_sent += sealed.len as u64;
            }
            Err(why) => self.refused(&why),
        }
    }

    fn delivered(&mut self, _: PathId) -> u64 {
        0
    }
}

impl Device for Packet {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    #[inline]
    fn receive(&mut self, inbox: &mut impl Inbox) -> usize {
        let Self { ring, opener, burst, statistics, .. } = self;
        burst.take(|| {
            let taken = ring.next(|frame| {
                statistics.frames_received += 1;
                statistics.bytes_received += frame.len() as u64;
                inbox.frame(opener, frame, None);
            });
            taken.is_some()
        })
    }

    fn now(&self) -> Time {
        self.clock.now()
    }

    fn address(&self) -> &Address {
        &self.address
    }

    fn reach(&mut self, peer: &Address) -> Result<Option<Way>, ReachError> {
        let &Address::Packet(destination) = peer else {
            let (address, takes) = (peer.clone(), "packet:MAC");
            return Err(ReachError::Kind { address, device: "packet", takes });
        };
        let ethernet = Ethernet { destination, source: self.mac, ethertype: EtherType::ROCE };
        let ip = Ipv6 {
            traffic_class: 2, // switches may mark congestion
            flow_label: FlowLabel::new(0),
            payload_length: 0,
            next_header: IpProtocol::IBA,
            hop_limit: 64,
            source: Gid::from_mac(self.mac),
            destination: Gid::from_mac(destination),
        };
        Ok(Some(Way::Network(Outer::V1(ethernet, Grh(ip)))))
    }

    fn readiness(&self) -> BorrowedFd<'_> {
        self.sentry.readiness()
    }

    fn arm(&mut self, until: Option<Time>) -> io::Result<()> {
        self.statistics.sleeps += 1;
        let after = until.map(|until| until.since(self.now()));
        self.sentry.arm(self.socket.as_fd().as_raw_fd(), after)
    }

    fn disarm(&mut self) {
        self.sentry.disarm(self.socket.as_fd().as_raw_fd());
        // A socket with an error is ready for ever: taking it is what lets anyone sleep again.
        if let Some(why) = self.socket.error() {
            self.trouble = Some(Trouble::interface(&self.interface, &why));
        }
    }

    fn trouble(&self) -> Option<&Trouble> {
        self.trouble.as_ref()
    }

    fn statistics(&mut self) -> Statistics {
        self.statistics.overrun += self.socket.overrun();
        self.statistics
    }
}
