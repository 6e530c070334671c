//! The IPv4 header. RoCE uses no options.

use std::net::Ipv4Addr;

use super::malformed::{Malformed, Part, split};
use super::numbers::{IpId, IpProtocol};
use crate::fields::be16;

/// An IPv4 header of 20 bytes, without options. Parsing verifies the checksum, and encoding
/// computes it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Ipv4 {
    /// The type of service: DSCP and the two ECN bits.
    pub tos: u8,
    /// The length of header and payload.
    pub total_length: u16,
    /// The identification, which the ICRC covers.
    pub id: IpId,
    /// Whether routers may not fragment the packet.
    pub dont_fragment: bool,
    /// The time to live of the packet.
    pub ttl: u8,
    /// The protocol of the packet's payload.
    pub protocol: IpProtocol,
    /// The address of the sender.
    pub source: Ipv4Addr,
    /// The address of the receiver.
    pub destination: Ipv4Addr,
}

impl Ipv4 {
    /// The length of the header on the wire.
    pub const LEN: usize = 20;
    const VERSION_AND_LENGTH: u8 = 0x45;
    const DONT_FRAGMENT: u16 = 0x4000;

    /// Parses the header in front of `packet`. Returns the header and the payload, cut to the
    /// length that the header gives.
    #[inline]
    pub fn parse(packet: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let (h, rest) = split::<{ Self::LEN }>(Part::Ipv4, packet)?;
        check_first_byte(h[0])?;
        check_sum(h)?;
        let fragment = be16::<6, _>(h);
        if fragment & !Self::DONT_FRAGMENT != 0 {
            return Err(Malformed::Fragment);
        }
        let header = Self {
            tos: h[1],
            total_length: be16::<2, _>(h),
            id: IpId(be16::<4, _>(h)),
            dont_fragment: fragment != 0,
            ttl: h[8],
            protocol: IpProtocol(h[9]),
            source: Ipv4Addr::new(h[12], h[13], h[14], h[15]),
            destination: Ipv4Addr::new(h[16], h[17], h[18], h[19]),
        };
        let claimed = usize::from(header.total_length);
        match claimed.checked_sub(Self::LEN).and_then(|payload| rest.get(..payload)) {
            Some(payload) => Ok((header, payload)),
            None => Err(Malformed::Length { part: Part::Ipv4, claimed, have: packet.len() }),
        }
    }

    /// Returns the header as it stands on the wire, with its checksum.
    #[inline]
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        let mut h = [0; Self::LEN];
        h[0] = Self::VERSION_AND_LENGTH;
        h[1] = self.tos;
        h[2..4].copy_from_slice(&self.total_length.to_be_bytes());
        h[4..6].copy_from_slice(&self.id.0.to_be_bytes());
        let fragment = if self.dont_fragment { Self::DONT_FRAGMENT } else { 0 };
        h[6..8].copy_from_slice(&fragment.to_be_bytes());
        h[8] = self.ttl;
        h[9] = self.protocol.0;
        h[12..16].copy_from_slice(&self.source.octets());
        h[16..20].copy_from_slice(&self.destination.octets());
        let sum = !fold(sum_words(&h));
        h[10..12].copy_from_slice(&sum.to_be_bytes());
        h
    }
}

#[inline]
fn check_first_byte(byte: u8) -> Result<(), Malformed> {
    if byte >> 4 != 4 {
        return Err(Malformed::Version { part: Part::Ipv4, found: byte >> 4 });
    }
    if byte != Ipv4::VERSION_AND_LENGTH {
        let found = u32::from(byte & 0xF) * 4;
        return Err(Malformed::Field { part: Part::Ipv4, field: "header length", found });
    }
    Ok(())
}

#[inline]
fn check_sum(header: &[u8; Ipv4::LEN]) -> Result<(), Malformed> {
    let found = u16::from_be_bytes([header[10], header[11]]);
    let sum = sum_words(header);
    if fold(sum) == 0xFFFF {
        return Ok(());
    }
    Err(Malformed::Ipv4Checksum { found, expected: !fold(sum - u32::from(found)) })
}

/// Adds up the 16-bit words of `bytes`, of which there must be an even number, without folding the
/// sum.
#[inline]
pub(crate) fn sum_words(bytes: &[u8]) -> u32 {
    bytes.as_chunks().0.iter().map(|word| u32::from(u16::from_be_bytes(*word))).sum()
}

/// Folds a sum to 16 bits, by adding the carries back in.
#[inline]
pub(crate) fn fold(sum: u32) -> u16 {
    let sum = (sum & 0xFFFF) + (sum >> 16);
    // The carry of the second sum was added in, so it is cut off.
    ((sum + (sum >> 16)) & 0xFFFF) as u16
}
