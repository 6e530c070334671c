//! A device that records what it carries in a capture.

use std::fmt;
use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

use doorbell_core::encap::{Full, Host, Outer, Path, PathId, Run};
use doorbell_core::nic::{Flow, Inbox, Outbox};
use doorbell_core::payload::Payload;
use doorbell_core::pcapng::{self, Direction};
use doorbell_core::time::Time;
use doorbell_core::wire::{Headers, IpId, Mac, Malformed, Packet};

use super::inner::leave_to_inside;
use crate::device::Device;

/// A device around a device, which writes every packet of both directions to a capture in the
/// format pcapng.
///
/// Each packet is a frame of its own, in its outer headers. Packets on a link of shared memory have
/// no outer headers, and get some of RoCE v1, made up from the link's number. Frames are made anew,
/// with their ICRC, so their IPv4 identification may be another than the one on the wire. What
/// arrives damaged is not a packet, and is not written.
///
/// Times are the device's, counted from the system's time when the recorder was made.
pub struct Recorder<D, W> {
    inside: D,
    capture: Capture<W>,
}

impl<D: fmt::Debug, W> fmt::Debug for Recorder<D, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("inside", &self.inside).finish_non_exhaustive()
    }
}

impl<D: Device, W: io::Write + Send + 'static> Recorder<D, W> {
    /// Records what the device `inside` carries. `to` should be buffered.
    ///
    /// # Errors
    /// When the beginning of the capture can't be written.
    pub fn new(inside: D, to: W) -> io::Result<Self> {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let began = since_epoch.as_nanos() as u64 - inside.now().as_nanos();
        Self::with_times_from(inside, to, began)
    }

    /// Records what the device `inside` carries, with times that are `began` nanoseconds later than
    /// the device's: zero, in a simulation.
    ///
    /// # Errors
    /// As of [`new`](Self::new).
    pub fn with_times_from(inside: D, to: W, began: u64) -> io::Result<Self> {
        let name = inside.address().to_string();
        let file = pcapng::Writer::new(to, &name, inside.capabilities().name)?;
        let longest = inside.capabilities().mtu.bytes() + Headers::MAX_LEN + Outer::MAX_LEN + 8;
        let frame = vec![0; longest].into();
        Ok(Self { inside, capture: Capture { file, began, frame, received: None, failed: None } })
    }

    /// Writes what is still in buffers, and ends the recording.
    ///
    /// # Errors
    /// When not all of it could be written, then or before.
    pub fn finish(self) -> io::Result<(D, W)> {
        let Self { inside, capture } = self;
        let mut file = capture.file;
        match capture.failed {
            Some(why) => Err(why),
            None => file.flush().map(|()| (inside, file.into_inner())),
        }
    }
}

/// The capture that frames are written to.
struct Capture<W> {
    file: pcapng::Writer<W>,
    began: u64,
    frame: Box<[u8]>,
    /// The flow of the last packet that was received, and its path.
    received: Option<(u64, Path)>,
    /// The error after which nothing more is written.
    failed: Option<io::Error>,
}

impl<W: io::Write> Capture<W> {
    /// Writes a packet in the headers of a path.
    fn write(
        &mut self,
        now: Time,
        direction: Direction,
        path: &Path,
        headers: Headers,
        payload: impl Payload,
    ) {
        let id = path.outer().id().unwrap_or(IpId(0));
        let mut run = Run::begin(path, &mut self.frame, id, 1);
        // A packet longer than the device says that packets are is left out.
        if self.failed.is_some() || run.push(path, &mut self.frame, headers, payload).is_err() {
            return;
        }
        let len = run.seal(&mut self.frame).len;
        let time = self.began.wrapping_add(now.as_nanos());
        if let Err(why) = self.file.write(time, direction, &self.frame[..len]) {
            tracing::warn!(%why, "the recording ends: the capture can't be written");
            self.failed = Some(why);
        }
    }

    fn received<P: Payload>(&mut self, now: Time, flow: Flow<'_>, packet: &Packet<P>) {
        let path = match flow {
            Flow::Link(link) => made_up(link, Direction::Inbound),
            Flow::Network(number, outer) => match self.received.take() {
                // Within a flow, only identifications differ.
                Some((known, path)) if known == number && outer.id().is_none() => path,
                _ => Path::new(PathId(0), *outer),
            },
        };
        self.write(now, Direction::Inbound, &path, packet.headers, packet.payload);
        if let Flow::Network(number, _) = flow {
            self.received = Some((number, path));
        }
    }
}

/// Makes up headers for packets on a link of shared memory, between its two ends.
fn made_up(link: PathId, direction: Direction) -> Path {
    let [a, b, c, d] = link.0.to_be_bytes();
    let (here, there) = (Mac([2, 0, 0, 0, 0, 0]), Mac([6, 0, a, b, c, d]));
    let macs = match direction {
        Direction::Outbound => (here, there),
        Direction::Inbound => (there, here),
    };
    Path::new(link, Outer::v1(macs))
}

/// The inbox that the device inside hands packets to.
struct RecordedInbox<'a, I, W> {
    inbox: &'a mut I,
    capture: &'a mut Capture<W>,
    now: Time,
}

impl<I: Inbox, W: io::Write> Inbox for RecordedInbox<'_, I, W> {
    fn packet<P: Payload>(&mut self, flow: Flow<'_>, packet: &Packet<P>) {
        self.capture.received(self.now, flow, packet);
        self.inbox.packet(flow, packet);
    }

    #[inline]
    fn arrived(&mut self, at: Time) {
        self.inbox.arrived(at);
    }

    fn malformed(&mut self, why: Malformed) {
        self.inbox.malformed(why);
    }

    fn gone(&mut self, link: PathId) {
        self.inbox.gone(link);
    }

    fn port_closed(&mut self, at: Host, quoted: &[u8]) {
        self.inbox.port_closed(at, quoted);
    }
}

impl<D: Device, W: io::Write + Send + 'static> Outbox for Recorder<D, W> {
    fn push(&mut self, path: &Path, headers: Headers, payload: impl Payload) -> Result<u64, Full> {
        let ticket = self.inside.push(path, headers, payload)?;
        let now = self.inside.now();
        if self.inside.capabilities().lossless {
            let path = made_up(path.id(), Direction::Outbound);
            self.capture.write(now, Direction::Outbound, &path, headers, payload);
        } else {
            self.capture.write(now, Direction::Outbound, path, headers, payload);
        }
        Ok(ticket)
    }

    fn prepare(&mut self, path: PathId) {
        self.inside.prepare(path);
    }

    fn flush(&mut self) {
        self.inside.flush();
    }

    #[inline]
    fn time(&self) -> Option<Time> {
        self.inside.time()
    }

    fn delivered(&mut self, path: PathId) -> u64 {
        self.inside.delivered(path)
    }
}

impl<D: Device, W: io::Write + Send + 'static> Device for Recorder<D, W> {
    fn receive(&mut self, inbox: &mut impl Inbox) -> usize {
        let Self { inside, capture } = self;
        let now = inside.now();
        inside.receive(&mut RecordedInbox { inbox, capture, now })
    }

    leave_to_inside!(
        capabilities settle now address reach readiness arm disarm trouble statistics grants
    );
}
