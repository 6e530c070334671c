//! A station's interface: packets into frames, and frames into packets.

use std::collections::VecDeque;

use doorbell_core::encap::{Full, Opener, Path, PathId, Version, alone, frame_len};
use doorbell_core::nic::{Flow, Inbox, Outbox, receive_frame};
use doorbell_core::payload::Payload;
use doorbell_core::wire::{EtherType, Ethernet, Headers, IpId};

use crate::station::addressing::{mac, number_of, path_between};

/// The EtherTypes of notices on a lossless network, from those that IEEE 802 leaves to local
/// experiments: how many packets a peer has taken, and that the peer has left.
const PROGRESS: EtherType = EtherType(0x88B5);
const GONE: EtherType = EtherType(0x88B6);

/// The interface of a station: it encodes packets as frames for the network, and decodes frames.
/// Frames wait here for the network, which the port does not know.
pub(crate) struct Port {
    own: usize,
    version: Version,
    lossless: bool,
    /// The most frames that may wait here.
    pub room: usize,
    /// The most packets that may be on their way to one peer of a lossless network.
    pub ahead: u64,
    pub frames: VecDeque<Vec<u8>>,
    next_id: u16,
    opener: Opener,
    /// The peers on a lossless network, by their number: up to the highest number that was used.
    peers: Vec<Peer>,
}

/// The counts of packets to and from a peer on a lossless network.
struct Peer {
    /// The path to the peer. The NIC's own path is a mere link.
    way: Path,
    pushed: u64,
    delivered: u64,
    /// The packets that were taken from the peer.
    taken: u64,
    /// The count of taken packets that the peer has been told.
    told: u64,
}

impl Port {
    pub(crate) fn new(own: usize, version: Version, lossless: bool) -> Self {
        Self {
            own,
            version,
            lossless,
            room: usize::MAX,
            ahead: u64::MAX,
            frames: VecDeque::new(),
            next_id: 0,
            opener: Opener::default(),
            peers: Vec::new(),
        }
    }

    fn peer(&mut self, number: usize) -> &mut Peer {
        let (version, own) = (self.version, self.own);
        while self.peers.len() <= number {
            let way = path_between(version, own, self.peers.len());
            self.peers.push(Peer { way, pushed: 0, delivered: 0, taken: 0, told: 0 });
        }
        &mut self.peers[number]
    }

    /// Hands a received frame to the NIC. Returns whether the frame was for this port, since a
    /// switch floods frames to addresses that it does not know.
    pub(crate) fn arrive(&mut self, frame: &[u8], inbox: &mut impl Inbox) -> bool {
        let Ok((ethernet, rest)) = Ethernet::parse(frame) else { return false };
        if ethernet.destination != mac(self.own) {
            return false;
        }
        if !self.lossless {
            receive_frame(inbox, &mut self.opener, frame, None);
            return true;
        }
        let from = number_of(ethernet.source);
        let link = PathId(from as u32);
        match (ethernet.ethertype, rest.first_chunk()) {
            (PROGRESS, Some(taken)) => self.peer(from).delivered = u64::from_be_bytes(*taken),
            (GONE, _) => {
                // The counts begin anew with the next station of that number.
                let peer = self.peer(from);
                (peer.pushed, peer.delivered, peer.taken, peer.told) = (0, 0, 0, 0);
                inbox.gone(link);
            }
            _ => {
                by_link(inbox, &mut self.opener, frame, link);
                self.peer(from).taken += 1;
            }
        }
        true
    }

    /// Tells peers how many of their packets were taken and answered.
    pub(crate) fn settle(&mut self, owes: impl Fn(PathId) -> bool, mut send: impl FnMut(Vec<u8>)) {
        for (number, peer) in self.peers.iter_mut().enumerate() {
            if peer.told != peer.taken && !owes(PathId(number as u32)) {
                peer.told = peer.taken;
                send(note(PROGRESS, self.own, number, &peer.taken.to_be_bytes()));
            }
        }
    }

    /// Tells all peers to which packets went, or from which packets came, that this station leaves.
    pub(crate) fn leave(&mut self, mut send: impl FnMut(Vec<u8>)) {
        for (number, peer) in self.peers.iter().enumerate() {
            if peer.pushed + peer.taken > 0 {
                send(note(GONE, self.own, number, &[]));
            }
        }
    }
}

impl Outbox for Port {
    fn push(&mut self, path: &Path, headers: Headers, payload: impl Payload) -> Result<u64, Full> {
        if self.frames.len() >= self.room {
            return Err(Full);
        }
        let id = IpId(self.next_id);
        let (frame, ticket) = if self.lossless {
            let (number, ahead) = (path.id().0 as usize, self.ahead);
            let peer = self.peer(number);
            if peer.pushed.saturating_sub(peer.delivered) >= ahead {
                return Err(Full);
            }
            let frame = encode(&peer.way, id, headers, payload)?;
            peer.pushed += 1;
            (frame, peer.pushed)
        } else {
            (encode(path, id, headers, payload)?, 0)
        };
        self.next_id = self.next_id.wrapping_add(1);
        self.frames.push_back(frame);
        Ok(ticket)
    }

    fn flush(&mut self) {}

    fn delivered(&mut self, path: PathId) -> u64 {
        self.peer(path.0 as usize).delivered
    }
}

/// Encodes a frame with one packet.
fn encode(path: &Path, id: IpId, headers: Headers, payload: impl Payload) -> Result<Vec<u8>, Full> {
    let mut frame = vec![0; frame_len(path, &headers, payload)];
    alone(path, &mut frame, id, headers, payload)?;
    Ok(frame)
}

/// Hands the packets of a frame to the NIC as packets of a link.
fn by_link(inbox: &mut impl Inbox, opener: &mut Opener, frame: &[u8], link: PathId) {
    let arrival = match opener.open(frame, None) {
        Ok(arrival) => arrival,
        Err(why) => return inbox.malformed(why),
    };
    for packet in arrival {
        match packet {
            Ok(packet) => inbox.packet(Flow::Link(link), &packet),
            Err(why) => inbox.malformed(why),
        }
    }
}

/// Makes a notice from one station to another on a lossless network.
fn note(ethertype: EtherType, from: usize, to: usize, content: &[u8]) -> Vec<u8> {
    let ethernet = Ethernet { destination: mac(to), source: mac(from), ethertype };
    let mut frame = ethernet.to_bytes().to_vec();
    frame.extend_from_slice(content);
    frame
}
