//! A station's interface: packets into frames, and frames into packets.

use std::collections::VecDeque;

use doorbell_core::encap::{Full, Opener, Path, PathId, Run, Version};
use doorbell_core::nic::{Flow, Inbox, Outbox};
use doorbell_core::payload::Payload;
use doorbell_core::wire::{EtherType, Ethernet, Headers, IpId};

use crate::ways::{mac, number_of, way};

/// EtherTypes that IEEE 802 leaves to local experiments: how far a lossless peer has come, and that
/// it has left.
const PROGRESS: EtherType = EtherType(0x88B5);
const GONE: EtherType = EtherType(0x88B6);

/// The longest frame that a port encodes.
const LONGEST: usize = 4096 + 128;

/// What encodes packets for the network, and hears what comes of it. It does not know the network:
/// frames wait here for whoever does.
pub(crate) struct Port {
    own: usize,
    version: Version,
    lossless: bool,
    /// How many frames may wait, and, where none is lost, be on their way to one peer.
    pub room: usize,
    pub ahead: u64,
    pub frames: VecDeque<Vec<u8>>,
    next_id: u16,
    opener: Opener,
    /// Those on a lossless network, by their number: as far as one of them was heard of.
    peers: Vec<Peer>,
}

/// What is known of a peer that nothing is lost to.
struct Peer {
    /// The way there: the NIC's own path is a mere link.
    way: Path,
    pushed: u64,
    delivered: u64,
    /// Packets taken from it, and how many of them it has been told of.
    taken: u64,
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
            let way = way(version, own, self.peers.len());
            self.peers.push(Peer { way, pushed: 0, delivered: 0, taken: 0, told: 0 });
        }
        &mut self.peers[number]
    }

    /// Takes a frame in. Whether it was for this port: a switch that does not know an address
    /// floods.
    pub(crate) fn arrive(&mut self, frame: &[u8], inbox: &mut impl Inbox) -> bool {
        let Ok((ethernet, rest)) = Ethernet::parse(frame) else { return false };
        if ethernet.destination != mac(self.own) {
            return false;
        }
        if !self.lossless {
            inbox.frame(&mut self.opener, frame, None);
            return true;
        }
        let from = number_of(ethernet.source);
        let link = PathId(from as u32);
        match (ethernet.ethertype, rest.first_chunk()) {
            (PROGRESS, Some(taken)) => self.peer(from).delivered = u64::from_be_bytes(*taken),
            (GONE, _) => {
                // Whoever comes there next begins to count anew.
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

    /// Tells peers how many of their packets were taken, and answered for.
    pub(crate) fn settle(&mut self, owes: impl Fn(PathId) -> bool, mut send: impl FnMut(Vec<u8>)) {
        for (number, peer) in self.peers.iter_mut().enumerate() {
            if peer.told != peer.taken && !owes(PathId(number as u32)) {
                peer.told = peer.taken;
                send(note(PROGRESS, self.own, number, &peer.taken.to_be_bytes()));
            }
        }
    }

    /// Tells those that packets went to, or came from, that nothing will any more.
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

/// A frame with one packet.
fn encode(path: &Path, id: IpId, headers: Headers, payload: impl Payload) -> Result<Vec<u8>, Full> {
    let mut frame = vec![0; LONGEST];
    let mut run = Run::begin(path, &mut frame, id, 1);
    run.push(path, &mut frame, headers, payload)?;
    let sealed = run.seal(&mut frame);
    frame.truncate(sealed.len);
    Ok(frame)
}

/// Hands on the packets of a frame as what a link brought.
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

/// What one lossless station tells another beside packets.
fn note(ethertype: EtherType, from: usize, to: usize, content: &[u8]) -> Vec<u8> {
    let ethernet = Ethernet { destination: mac(to), source: mac(from), ethertype };
    let mut frame = ethernet.to_bytes().to_vec();
    frame.extend_from_slice(content);
    frame
}
