//! A transport packet: base transport header, extended transport headers, payload, padding.

use super::bth::Bth;
use super::extensions::{Extensions, Layout};
use super::malformed::{Malformed, Part, split};
use super::prediction::RawBth;
use crate::fields::{no_room, put};

/// The headers in front of a packet's payload: the BTH and the extended transport headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Headers {
    /// The base transport header.
    pub bth: Bth,
    /// The extension headers that the opcode calls for.
    pub extensions: Extensions,
}

impl Headers {
    /// The most bytes that headers take.
    pub const MAX_LEN: usize = Bth::LEN + Extensions::MAX_LEN;

    /// Returns the bytes that the headers take.
    #[inline]
    pub const fn len(&self) -> usize {
        Bth::LEN + self.extensions.layout().len()
    }

    /// Returns false, since every packet has a base transport header.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// Parses the headers in front of `packet`. Returns the headers, and the payload with its
    /// padding.
    #[inline]
    pub fn parse(packet: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let (h, rest) = split::<{ Bth::LEN }>(Part::Bth, packet)?;
        let bth = Bth::from_bytes(h)?;
        let (extensions, rest) = Extensions::parse(bth.opcode().layout(), rest)?;
        Ok((Self { bth, extensions }, rest))
    }

    /// Returns the headers as they stand on the wire: the first [`len`](Self::len) bytes of the
    /// array.
    #[inline]
    pub fn to_bytes(&self) -> [u8; Self::MAX_LEN] {
        debug_assert_eq!(self.bth.opcode().layout(), self.extensions.layout(), "{self:?}");
        let mut bytes = [0; Self::MAX_LEN];
        self.extensions.emit(put(&mut bytes, self.bth.to_bytes()));
        bytes
    }

    /// Writes the headers to the front of `out`.
    ///
    /// # Panics
    /// If `out` is shorter than [they are](Self::len).
    #[inline]
    pub fn emit(&self, out: &mut [u8]) {
        self.emit_with(self.bth, out);
    }

    /// Writes the headers to the front of `out`, with `bth` in place of the base transport header.
    #[inline(always)]
    pub(crate) fn emit_with(&self, bth: Bth, out: &mut [u8]) {
        debug_assert_eq!(bth.opcode().layout(), self.extensions.layout(), "{self:?}");
        let Some((front, extensions)) = out.split_first_chunk_mut::<{ Bth::LEN }>() else {
            no_room()
        };
        // In the pieces in which the CRC reads the header back, since a load that straddles two
        // fresh stores waits for both.
        put(put(front, bth.steady()), bth.last_word().to_le_bytes());
        if !matches!(self.extensions, Extensions::None) {
            self.extensions.emit(extensions);
        }
    }
}

/// A packet whose headers were parsed and whose payload still lies where it arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet<P> {
    /// The headers of the packet.
    pub headers: Headers,
    /// The payload of the packet, without padding.
    pub payload: P,
}

impl<'a> Packet<&'a [u8]> {
    /// Parses a packet that ends with its padding. The ICRC, where there is one, must have been cut
    /// off.
    #[inline]
    pub fn parse(packet: &'a [u8]) -> Result<Self, Malformed> {
        let (bth, rest) = Self::begin(packet)?;
        // The common layouts are constants here, so the compiler knows which bytes are parsed.
        match bth.opcode().layout() {
            Layout::Reth => Self::parse_as(bth, Layout::Reth, rest),
            Layout::Aeth => Self::parse_as(bth, Layout::Aeth, rest),
            Layout::Atomic => Self::parse_as(bth, Layout::Atomic, rest),
            Layout::AethAtomicAck => Self::parse_as(bth, Layout::AethAtomicAck, rest),
            layout => Self::parse_as(bth, layout, rest),
        }
    }

    /// Parses the base transport header. Returns it and the rest of the packet.
    #[inline(always)]
    pub(crate) fn begin(packet: &'a [u8]) -> Result<(Bth, &'a [u8]), Malformed> {
        let (h, rest) = split::<{ Bth::LEN }>(Part::Bth, packet)?;
        Ok((Bth::from_bytes(h)?, rest))
    }

    /// Parses the extension headers, which follow the base transport header, and finds the payload.
    #[inline(always)]
    pub(crate) fn parse_as(bth: Bth, layout: Layout, rest: &'a [u8]) -> Result<Self, Malformed> {
        let (extensions, padded) = Extensions::parse(layout, rest)?;
        let headers = Headers { bth, extensions };
        let payload = without_padding(&headers, padded.len())?;
        // The payload is no longer than the bytes that it is cut from.
        Ok(Self { headers, payload: padded.get(..payload).unwrap_or_default() })
    }

    /// Returns the base transport header without checking it, and the rest of the packet without
    /// padding.
    #[inline(always)]
    pub(crate) fn glance(packet: &'a [u8]) -> Option<(RawBth, &'a [u8])> {
        let (header, padded) = packet.split_first_chunk::<{ Bth::LEN }>()?;
        let (steady, last) = header.split_first_chunk()?;
        let bth = RawBth::new(*steady, *last.as_array()?);
        Some((bth, padded.get(..padded.len().checked_sub(bth.pad())?)?))
    }
}

/// Returns the length of a payload that takes `padded` bytes with its padding.
#[inline]
pub(crate) fn without_padding(headers: &Headers, padded: usize) -> Result<usize, Malformed> {
    let pad = usize::from(headers.bth.pad());
    padded.checked_sub(pad).ok_or(Malformed::Padding { pad, payload: padded })
}

/// Returns how many bytes of padding a payload takes to end at a multiple of four.
#[inline]
pub const fn padding(payload: usize) -> usize {
    payload.wrapping_neg() & 3
}
