//! Peers that are sent to often, each with a socket that the kernel has connected to it.
//!
//! What such a socket sends costs no look for a route, which is a sixth of a small message's time,
//! and what it receives names nobody. But over IPv4 the kernel numbers what it sends, from a random
//! number on; each frame that leaves it counts one, and a run counts up from its frame's. Since the
//! ICRC covers these numbers the first one must be learnt, and is from an empty datagram that the
//! kernel shows as it has sent it. Until then, and where it does not, the peer is sent to from the
//! socket that all share, whose numbers are zero.

use std::io;
use std::net::SocketAddr;

use doorbell_core::encap::Opener;
use doorbell_core::nic::Inbox;
use doorbell_core::wire::{Headers, IpId};

use super::often::Traffic;
use super::sender::Sender;
use crate::sys::udp::{Note, Received, UdpSocket};

/// A peer that is sent to often.
pub struct Peer {
    pub address: SocketAddr,
    pub socket: UdpSocket,
    sender: Sender,
    ids: Ids,
    intake: Intake,
    /// How many packets share a frame at most.
    pub run: u32,
    /// Which of the device's frames was the last to this peer.
    pub used: u64,
    /// Whether packets of a connection have gone to this peer, and not only datagrams.
    pub connected: bool,
    /// Whether the log says already that a router calls the way to this peer narrow.
    narrow: bool,
}

/// The identifications of what is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ids {
    /// There are none: IPv6.
    None,
    /// The next is known.
    Next(IpId),
    /// It is not known: something failed, perhaps after the kernel had counted it.
    Unknown { tries: u32 },
    /// It was asked for, and the answer looked for so many times.
    Asked { looks: u32 },
    /// The system does not show it, or not in time: the socket receives only.
    Hidden { by_system: bool },
}

/// A message that nobody is at a port, with the beginning of the datagram that it is about.
pub struct Closed {
    pub at: SocketAddr,
    pub quoted: Box<[u8]>,
}

/// Messages that ports are closed, of which the NIC has not been told. Of those that come beyond
/// that many, none is kept.
#[derive(Default)]
pub struct ClosedPorts(Vec<Closed>);

impl ClosedPorts {
    /// Keeps a message, if there is room.
    pub fn add(&mut self, closed: Closed) {
        if self.0.len() < NOTES {
            self.0.push(closed);
        }
    }

    /// Takes all messages.
    pub fn take(&mut self) -> Vec<Closed> {
        std::mem::take(&mut self.0)
    }
}

/// What became of learning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Learnt {
    /// All that there will be.
    Enough,
    /// The answer has not come.
    Later,
    /// The system gives none.
    Never,
}

/// How often the kernel is asked, and looked at for an answer.
const TRIES: u32 = 8;
const LOOKS: u32 = 1 << 16;
/// How many notes are read at once.
pub const NOTES: usize = 64;

/// How a socket is received from. Where runs come, they are received whole; where packets come one
/// at a time, to ask each whether it is a run would cost a twentieth of its time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Intake {
    /// One at a time, of which so many have come without a pause.
    Single { together: u32 },
    /// Runs, if there are any: so many packets came alone since the last, each after a pause.
    Runs { alone: u32, paused: bool },
    /// One at a time, whatever comes: to compare.
    Always,
}

/// So many at once are a stream.
const STREAM: u32 = 8;
/// So many alone are none. The kernel is then told to put nothing together any more; what it has
/// put together before is received while as many come again.
const QUIET: u32 = 64;

/// Logs, once for each socket, that somebody on the network says that packets are too long for a
/// link there. Anybody can forge such a message, so it changes nothing but the log: who finds that
/// large messages are lost may read why.
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

impl Intake {
    fn begin(run: u32) -> Self {
        if run > 1 { Self::Single { together: 0 } } else { Self::Always }
    }
}

impl Peer {
    /// A peer whose socket has just been connected, and which was heard as `sender` before.
    pub fn new(address: SocketAddr, socket: UdpSocket, sender: Sender, run: u32) -> Self {
        let (ids, intake) = (Ids::begin(address), Intake::begin(run));
        Self { address, socket, sender, ids, intake, run, used: 0, connected: false, narrow: false }
    }

    /// Has the socket be that of another peer, to which it has been connected.
    pub fn meet(&mut self, address: SocketAddr, sender: Sender, run: u32, used: u64) {
        (self.address, self.sender, self.run, self.used) = (address, sender, run, used);
        (self.ids, self.intake) = (Ids::begin(address), Intake::begin(run));
        self.narrow = false;
    }

    /// The identification of the next frame and how many packets it may have, if the peer can be
    /// sent to by this socket. Over IPv6, which has no identifications, any. `headers` are those of
    /// the frame's first packet.
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

    /// A frame has left.
    #[inline]
    pub fn sent(&mut self, number: u64) {
        self.used = number;
        if let Ids::Next(IpId(id)) = &mut self.ids {
            *id = id.wrapping_add(1);
        }
    }

    /// A frame has not left, and who knows whether it was counted; perhaps because it was a run
    /// that is not cut.
    pub fn failed(&mut self, uncut: bool) {
        if let Ids::Next(_) = self.ids {
            self.ids = Ids::Unknown { tries: 0 };
        }
        if uncut {
            self.run = 1;
        }
    }

    /// Learns the next identification, if it must be learnt. Leaves what else the kernel has noted
    /// as [`heed`](Self::heed) does.
    pub fn learn(&mut self, closed: &mut ClosedPorts) -> Learnt {
        if let Ids::Unknown { tries } = self.ids {
            self.ids = match self.socket.send_shown() {
                Ok(()) => Ids::Asked { looks: 0 },
                Err(_) if tries < TRIES => Ids::Unknown { tries: tries + 1 },
                Err(_) => Ids::Hidden { by_system: false },
            };
        }
        self.heed(closed);
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

    /// Reads what the kernel has noted of this socket. Messages that the peer's port is closed are
    /// left in `closed`.
    pub fn heed(&mut self, closed: &mut ClosedPorts) {
        // As many as can be are read, but not for ever.
        for note in (0..NOTES).map_while(|_| self.socket.note()) {
            self.ids = match (note, self.ids) {
                (Note::Sent(Some(id)), Ids::Asked { .. }) => Ids::Next(IpId(id.wrapping_add(1))),
                (Note::Sent(None), Ids::Asked { .. }) => Ids::Hidden { by_system: true },
                (Note::TooLong { mtu, here: false }, ids) => {
                    hint_of_narrow_path(&mut self.narrow, mtu);
                    ids
                }
                (Note::Closed { at, quoted }, ids) => {
                    closed.add(Closed { at, quoted });
                    ids
                }
                (_, ids) => ids,
            };
        }
    }

    /// Receives what has come, if something has, into `buffer` and from there to `inbox`; its
    /// length.
    #[inline]
    pub fn receive(
        &mut self,
        opener: &mut Opener,
        buffer: &mut [u8],
        inbox: &mut impl Inbox,
    ) -> io::Result<usize> {
        let (received, segment) = match self.intake {
            Intake::Single { together } => {
                let received = self.socket.receive_one(buffer);
                self.judge_single(together, received.is_ok());
                (received?, None)
            }
            Intake::Runs { alone, paused } => {
                let received = self.socket.receive(buffer, false);
                self.judge_runs(alone, paused, received.as_ref().ok());
                received.map(|received| (received.len, received.segment))?
            }
            Intake::Always => (self.socket.receive_one(buffer)?, None),
        };
        self.sender.deliver(opener, &buffer[..received], segment, inbox);
        Ok(received)
    }

    #[inline]
    fn judge_single(&mut self, together: u32, came: bool) {
        match (came, together) {
            (true, STREAM..) => self.put_together(true),
            (true, _) => self.intake = Intake::Single { together: together + 1 },
            (false, 0) => {}
            (false, _) => self.intake = Intake::Single { together: 0 },
        }
    }

    #[inline]
    fn judge_runs(&mut self, alone: u32, paused: bool, came: Option<&Received>) {
        match came {
            None => self.intake = Intake::Runs { alone, paused: true },
            Some(Received { segment: Some(_), .. }) if alone >= QUIET => self.put_together(true),
            Some(Received { segment: Some(_), .. }) => {
                self.intake = Intake::Runs { alone: 0, paused: false };
            }
            Some(_) if !paused => {}
            Some(_) => self.came_alone(alone + 1),
        }
    }

    fn came_alone(&mut self, alone: u32) {
        match alone {
            QUIET => self.put_together(false),
            alone if alone == 2 * QUIET => self.intake = Intake::Single { together: 0 },
            alone => self.intake = Intake::Runs { alone, paused: false },
        }
    }

    #[cold]
    fn put_together(&mut self, together: bool) {
        if self.socket.put_together(together).is_ok() {
            let alone = if together { 0 } else { QUIET };
            self.intake = Intake::Runs { alone, paused: false };
        }
    }
}
