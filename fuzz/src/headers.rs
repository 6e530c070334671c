//! Single headers: what parses is emitted to the very bytes that it was parsed from.

use std::ops::Range;

use doorbell_core::wire::{
    Ethernet, Extensions, Grh, Headers, Ipv4, Ipv6, Layout, Malformed, Metadata, Opcode, Packet,
    Udp,
};

use super::check::{can_be_shown, inside, is_rest};

/// Parses an Ethernet header, and compares it with what is emitted again.
pub fn ethernet(data: &[u8]) {
    let Ok((header, rest)) = Ethernet::parse(data) else {
        return assert!(data.len() < Ethernet::LEN);
    };
    assert_eq!(header.to_bytes(), data[..Ethernet::LEN]);
    assert_eq!(is_rest(data, rest, Ethernet::LEN), 0);
    can_be_shown(&header);
}

/// IPv4, IPv6 and the global route header: each is given the input.
pub fn ip(data: &[u8]) {
    if let Ok((header, payload)) = Ipv4::parse(data) {
        let mut bytes = [0; Ipv4::LEN];
        bytes.copy_from_slice(&data[..Ipv4::LEN]);
        // In one's complement zero is written in two ways, and a checksum may be received in
        // either. It is sent as zeros.
        if bytes[10..12] == [0xFF; 2] {
            bytes[10..12].fill(0);
        }
        assert_eq!(header.to_bytes(), bytes);
        is_rest(data, payload, Ipv4::LEN);
        assert_eq!(payload.len(), usize::from(header.total_length) - Ipv4::LEN);
        can_be_shown(&header);
    }
    let ipv6 = Ipv6::parse(data);
    if let Ok((header, payload)) = ipv6 {
        assert_eq!(header.to_bytes(), data[..Ipv6::LEN]);
        is_rest(data, payload, Ipv6::LEN);
        assert_eq!(payload.len(), usize::from(header.payload_length));
        can_be_shown(&header);
    }
    match (Grh::parse(data), ipv6) {
        (Ok((grh, payload)), Ok((ipv6, same))) => {
            assert_eq!((grh.0, payload), (ipv6, same));
            assert_eq!(grh.to_bytes(), ipv6.to_bytes());
        }
        (grh, ipv6) => assert!(grh.is_err() && ipv6.is_err(), "{grh:?} but {ipv6:?}"),
    }
}

/// Parses a UDP header, and compares it with what is emitted again.
pub fn udp(data: &[u8]) {
    let Ok((header, payload)) = Udp::parse(data) else { return };
    assert_eq!(header.to_bytes(), data[..Udp::LEN]);
    is_rest(data, payload, Udp::LEN);
    assert_eq!(payload.len(), usize::from(header.length) - Udp::LEN);
    can_be_shown(&header);
}

const LAYOUTS: [Layout; 13] = [
    Layout::None,
    Layout::Reth,
    Layout::RethImm,
    Layout::Imm,
    Layout::Ieth,
    Layout::Aeth,
    Layout::AethAtomicAck,
    Layout::Atomic,
    Layout::Deth,
    Layout::DethImm,
    Layout::Metadata,
    Layout::RethMetadata,
    Layout::AethReport,
];

/// Parses a whole packet: base transport header, extension headers, payload. The extension headers
/// of every layout are tried on the input as well.
pub fn packet(data: &[u8]) {
    for layout in LAYOUTS {
        extensions(layout, data);
    }
    let headers = Headers::parse(data);
    match Packet::parse(data) {
        Ok(packet) => {
            assert_eq!(headers.map(|(headers, _)| headers), Ok(packet.headers));
            let len = packet.headers.len();
            assert_eq!(packet.headers.to_bytes()[..len], data[..len]);
            let cut = is_rest(data, packet.payload, len);
            assert_eq!(cut, usize::from(packet.headers.bth.pad()));
            can_be_shown(&packet.headers);
        }
        Err(Malformed::Padding { pad, payload }) => {
            let (headers, rest) = headers.expect("padding is judged behind the headers");
            assert_eq!((pad, payload), (headers.bth.pad().into(), rest.len()));
            assert!(payload < pad);
        }
        Err(Malformed::Opcode(code)) => {
            assert!(data[0] == code && Opcode::from_code(code).is_none());
        }
        Err(error) => assert_eq!(headers, Err(error)),
    }
}

fn extensions(layout: Layout, data: &[u8]) {
    let long = data.get(..layout.len()).is_some_and(|h| claimed(layout, h) > Metadata::MOST);
    let Ok((extensions, rest)) = Extensions::parse(layout, data) else {
        return assert!(data.len() < layout.len() || long);
    };
    assert!(!long, "metadata that there is no room for");
    assert_eq!(extensions.layout(), layout);
    let mut bytes = [0xA5; Extensions::MAX_LEN];
    extensions.emit(&mut bytes);
    assert_eq!(bytes[..layout.len()], data[..layout.len()]);
    assert!(bytes[layout.len()..].iter().all(|&byte| byte == 0xA5), "{layout:?} is longer");
    assert_eq!(inside(data, rest), layout.len());
    assert_eq!(rest.len(), data.len() - layout.len());
}

/// Where extension headers say how much metadata there is, if there can be some.
fn claim(layout: Layout) -> Option<Range<usize>> {
    let end = matches!(layout, Layout::Metadata | Layout::RethMetadata).then_some(layout.len())?;
    let start = end - Metadata::LEN;
    Some(start..start + 4)
}

fn claimed(layout: Layout, headers: &[u8]) -> usize {
    let bytes = claim(layout).map_or(&[][..], |at| &headers[at]);
    bytes.iter().fold(0, |claimed, &byte| claimed << 8 | usize::from(byte))
}

/// Makes extension headers of any bytes: all have a meaning, but those that claim more metadata
/// than there is room for.
pub(crate) fn allow(layout: Layout, headers: &mut [u8]) {
    if let Some(at) = claim(layout) {
        let claimed = (claimed(layout, headers) % (Metadata::MOST + 1)) as u32;
        headers[at].copy_from_slice(&claimed.to_be_bytes());
    }
}
