//! Paths: the outer headers to one peer, made once.

use std::cell::Cell;

use crate::cipher::Keys;
use crate::fields::{low16, low32, no_room};
use crate::wire::{
    Crc, Ethernet, Grh, InetChecksum, IpId, Ipv4, Ipv6, Udp, UdpPort, fold, sum_words,
};

use super::crc_prefix::CrcPrefix;
use super::icrc::{STEADY_BTH, steady_bth};
use super::outer::{Outer, Version, with_id};

/// The number of a path, which its owner chooses. Two packets may share a frame if their paths have
/// the same number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PathId(pub u32);

/// The way to one peer: outer headers, ready to be copied to the front of a frame; or none, for a
/// [link](Path::link).
#[derive(Debug)]
pub struct Path {
    id: PathId,
    /// The UDP source port, by which routers choose among routes; zero where there is none.
    label: UdpPort,
    /// The outer headers, in a box because a queue pair on a link has none.
    around: Option<Box<OuterTemplate>>,
}

/// The parts of a frame's checksums that do not depend on its contents.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct HeaderSums {
    /// The sum of the template's IPv4 header, not folded.
    ip: u32,
    /// The sum of the pseudo-header's addresses and protocol, with which the UDP checksum begins.
    pseudo: u32,
}

/// The outer headers of a path, prepared for copying.
#[derive(Debug)]
struct OuterTemplate {
    outer: Outer,
    /// The headers as bytes, with every length, identification and checksum zero.
    template: [u8; Outer::MAX_LEN],
    sums: HeaderSums,
    /// The remembered CRC of the kind of packet that was sent last. With `older`, it serves the two
    /// kinds that most paths see: data and acknowledgements.
    recent: Cell<CrcPrefix>,
    older: Cell<CrcPrefix>,
    /// The keys of the connection, if its packets are encrypted.
    keys: Option<Box<Keys>>,
}

impl Path {
    /// Makes a path with these outer headers. Lengths, identification and checksums in them are
    /// ignored.
    pub fn new(id: PathId, outer: Outer) -> Self {
        let (outer, pseudo) = match outer {
            Outer::V1(..) => (outer, 0),
            Outer::V2Ipv4(e, ip, udp) => {
                let ip = Ipv4 { total_length: 0, id: IpId(0), ..ip };
                let addresses =
                    sum_words(&ip.source.octets()) + sum_words(&ip.destination.octets());
                let sum = addresses + u32::from(ip.protocol.0);
                (Outer::V2Ipv4(e, ip, Udp { length: 0, checksum: InetChecksum(0), ..udp }), sum)
            }
            Outer::V2Ipv6(e, ip, udp) => {
                let ip = Ipv6 { payload_length: 0, ..ip };
                let addresses = sum_words(&ip.source.0) + sum_words(&ip.destination.0);
                let sum = addresses + u32::from(ip.next_header.0);
                (Outer::V2Ipv6(e, ip, Udp { length: 0, checksum: InetChecksum(0), ..udp }), sum)
            }
        };
        let mut template = outer.to_bytes();
        let mut sums = HeaderSums { ip: 0, pseudo };
        if outer.version() == Version::V2Ipv4 {
            let (_, behind) = template.split_at_mut(Ethernet::LEN);
            if let Some(ip) = behind.first_chunk_mut::<{ Ipv4::LEN }>() {
                (ip[10], ip[11]) = (0, 0);
                sums.ip = sum_words(ip);
            }
        }
        let nothing = Cell::new(CrcPrefix::NONE);
        let (recent, older) = (nothing.clone(), nothing);
        let around = OuterTemplate { outer, template, sums, recent, older, keys: None };
        Self { id, label: outer.label().unwrap_or(UdpPort(0)), around: Some(Box::new(around)) }
    }

    /// Makes a path that is a link of its own, as lossless devices have them. Its packets have no
    /// outer headers, and the number is all that identifies the path.
    pub fn link(id: PathId) -> Self {
        Self { id, label: UdpPort(0), around: None }
    }

    /// Returns another path along the same way, whose packets are not encrypted.
    #[must_use]
    pub fn in_the_clear(&self) -> Self {
        match &self.around {
            Some(around) => Self::new(self.id, around.outer),
            None => Self::link(self.id),
        }
    }

    /// Returns the path with headers which say that switches may mark the packets. A link has none.
    #[must_use]
    pub fn ecn_capable(self) -> Self {
        match self.around {
            Some(around) => {
                let mut path = Self::new(self.id, around.outer.ecn_capable());
                if let Some(capable) = &mut path.around {
                    capable.keys = around.keys;
                }
                path
            }
            None => self,
        }
    }

    /// Returns the path with packets that are encrypted with these keys from now on. A link, whose
    /// packets have no outer headers, can't have that: then there is none.
    #[must_use]
    pub fn encrypted(mut self, keys: Keys) -> Option<Self> {
        self.around.as_mut()?.keys = Some(Box::new(keys));
        Some(self)
    }

    /// Returns the keys, if packets are encrypted.
    #[inline(always)]
    pub(super) fn keys(&self) -> Option<&Keys> {
        self.around.as_ref().and_then(|around| around.keys.as_deref())
    }

    /// Takes the keys, if packets are encrypted, for another path of the same connection.
    pub(crate) fn take_keys(&mut self) -> Option<Box<Keys>> {
        self.around.as_mut().and_then(|around| around.keys.take())
    }

    /// Returns the path with the keys of another path of the same connection. `None` for a link, which
    /// can't have keys.
    pub(crate) fn with_keys(mut self, keys: Option<Box<Keys>>) -> Option<Self> {
        if keys.is_some() {
            self.around.as_mut()?.keys = keys;
        }
        Some(self)
    }

    /// Returns the keys, if packets are encrypted.
    #[inline]
    pub fn keys_mut(&mut self) -> Option<&mut Keys> {
        self.around.as_mut().and_then(|around| around.keys.as_deref_mut())
    }

    /// Has packets name another UDP source port from now on. That is possible where the port names
    /// nobody, as with RoCE's own destination port.
    pub(crate) fn relabel(&mut self, label: UdpPort) {
        let Some(around) = self.around.as_mut().filter(|around| around.outer.label().is_some())
        else {
            return;
        };
        (self.label, around.outer) = (label, around.outer.labelled(label));
        let udp = around.outer.len() - Udp::LEN;
        let source = around.template.get_mut(udp..).and_then(|udp| udp.first_chunk_mut());
        if let Some(source) = source {
            *source = label.0.to_be_bytes();
        }
        around.recent.set(CrcPrefix::NONE);
        around.older.set(CrcPrefix::NONE);
    }

    /// The UDP source port, by which routers choose among routes; zero where there is none.
    #[inline]
    pub(super) fn label(&self) -> UdpPort {
        self.label
    }

    /// Whether the UDP source port may be any.
    pub(crate) fn has_label(&self) -> bool {
        self.around.as_ref().is_some_and(|around| around.outer.label().is_some())
    }

    /// Whether switches may mark the packets.
    pub(crate) fn is_ecn_capable(&self) -> bool {
        self.around.as_ref().is_some_and(|around| around.outer.is_ecn_capable())
    }

    /// Returns the number of the path.
    #[inline]
    pub fn id(&self) -> PathId {
        self.id
    }

    /// Returns the outer headers. For a link, these are placeholders.
    #[inline]
    pub fn outer(&self) -> &Outer {
        self.around.as_ref().map_or(&Outer::NOWHERE, |around| &around.outer)
    }

    /// Copies the headers to the front of a frame, which must be long enough.
    #[inline]
    pub(super) fn put_template(&self, frame: &mut [u8]) {
        // The lengths are constants, so copying is a few instructions and no call.
        const V1: usize = Ethernet::LEN + Grh::LEN;
        const V2_IPV4: usize = Ethernet::LEN + Ipv4::LEN + Udp::LEN;
        let Some(around) = &self.around else { return put_nowhere(frame) };
        let template = &around.template;
        match around.outer.version() {
            Version::V1 => put_front::<V1>(frame, template),
            Version::V2Ipv4 => put_front::<V2_IPV4>(frame, template),
            Version::V2Ipv6 => put_front::<{ Outer::MAX_LEN }>(frame, template),
        }
    }

    #[inline]
    pub(super) fn sums(&self) -> HeaderSums {
        self.around.as_ref().map_or(HeaderSums::default(), |around| around.sums)
    }

    /// Returns the CRC of a packet of `transport` bytes up to the first eight bytes of its BTH.
    #[inline(always)]
    pub(super) fn crc(&self, transport: usize, id: IpId, bth: [u8; STEADY_BTH]) -> Crc {
        let bth = steady_bth(bth);
        match &self.around {
            Some(around) => around.crc(transport, id, bth),
            None => crc_nowhere(transport, bth),
        }
    }
}

/// Copies the first `N` bytes of a template to the front of a frame.
#[inline(always)]
fn put_front<const N: usize>(frame: &mut [u8], template: &[u8; Outer::MAX_LEN]) {
    const { assert!(N <= Outer::MAX_LEN) }
    match (frame.first_chunk_mut::<N>(), template.first_chunk::<N>()) {
        (Some(front), Some(headers)) => *front = *headers,
        _ => no_room(),
    }
}

/// Copies placeholder headers to a frame. This function and the next are out of line, since packets
/// on a link have no outer headers.
#[cold]
fn put_nowhere(frame: &mut [u8]) {
    put_front::<{ Outer::NOWHERE.len() }>(frame, &Outer::NOWHERE.to_bytes());
}

#[cold]
fn crc_nowhere(transport: usize, bth: u64) -> Crc {
    CrcPrefix::begin(&Outer::NOWHERE, transport, bth).crc
}

impl OuterTemplate {
    #[inline(always)]
    fn crc(&self, transport: usize, id: IpId, bth: u64) -> Crc {
        let mut recent = self.recent.get();
        if !recent.fits(transport, bth) {
            let older = self.older.replace(recent);
            recent = match older.fits(transport, bth) {
                true => older,
                false => CrcPrefix::begin(&self.outer, transport, bth),
            };
            self.recent.set(recent);
        }
        with_id(recent.crc, self.outer.id().map(|_| id))
    }
}

/// Writes the lengths and checksums of the outer headers, which depend on the frame's contents.
#[inline]
pub(super) fn seal(
    frame: &mut [u8],
    version: Version,
    sums: HeaderSums,
    id: IpId,
    segmented: bool,
) {
    let behind = frame.len() - Ethernet::LEN;
    let put = |frame: &mut [u8], at: usize, value: u16| match frame
        .get_mut(Ethernet::LEN + at..)
        .and_then(|behind| behind.first_chunk_mut())
    {
        Some(field) => *field = value.to_be_bytes(),
        None => no_room(),
    };
    let udp_at = match version {
        Version::V1 => return put(frame, 4, low16(behind - Ipv6::LEN)),
        Version::V2Ipv4 => {
            put(frame, 2, low16(behind));
            put(frame, 4, id.0);
            put(frame, 10, !fold(sums.ip + low32(behind) + u32::from(id.0)));
            Ipv4::LEN
        }
        Version::V2Ipv6 => {
            put(frame, 4, low16(behind - Ipv6::LEN));
            Ipv6::LEN
        }
    };
    let datagram = low16(behind - udp_at);
    put(frame, udp_at + 4, datagram);
    // A single packet has no UDP checksum, since its ICRC protects more. Segmentation offload
    // requires a checksum, and expects the sum of the pseudo-header in its place.
    if segmented {
        put(frame, udp_at + 6, fold(sums.pseudo + u32::from(datagram)));
    }
}
