//! The IPv6 header, and InfiniBand's global route header, which has the same form.

use super::addresses::Gid;
use super::malformed::{Malformed, Part, split};
use super::numbers::{FlowLabel, IpProtocol};
use crate::fields::at;

/// The fields that an IPv6 header and a global route header share.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Ipv6 {
    /// The traffic class, which has the DSCP and the two ECN bits.
    pub traffic_class: u8,
    /// A label by which routers keep the packets of a flow together.
    pub flow_label: FlowLabel,
    /// The number of bytes that follow the header.
    pub payload_length: u16,
    /// The protocol of the packet's payload.
    pub next_header: IpProtocol,
    /// The number of routers that the packet may still cross.
    pub hop_limit: u8,
    /// The address of the sender.
    pub source: Gid,
    /// The address of the receiver.
    pub destination: Gid,
}

/// The global route header (GRH) of RoCE version 1, which has the form of an [`Ipv6`] header.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Grh(pub Ipv6);

impl Ipv6 {
    /// The length of the header on the wire.
    pub const LEN: usize = 40;

    /// Parses the header in front of `packet`. Returns the header and the payload, cut to the
    /// length that the header gives.
    #[inline]
    pub fn parse(packet: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        Self::parse_as(Part::Ipv6, packet)
    }

    #[inline]
    fn parse_as(part: Part, packet: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let (h, rest) = split::<{ Self::LEN }>(part, packet)?;
        let first = u32::from_be_bytes([h[0], h[1], h[2], h[3]]);
        if first >> 28 != 6 {
            return Err(Malformed::Version { part, found: (first >> 28) as u8 });
        }
        let header = Self {
            traffic_class: (first >> 20 & 0xFF) as u8,
            flow_label: FlowLabel::new(first),
            payload_length: u16::from_be_bytes([h[4], h[5]]),
            next_header: IpProtocol(h[6]),
            hop_limit: h[7],
            source: Gid(at::<8, _, _>(h)),
            destination: Gid(at::<24, _, _>(h)),
        };
        let claimed = usize::from(header.payload_length);
        match rest.get(..claimed) {
            Some(payload) => Ok((header, payload)),
            None => Err(Malformed::Length { part, claimed, have: rest.len() }),
        }
    }

    /// Returns the header as it stands on the wire.
    #[inline]
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        let mut h = [0; Self::LEN];
        let first = 6 << 28 | u32::from(self.traffic_class) << 20 | self.flow_label.get();
        h[0..4].copy_from_slice(&first.to_be_bytes());
        h[4..6].copy_from_slice(&self.payload_length.to_be_bytes());
        h[6] = self.next_header.0;
        h[7] = self.hop_limit;
        h[8..24].copy_from_slice(&self.source.0);
        h[24..40].copy_from_slice(&self.destination.0);
        h
    }
}

impl Grh {
    /// The length of the header on the wire.
    pub const LEN: usize = Ipv6::LEN;

    /// Parses the header in front of `packet`. Returns the header and the payload, cut to the
    /// length that the header gives.
    #[inline]
    pub fn parse(packet: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let (header, rest) = Ipv6::parse_as(Part::Grh, packet)?;
        Ok((Self(header), rest))
    }

    /// Returns the header as it stands on the wire.
    #[inline]
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        self.0.to_bytes()
    }
}
