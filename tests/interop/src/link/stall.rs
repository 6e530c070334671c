//! Telling from the frames of the link that the guest's kernel has stopped in the middle of a
//! message.
//!
//! The sending side of the kernel's RoCE driver pauses when too many of its packets are
//! unacknowledged or unsent, and can lose the wake-up that ends the pause. A sender that has lost
//! its wake-up shows itself on the wire: every packet that it sent was acknowledged, no other
//! packet of the message follows, and the same kernel still answers requests on that connection.
//! [`Sender`] looks for exactly these signs.

use std::fmt;
use std::time::{Duration, Instant};

use doorbell_core::encap::Outer;
use doorbell_core::wire::{
    Aeth, Extensions, Gid, Headers, Opcode, Position, Psn, Qpn, Service, Syndrome, UdpPort,
};

use super::way::Way;

/// The time for which the guest must have sent nothing of a message that it is said to have
/// stopped.
///
/// The kernel sends again what is lost after some 70 ms, so a sender that has anything left to do
/// is not silent for ten seconds. Doorbell asks an idle peer after 15 seconds whether it is there:
/// the guest's answer to that question is what shows so long a silence.
const SILENCE: Duration = Duration::from_secs(10);

/// A message over a reliable connection that the guest's kernel has stopped sending in its middle,
/// without any cause on the wire.
///
/// Everything that was sent of the message was acknowledged, with consecutive packet sequence
/// numbers (PSNs), and nothing was lost or changed on the link meanwhile. Displayed, a stall is a
/// sentence for whoever reads what a test has printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stall {
    /// The host to which the message was sent.
    pub peer: Gid,
    /// The queue pair to which the message was sent.
    pub destination: Qpn,
    /// The PSN of the first packet of the message.
    pub first: Psn,
    /// The PSN of the last packet that was sent, which is not the last of the message.
    pub last: Psn,
    /// How long after that packet the guest still answered requests of its peer.
    pub silence: Duration,
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { peer, destination, first, last, silence } = self;
        let peer = peer.to_ipv4().map_or_else(|| peer.to_string(), |ip| ip.to_string());
        let count = last.distance_from(*first) + 1;
        write!(
            f,
            "the guest's kernel has stopped in the middle of a message to queue pair {destination} \
             of {peer}: all {count} packets that it sent were acknowledged, the last of them has \
             PSN {last}, and {silence:.1?} later it sent no more but answered its peer"
        )
    }
}

/// The guest's sending side, as far as the frames of the link tell: the message over a reliable
/// connection that is being sent.
///
/// The memory of a sender is bounded: only the message of the guest's latest request is kept.
#[derive(Default, Debug)]
pub struct Sender {
    message: Option<Message>,
}

/// A message of several packets, all that were sent having followed one another by their PSNs.
#[derive(Debug)]
struct Message {
    peer: Gid,
    destination: Qpn,
    first: Psn,
    last: Psn,
    /// When the packet `last` was sent.
    sent: Instant,
    /// Whether the peer has acknowledged the packet `last`.
    acknowledged: bool,
    /// How long after the packet `last` the guest has most recently answered the peer, having got
    /// the acknowledgement.
    answered: Duration,
    /// How many frames of the link had come to harm before the message began.
    harmed: u64,
}

impl Sender {
    /// Takes in a frame as its sender sent it. `harmed` is how many frames of the link, either way,
    /// have come to harm so far. Frames other than those of reliable connections are passed over.
    pub fn see(&mut self, way: Way, frame: &[u8], now: Instant, harmed: u64) {
        let Some(packet) = Packet::read(frame) else { return };
        match (way, packet.headers.bth.opcode().info().is_response()) {
            (Way::FromGuest, false) => self.request(&packet, now, harmed),
            (Way::FromGuest, true) => self.answer(&packet, now),
            (Way::ToGuest, true) => self.response(&packet),
            (Way::ToGuest, false) => {}
        }
    }

    /// The message that the guest has stopped sending, if there are all signs of that. `harmed` is
    /// how many frames of the link, either way, have come to harm so far: a message during which
    /// any did is not told of.
    pub fn stall(&self, harmed: u64) -> Option<Stall> {
        let message = self.message.as_ref()?;
        let &Message { peer, destination, first, last, answered: silence, .. } = message;
        // Only a message of which all that was sent is acknowledged has such an answer.
        let stopped = silence >= SILENCE && message.harmed == harmed;
        stopped.then_some(Stall { peer, destination, first, last, silence })
    }

    /// Takes in a request packet of the guest. A packet in the middle of a message that does not
    /// have the next PSN means that one was lost or is sent again: the message is not followed
    /// further.
    fn request(&mut self, packet: &Packet<'_>, now: Instant, harmed: u64) {
        let (bth, peer) = (&packet.headers.bth, packet.outer.gids().1);
        let (destination, psn) = (bth.destination(), bth.psn());
        let before = self.message.take();
        let (first, harmed) = match (bth.opcode().info().position, before) {
            (Position::First, _) => (psn, harmed),
            (Position::Middle, Some(message))
                if (message.peer, message.destination) == (peer, destination)
                    && message.last.add(1) == psn =>
            {
                (message.first, message.harmed)
            }
            (Position::Middle | Position::Last | Position::Only, _) => return,
        };
        self.message = Some(Message {
            peer,
            destination,
            first,
            last: psn,
            sent: now,
            acknowledged: false,
            answered: Duration::ZERO,
            harmed,
        });
    }

    /// Takes in an answer of the guest to a request of its peer. Only after the last packet was
    /// acknowledged does an answer show that the guest has nothing to wait for.
    fn answer(&mut self, packet: &Packet<'_>, now: Instant) {
        let to = (packet.outer.gids().1, packet.headers.bth.destination());
        if let Some(message) = &mut self.message
            && (message.peer, message.destination) == to
            && message.acknowledged
        {
            message.answered = now.saturating_duration_since(message.sent);
        }
    }

    /// Takes in a response of the peer to the guest. A response that is anything but a plain
    /// acknowledgement with a right ICRC may be why the guest stops: the message is not followed
    /// further.
    fn response(&mut self, packet: &Packet<'_>) {
        let Some(message) = &mut self.message else { return };
        if message.peer != packet.outer.gids().0 {
            return;
        }
        match packet.acknowledged() {
            Some(psn) => message.acknowledged |= psn == message.last,
            None => self.message = None,
        }
    }
}

/// A packet of a reliable connection.
struct Packet<'f> {
    outer: Outer,
    headers: Headers,
    /// The packet with its ICRC.
    transport: &'f [u8],
}

impl<'f> Packet<'f> {
    /// Reads a frame; returns nothing for frames that carry no packet of a reliable connection over
    /// RoCE v2.
    fn read(frame: &'f [u8]) -> Option<Self> {
        let (outer, transport) = Outer::parse(frame).ok()?;
        let (Outer::V2Ipv4(.., udp) | Outer::V2Ipv6(.., udp)) = &outer else { return None };
        if udp.destination != UdpPort::ROCE_V2 {
            return None;
        }
        let (headers, _) = Headers::parse(transport).ok()?;
        let reliable = headers.bth.opcode().info().service == Service::Rc;
        reliable.then_some(Self { outer, headers, transport })
    }

    /// The PSN that a plain acknowledgement with a right ICRC acknowledges; nothing for other
    /// packets.
    fn acknowledged(&self) -> Option<Psn> {
        let bth = &self.headers.bth;
        let plain = matches!(
            self.headers.extensions,
            Extensions::Aeth(Aeth { syndrome: Syndrome::ACK, .. })
        );
        let (packet, icrc) = self.transport.split_last_chunk()?;
        let right = self.outer.icrc(packet) == u32::from_le_bytes(*icrc);
        (bth.opcode() == Opcode::RcAcknowledge && plain && right).then(|| bth.psn())
    }
}

#[cfg(test)]
mod tests;
