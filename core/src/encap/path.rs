//! The way to one peer: its outer headers, made once.

use std::cell::Cell;

use crate::fields::{low16, low32, no_room};
use crate::wire::{Crc, Ethernet, Grh, InetChecksum, IpId, Ipv4, Ipv6, Udp, fold, sum_words};

use super::outer::{Outer, Version, with_id};
use super::{Remembered, STEADY_BTH, steady_bth};

/// Which path it is, to those who keep them: two packets may share a frame when they share this.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PathId(pub u32);

/// The outer headers from here to one peer, ready to be copied in front of a frame; or none, of a
/// [link](Path::link).
#[derive(Clone, Debug)]
pub struct Path {
    id: PathId,
    /// In a box, for a queue pair that is on a link has none of it.
    around: Option<Box<Around>>,
}

/// What is put around packets.
#[derive(Clone, Debug)]
struct Around {
    outer: Outer,
    /// The headers as bytes, every length, identification and checksum zero.
    template: [u8; Outer::MAX_LEN],
    /// The sum of the IPv4 header's words in that state, not yet folded.
    ip_sum: u32,
    /// The sum over the addresses and the protocol, which the UDP checksum begins with.
    pseudo_sum: u32,
    /// The CRC of the last two kinds of packet sent: most paths see data and acknowledgements.
    recent: Cell<Remembered>,
    older: Cell<Remembered>,
}

impl Path {
    /// The path of these outer headers; lengths, identification and checksums in them are ignored.
    pub fn new(id: PathId, outer: Outer) -> Self {
        let (outer, pseudo_sum) = match outer {
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
        let mut ip_sum = 0;
        if outer.version() == Version::V2Ipv4 {
            let (_, behind) = template.split_at_mut(Ethernet::LEN);
            if let Some(ip) = behind.first_chunk_mut::<{ Ipv4::LEN }>() {
                (ip[10], ip[11]) = (0, 0);
                ip_sum = sum_words(ip);
            }
        }
        let nothing = Cell::new(Remembered::NOTHING);
        let (recent, older) = (nothing.clone(), nothing);
        let around = Around { outer, template, ip_sum, pseudo_sum, recent, older };
        Self { id, around: Some(Box::new(around)) }
    }

    /// A link of its own, as lossless devices have them: nothing stands around its packets, and the
    /// number is all that there is to know.
    pub fn link(id: PathId) -> Self {
        Self { id, around: None }
    }

    /// Which path it is.
    #[inline]
    pub fn id(&self) -> PathId {
        self.id
    }

    /// The outer headers; of a link, those to nowhere.
    #[inline]
    pub fn outer(&self) -> &Outer {
        self.around.as_ref().map_or(&Outer::NOWHERE, |around| &around.outer)
    }

    /// Copies the headers to the front of a frame, which must be long enough.
    #[inline]
    pub(super) fn put_template(&self, frame: &mut [u8]) {
        // Of known lengths, so that it is a few instructions and no call.
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
    pub(super) fn sums(&self) -> (u32, u32) {
        self.around.as_ref().map_or((0, 0), |around| (around.ip_sum, around.pseudo_sum))
    }

    /// The CRC of a packet of `transport` bytes up to and with the steady part of its BTH.
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

/// Out of line, as what follows: packets on a link have nothing around them.
#[cold]
fn put_nowhere(frame: &mut [u8]) {
    put_front::<{ Outer::NOWHERE.len() }>(frame, &Outer::NOWHERE.to_bytes());
}

#[cold]
fn crc_nowhere(transport: usize, bth: u64) -> Crc {
    Remembered::begin(&Outer::NOWHERE, transport, bth).crc
}

impl Around {
    #[inline(always)]
    fn crc(&self, transport: usize, id: IpId, bth: u64) -> Crc {
        let mut recent = self.recent.get();
        if !recent.fits(transport, bth) {
            let older = self.older.replace(recent);
            recent = match older.fits(transport, bth) {
                true => older,
                false => Remembered::begin(&self.outer, transport, bth),
            };
            self.recent.set(recent);
        }
        with_id(recent.crc, self.outer.id().map(|_| id))
    }
}

/// Writes the lengths and checksums that depend on what a frame came to carry.
#[inline]
pub(super) fn seal(
    frame: &mut [u8],
    version: Version,
    (ip_sum, pseudo_sum): (u32, u32),
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
            put(frame, 10, !fold(ip_sum + low32(behind) + u32::from(id.0)));
            Ipv4::LEN
        }
        Version::V2Ipv6 => {
            put(frame, 4, low16(behind - Ipv6::LEN));
            Ipv6::LEN
        }
    };
    let datagram = low16(behind - udp_at);
    put(frame, udp_at + 4, datagram);
    // A lone packet goes without: its ICRC says more. Segmentation insists on a checksum, and
    // wants the sum of the pseudo-header to begin with.
    if segmented {
        put(frame, udp_at + 6, fold(pseudo_sum + u32::from(datagram)));
    }
}
