//! Peers that are sent to often, each with a socket that is connected to it.
//!
//! For such a socket the kernel need not look for a route, which is a sixth of a small message's
//! time, nor tell the sender of what is received. But over IPv4 the kernel gives identifications to
//! what the socket sends: from a random number on, one more for each frame, and within a run one
//! more for each packet. The ICRC covers identifications, so the first one must be learnt: from an
//! empty datagram that the kernel shows as it has sent it. Until that is known, and where the
//! kernel does not show it, frames to the peer leave by the listener, whose identifications are
//! zero.

use std::io;
use std::net::SocketAddr;

use doorbell_core::encap::Opener;
use doorbell_core::nic::Inbox;
use doorbell_core::wire::{Headers, IpId};

use super::sender::Sender;
use super::traffic::Traffic;
use crate::clock::Clock;
use crate::stamp::WallClock;
use crate::sys::udp::{Datagrams, Report, UdpSocket};

/// A peer that is sent to often.
pub struct Peer {
    pub address: SocketAddr,
    pub socket: UdpSocket,
    sender: Sender,
    ids: Ids,
    mode: ReceiveMode,
    /// The most packets that share a frame.
    pub run: u32,
    /// The number of the last frame to this peer, among all frames of the device.
    pub used: u64,
    /// True if packets of a connection have gone to this peer, and not only datagrams.
    pub connected: bool,
    /// True once the log says that a router calls the way to this peer narrow.
    narrow: bool,
    /// The traffic class of what the socket sends.
    pub class: u8,
}

/// The state of knowledge of the identification that the next frame gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ids {
    /// Packets of IPv6 have no identifications.
    None,
    /// The next frame gets this identification.
    Next(IpId),
    /// The next identification is not known: a send failed, perhaps after the kernel had counted
    /// it.
    Unknown { tries: u32 },
    /// The kernel was asked for the identification, and the answer was looked for so many times.
    Asked { looks: u32 },
    /// The system does not show identifications, or not in time: the socket only receives.
    Hidden { by_system: bool },
}

/// An ICMP message that a port is closed, with the beginning of the datagram that it is about.
pub struct ClosedPort {
    pub at: SocketAddr,
    pub quoted: Box<[u8]>,
}

/// Messages that ports are closed, which the NIC has not been told yet. At most [`REPORTS`] are
/// kept, and more are dropped.
#[derive(Default)]
pub struct ClosedPorts(Vec<ClosedPort>);

impl ClosedPorts {
    /// Keeps a message, if there is room.
    pub fn add(&mut self, closed: ClosedPort) {
        if self.0.len() < REPORTS {
            self.0.push(closed);
        }
    }

    /// Takes all messages out, for the NIC to be told.
    pub fn take(&mut self) -> Vec<ClosedPort> {
        std::mem::take(&mut self.0)
    }
}

/// The outcome of learning a peer's identification.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Learnt {
    /// The peer knows all that there is to learn.
    Enough,
    /// The answer of the kernel has not come yet.
    Later,
    /// The system shows no identifications.
    Never,
}

/// How often the kernel is asked for an identification.
const TRIES: u32 = 8;
/// How often the kernel's answer is looked for.
const LOOKS: u32 = 1 << 16;
/// The most reports of a socket that are read at once.
pub const REPORTS: usize = 64;

/// How a socket receives. Runs are received whole; but where packets come one at a time, asking
/// each whether it is a run would cost a twentieth of its time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ReceiveMode {
    /// Datagrams are received one at a time, and `together` have come without a pause.
    Single { together: u32 },
    /// Runs are received whole, and `alone` packets came alone since the last run, each after a
    /// pause.
    Runs { alone: u32, paused: bool },
    /// Datagrams are received one at a time, whatever comes: for comparisons.
    Always,
}

/// How many datagrams without a pause are a stream.
const STREAM: u32 = 8;
/// After how many packets that came alone a stream is over. The kernel is then told to put nothing
/// together any more; runs that it has put together already are received until as many packets have
/// come alone again.
const QUIET: u32 = 64;

/// Logs, once for each socket, that somebody on the network says that packets are too long for a
/// link there. Anybody can forge such a message, so it changes nothing but the log, which may tell
/// a reader why large messages are lost.
#[cold]
pub fn hint_of_narrow_path(told: &mut bool, mtu: u32) {
    if !std::mem::replace(told, true) {
        tracing::warn!(
            mtu,
            "a router says that a link to a peer takes no longer packets than that: if it is true, \
             set the MTU of this device's interface to it, and open the device anew"
        );
    }
}

impl Ids {
    fn begin(peer: SocketAddr) -> Self {
        match peer {
            SocketAddr::V4(_) => Self::Unknown { tries: 0 },
            SocketAddr::V6(_) => Self::None,
        }
    }
}

impl ReceiveMode {
    fn begin(run: u32) -> Self {
        if run > 1 { Self::Single { together: 0 } } else { Self::Always }
    }
}

impl Peer {
    /// Makes a peer of a socket that has just been connected. What the peer sends is checked as
    /// `sender` says.
    pub fn new(address: SocketAddr, socket: UdpSocket, sender: Sender, run: u32) -> Self {
        let (ids, mode) = (Ids::begin(address), ReceiveMode::begin(run));
        Self {
            address,
            socket,
            sender,
            ids,
            mode,
            run,
            used: 0,
            connected: false,
            narrow: false,
            class: 0,
        }
    }

    /// Hands the socket over to another peer, to which it has been connected.
    pub fn reassign(&mut self, address: SocketAddr, sender: Sender, run: u32, used: u64) {
        (self.address, self.sender, self.run, self.used) = (address, sender, run, used);
        (self.ids, self.mode) = (Ids::begin(address), ReceiveMode::begin(run));
        self.narrow = false;
    }

    /// Returns the identification of the next frame, which over IPv6 may be any, and how many
    /// packets the frame may have. `None` if nothing can be sent by this socket at present.
    /// `headers` are those of the frame's first packet.
    #[inline]
    pub fn sends(&mut self, headers: &Headers) -> Option<(IpId, u32)> {
        if !self.connected {
            self.connected = Traffic::of(headers) == Traffic::Connection;
        }
        match self.ids {
            Ids::None => Some((IpId(0), self.run)),
            Ids::Next(id) => Some((id, self.run)),
            _ => None,
        }
    }

    /// Records that a frame has left, which is the device's frame of that number.
    #[inline]
    pub fn sent(&mut self, number: u64) {
        self.used = number;
        if let Ids::Next(IpId(id)) = &mut self.ids {
            *id = id.wrapping_add(1);
        }
    }

    /// Records that a frame has not left, whether or not the kernel has counted it. With `uncut`,
    /// the frame was a run that the system does not cut.
    pub fn failed(&mut self, uncut: bool) {
        if let Ids::Next(_) = self.ids {
            self.ids = Ids::Unknown { tries: 0 };
        }
        if uncut {
            self.run = 1;
        }
    }

    /// Learns the next identification, if it must be learnt. Other reports of the kernel are
    /// handled as [`read_reports`](Self::read_reports) does.
    pub fn learn(&mut self, closed: &mut ClosedPorts) -> Learnt {
        if let Ids::Unknown { tries } = self.ids {
            self.ids = match self.socket.send_shown() {
                Ok(()) => Ids::Asked { looks: 0 },
                Err(_) if tries < TRIES => Ids::Unknown { tries: tries + 1 },
                Err(_) => Ids::Hidden { by_system: false },
            };
        }
        self.read_reports(closed);
        match self.ids {
            Ids::Asked { looks } if looks < LOOKS => self.ids = Ids::Asked { looks: looks + 1 },
            Ids::Asked { .. } => self.ids = Ids::Hidden { by_system: false },
            _ => {}
        }
        match self.ids {
            Ids::Unknown { .. } | Ids::Asked { .. } => Learnt::Later,
            Ids::Hidden { by_system: true } => Learnt::Never,
            _ => Learnt::Enough,
        }
    }

    /// Reads what the kernel reports of this socket. Messages that the peer's port is closed are
    /// put into `closed`.
    pub fn read_reports(&mut self, closed: &mut ClosedPorts) {
        // All reports are read, but not without end.
        for report in (0..REPORTS).map_while(|_| self.socket.report()) {
            self.ids = match (report, self.ids) {
                (Report::Sent(Some(id)), Ids::Asked { .. }) => Ids::Next(IpId(id.wrapping_add(1))),
                (Report::Sent(None), Ids::Asked { .. }) => Ids::Hidden { by_system: true },
                (Report::TooLong { mtu, here: false }, ids) => {
                    hint_of_narrow_path(&mut self.narrow, mtu);
                    ids
                }
                (Report::Closed { at, quoted }, ids) => {
                    closed.add(ClosedPort { at, quoted });
                    ids
                }
                (_, ids) => ids,
            };
        }
    }

    /// Receives what has come into `buffer`, hands its packets to `inbox`, and returns its length.
    #[inline]
    pub fn receive(
        &mut self,
        opener: &mut Opener,
        buffer: &mut [u8],
        (wall, clock): (&mut WallClock, &Clock),
        inbox: &mut impl Inbox,
    ) -> io::Result<usize> {
        let (len, how, at) = match self.mode {
            ReceiveMode::Single { together } => {
                let received = self.socket.receive_one(buffer);
                self.judge_single(together, received.is_ok());
                (received?, (None, false), clock.now())
            }
            ReceiveMode::Runs { alone, paused } => {
                let received = self.socket.receive(buffer, false);
                self.judge_runs(alone, paused, received.as_ref().ok());
                let Datagrams { len, segment, stamp, marked, .. } = received?;
                (len, (segment, marked), wall.time_of(stamp, clock))
            }
            ReceiveMode::Always => (self.socket.receive_one(buffer)?, (None, false), clock.now()),
        };
        inbox.arrived(at);
        self.sender.deliver(opener, &buffer[..len], how, inbox);
        Ok(len)
    }

    /// Decides, after a look for one datagram, how the socket receives next.
    #[inline]
    fn judge_single(&mut self, together: u32, came: bool) {
        match (came, together) {
            (true, STREAM..) => self.put_together(true),
            (true, _) => self.mode = ReceiveMode::Single { together: together + 1 },
            (false, 0) => {}
            (false, _) => self.mode = ReceiveMode::Single { together: 0 },
        }
    }

    /// Decides, after a look for runs, how the socket receives next.
    #[inline]
    fn judge_runs(&mut self, alone: u32, paused: bool, came: Option<&Datagrams>) {
        match came {
            None => self.mode = ReceiveMode::Runs { alone, paused: true },
            Some(Datagrams { segment: Some(_), .. }) if alone >= QUIET => self.put_together(true),
            Some(Datagrams { segment: Some(_), .. }) => {
                self.mode = ReceiveMode::Runs { alone: 0, paused: false };
            }
            Some(_) if !paused => {}
            Some(_) => self.came_alone(alone + 1),
        }
    }

    fn came_alone(&mut self, alone: u32) {
        match alone {
            QUIET => self.put_together(false),
            alone if alone == 2 * QUIET => self.mode = ReceiveMode::Single { together: 0 },
            alone => self.mode = ReceiveMode::Runs { alone, paused: false },
        }
    }

    #[cold]
    fn put_together(&mut self, together: bool) {
        // The kernel takes a while for each stamp, so only streams are stamped.
        let _ = self.socket.stamp(together);
        if self.socket.put_together(together).is_ok() {
            let alone = if together { 0 } else { QUIET };
            self.mode = ReceiveMode::Runs { alone, paused: false };
        }
    }
}
