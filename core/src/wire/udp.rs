//! The UDP header.

use super::malformed::{Malformed, Part, split};
use super::numbers::{InetChecksum, UdpPort};
use crate::fields::be16;

/// The UDP header, with ports, length and checksum.
///
/// The checksum is carried and not verified. RoCE may send none, segmentation offload leaves it to
/// the interface, and the ICRC protects more.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Udp {
    /// The port of the sender. RoCE uses it as a label of the flow, by which routers spread
    /// traffic.
    pub source: UdpPort,
    /// The port of the receiver.
    pub destination: UdpPort,
    /// The length of header and payload. Where a frame carries a run of packets, it covers the
    /// whole run.
    pub length: u16,
    /// The checksum, or zero for none.
    pub checksum: InetChecksum,
}

impl Udp {
    /// The length of the header on the wire.
    pub const LEN: usize = 8;

    /// Parses the header in front of `datagram`. Returns the header and the payload, cut to the
    /// length that the header gives.
    #[inline]
    pub fn parse(datagram: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let (h, rest) = split::<{ Self::LEN }>(Part::Udp, datagram)?;
        let header = Self {
            source: UdpPort(be16::<0, _>(h)),
            destination: UdpPort(be16::<2, _>(h)),
            length: be16::<4, _>(h),
            checksum: InetChecksum(be16::<6, _>(h)),
        };
        let claimed = usize::from(header.length);
        match claimed.checked_sub(Self::LEN).and_then(|payload| rest.get(..payload)) {
            Some(payload) => Ok((header, payload)),
            None => Err(Malformed::Length { part: Part::Udp, claimed, have: datagram.len() }),
        }
    }

    /// Returns the header as it stands on the wire.
    #[inline]
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        let mut h = [0; Self::LEN];
        h[0..2].copy_from_slice(&self.source.0.to_be_bytes());
        h[2..4].copy_from_slice(&self.destination.0.to_be_bytes());
        h[4..6].copy_from_slice(&self.length.to_be_bytes());
        h[6..8].copy_from_slice(&self.checksum.0.to_be_bytes());
        h
    }
}
