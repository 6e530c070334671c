//! Raw Ethernet as a device: frames by AF_PACKET, received through the kernel's ring one by one,
//! or by `recv` in runs.

use std::io;
use std::os::fd::{AsRawFd, RawFd};

use doorbell_core::encap::{Full, Opener, Path, Run};
use doorbell_core::payload::Payload;
use doorbell_core::wire::{EtherType, Headers, IpId};

use crate::device::{Burst, Device, Flow, Inbox, Outbox};
use crate::sys::{PacketSocket, ReceiveRing};
use crate::virtio;

/// Room for a packet of 4096 bytes in any headers, in slots that do not all fall on the same
/// lines of the cache.
const SLOT: usize = 69 * 64;
const SLOTS: usize = 512;
/// The longest frame: what an IP length field can say, and the Ethernet header.
const LONGEST: usize = 65535 + 14;

enum Intake {
    /// The kernel copies each frame to a ring: looking costs no system call.
    Ring(ReceiveRing),
    /// Each look is a system call, and the copy runs on this processor: right for long frames.
    Copy(Vec<u8>),
}

pub struct Ethernet {
    socket: PacketSocket,
    intake: Intake,
    opener: Opener,
    burst: Burst,
    /// A virtio header, and the frame being filled behind it.
    outgoing: Vec<u8>,
    run: Option<Run>,
    most: u32,
    next_id: u16,
}

impl Ethernet {
    /// A frame a packet.
    pub fn singles(interface: &str, protocol: EtherType) -> io::Result<Self> {
        let socket = PacketSocket::open(interface, protocol.0, false)?;
        let ring = ReceiveRing::new(&socket, SLOT, SLOTS)?;
        Ok(Self::new(socket, Intake::Ring(ring), 1))
    }

    /// Runs of up to `most` packets a frame.
    pub fn runs(interface: &str, protocol: EtherType, most: u32) -> io::Result<Self> {
        let socket = PacketSocket::open(interface, protocol.0, true)?;
        Ok(Self::new(socket, Intake::Copy(vec![0; virtio::LEN + LONGEST]), most))
    }

    fn new(socket: PacketSocket, intake: Intake, most: u32) -> Self {
        let outgoing = vec![0; virtio::LEN + LONGEST];
        Self {
            socket,
            intake,
            opener: Opener::default(),
            burst: Burst::new(),
            outgoing,
            run: None,
            most,
            next_id: 0,
        }
    }

    #[inline]
    fn deliver(opener: &mut Opener, frame: &[u8], segment: Option<u16>, inbox: &mut impl Inbox) {
        match opener.open(frame, segment) {
            Err(why) => inbox.malformed(why),
            Ok(mut arrival) => {
                while let Some(packet) = arrival.next() {
                    match packet {
                        Ok(packet) => {
                            inbox.packet(Flow::Network(arrival.flow(), arrival.outer()), &packet);
                        }
                        Err(why) => inbox.malformed(why),
                    }
                }
            }
        }
    }
}

impl Outbox for Ethernet {
    #[inline]
    fn push(&mut self, path: &Path, headers: Headers, payload: impl Payload) -> Result<u64, Full> {
        loop {
            let frame = &mut self.outgoing[virtio::LEN..];
            let run = self
                .run
                .get_or_insert_with(|| Run::begin(path, frame, IpId(self.next_id), self.most));
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
        let Some(run) = &self.run else { return };
        let (header, frame) = self.outgoing.split_at_mut(virtio::LEN);
        let sealed = run.seal(frame);
        self.next_id = self.next_id.wrapping_add(sealed.packets as u16);
        let bytes = match &self.intake {
            Intake::Ring(_) => &frame[..sealed.len],
            Intake::Copy(_) => {
                header.copy_from_slice(&virtio::header(sealed.segmentation));
                &self.outgoing[..virtio::LEN + sealed.len]
            }
        };
        // A frame that the interface refuses is a frame lost: the protocol above copes or says so.
        let _ = self.socket.send(bytes);
        self.run = None;
    }

    fn delivered(&mut self) -> u64 {
        0
    }
}

impl Device for Ethernet {
    const LOSSLESS: bool = false;

    #[inline]
    fn receive(&mut self, inbox: &mut impl Inbox) -> usize {
        let Self { socket, intake, opener, burst, .. } = self;
        burst.take(|| match intake {
            Intake::Ring(ring) => {
                ring.next(|frame| Self::deliver(opener, frame, None, inbox)).is_some()
            }
            Intake::Copy(buffer) => {
                let received = socket.receive(buffer);
                if let Some(len) = received {
                    let (segment, frame) = virtio::split(&buffer[..len]);
                    Self::deliver(opener, frame, segment, inbox);
                }
                received.is_some()
            }
        })
    }

    fn readiness(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    fn arm(&mut self) {}

    fn disarm(&mut self) {}
}
