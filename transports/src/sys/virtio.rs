//! The header by which a packet socket and the kernel speak of segmentation (`virtio_net_hdr`).

use doorbell_core::encap::Segmentation;

pub(crate) const LEN: usize = 10;

const NEEDS_CHECKSUM: u8 = 1;
const UDP_SEGMENTATION: u8 = 5;
const UDP_LEN: u16 = 8;
const UDP_CHECKSUM_AT: u16 = 6;

/// Makes the header in front of a frame that the kernel is to cut into packets.
#[inline]
pub(crate) fn header(Segmentation { segment, headers }: Segmentation) -> [u8; LEN] {
    let mut header = [0; LEN];
    header[0] = NEEDS_CHECKSUM;
    header[1] = UDP_SEGMENTATION;
    header[2..4].copy_from_slice(&headers.to_ne_bytes());
    header[4..6].copy_from_slice(&segment.to_ne_bytes());
    header[6..8].copy_from_slice(&(headers - UDP_LEN).to_ne_bytes());
    header[8..10].copy_from_slice(&UDP_CHECKSUM_AT.to_ne_bytes());
    header
}

/// Splits what was received into the frame and, if the frame is a run, the size of its packets.
#[inline]
pub(crate) fn split(received: &[u8]) -> (&[u8], Option<u16>) {
    let Some((header, frame)) = received.split_first_chunk::<LEN>() else { return (&[], None) };
    let segment = u16::from_ne_bytes([header[4], header[5]]);
    (frame, (header[1] != 0 && segment != 0).then_some(segment))
}
