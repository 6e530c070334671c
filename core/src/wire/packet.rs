//! A transport packet: base transport header, extension headers, payload, padding.

use super::bth::Bth;
use super::extensions::{Extensions, Layout};
use super::malformed::{Malformed, Part, split};
use super::prediction::RawBth;
use crate::fields::{no_room, put};

/// Everything in front of a packet's payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Headers {
    /// The base transport header.
    pub bth: Bth,
    /// The extension headers that the opcode asks for.
    pub extensions: Extensions,
}

impl Headers {
    /// The most bytes that headers take.
    pub const MAX_LEN: usize = Bth::LEN + Extensions::MAX_LEN;

    /// The bytes that they take.
    #[inline]
    pub const fn len(&self) -> usize {
        Bth::LEN + self.extensions.layout().len()
    }

    /// Never: a packet has a base transport header.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// Reads the headers in front of `packet`; the rest is payload and padding.
    #[inline]
    pub fn parse(packet: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let (h, rest) = split::<{ Bth::LEN }>(Part::Bth, packet)?;
        let bth = Bth::from_bytes(h)?;
        let (extensions, rest) = Extensions::parse(bth.opcode().layout(), rest)?;
        Ok((Self { bth, extensions }, rest))
    }

    /// The headers as they stand on the wire: the first [`len`](Self::len) bytes of the array.
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

    /// The same with another base transport header.
    #[inline(always)]
    pub(crate) fn emit_with(&self, bth: Bth, out: &mut [u8]) {
        debug_assert_eq!(bth.opcode().layout(), self.extensions.layout(), "{self:?}");
        let Some((front, extensions)) = out.split_first_chunk_mut::<{ Bth::LEN }>() else {
            no_room()
        };
        // In the pieces in which the CRC reads it.
        put(put(front, bth.steady()), bth.last_word().to_le_bytes());
        if !matches!(self.extensions, Extensions::None) {
            self.extensions.emit(extensions);
        }
    }
}

/// A packet whose headers were read and whose payload still lies where it arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet<P> {
    /// Its headers.
    pub headers: Headers,
    /// What it carries, the padding taken off.
    pub payload: P,
}

impl<'a> Packet<&'a [u8]> {
    /// Reads a packet that ends with its padding: the ICRC, where there is one, is not part of it.
    #[inline]
    pub fn parse(packet: &'a [u8]) -> Result<Self, Malformed> {
        let (bth, rest) = Self::begin(packet)?;
        // With most layouts as constants: what is read then is known when this is compiled.
        match bth.opcode().layout() {
            Layout::Reth => Self::parse_as(bth, Layout::Reth, rest),
            Layout::Aeth => Self::parse_as(bth, Layout::Aeth, rest),
            Layout::Atomic => Self::parse_as(bth, Layout::Atomic, rest),
            Layout::AethAtomicAck => Self::parse_as(bth, Layout::AethAtomicAck, rest),
            layout => Self::parse_as(bth, layout, rest),
        }
    }

    /// Reads the base transport header: the rest is behind it.
    #[inline(always)]
    pub(crate) fn begin(packet: &'a [u8]) -> Result<(Bth, &'a [u8]), Malformed> {
        let (h, rest) = split::<{ Bth::LEN }>(Part::Bth, packet)?;
        Ok((Bth::from_bytes(h)?, rest))
    }

    /// Reads what is behind the base transport header.
    #[inline(always)]
    pub(crate) fn parse_as(bth: Bth, layout: Layout, rest: &'a [u8]) -> Result<Self, Malformed> {
        let (extensions, padded) = Extensions::parse(layout, rest)?;
        let headers = Headers { bth, extensions };
        let payload = without_padding(&headers, padded.len())?;
        // It is no longer than what it was cut from.
        Ok(Self { headers, payload: padded.get(..payload).unwrap_or_default() })
    }

    /// A glance at its header, and all that is behind it, less the padding.
    #[inline(always)]
    pub(crate) fn glance(packet: &'a [u8]) -> Option<(RawBth, &'a [u8])> {
        let (header, padded) = packet.split_first_chunk::<{ Bth::LEN }>()?;
        let (steady, last) = header.split_first_chunk()?;
        let glance = RawBth::new(*steady, *last.as_array()?);
        Some((glance, padded.get(..padded.len().checked_sub(glance.pad())?)?))
    }
}

/// The length of a payload that takes `padded` bytes with its padding.
#[inline]
pub(crate) fn without_padding(headers: &Headers, padded: usize) -> Result<usize, Malformed> {
    let pad = usize::from(headers.bth.pad());
    padded.checked_sub(pad).ok_or(Malformed::Padding { pad, payload: padded })
}

/// How many bytes of padding a payload takes to end at a multiple of four.
#[inline]
pub const fn padding(payload: usize) -> usize {
    payload.wrapping_neg() & 3
}
