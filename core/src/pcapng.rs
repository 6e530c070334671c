//! Capture files in the pcapng format, which records the direction of each frame.
//!
//! ```
//! use doorbell_core::pcapng::{Direction, Writer};
//!
//! let mut file = Writer::new(Vec::new(), "udp:192.0.2.1:4791", "udp")?;
//! file.write(1_000_000_042, Direction::Outbound, b"a frame, from the Ethernet header on")?;
//! # Ok::<(), std::io::Error>(())
//! ```

#![deny(clippy::indexing_slicing, clippy::cast_possible_truncation)]

use std::io;

use crate::fields;

const SECTION: u32 = 0x0A0D_0D0A;
const INTERFACE: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER: u32 = 0x1A2B_3C4D;
const LINK_TYPE_ETHERNET: u32 = 1;
/// The most bytes of a frame that are kept, where zero means all.
const SNAPLEN: u32 = 0;

/// The codes of the options that are written.
mod option {
    pub const APPLICATION: u16 = 4;
    pub const INTERFACE_NAME: u16 = 2;
    pub const DESCRIPTION: u16 = 3;
    pub const RESOLUTION: u16 = 9;
    pub const FLAGS: u16 = 2;
}

/// The resolution of times: ten to the power of minus nine seconds.
const NANOSECONDS: u8 = 9;

/// The direction of a frame, seen from the interface.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Direction {
    /// The interface received the frame.
    Inbound,
    /// The interface sent the frame.
    Outbound,
}

/// A writer of capture files of one interface, little-endian and with nanoseconds.
#[derive(Debug)]
pub struct Writer<W> {
    to: W,
}

impl<W: io::Write> Writer<W> {
    /// Begins a capture of Ethernet frames on an interface. `to` should be buffered, since each
    /// frame is a few writes.
    pub fn new(mut to: W, interface: &str, description: &str) -> io::Result<Self> {
        // The byte order, the version 1.0, and an unknown length.
        let section = Body::of(&[BYTE_ORDER, 1, u32::MAX, u32::MAX])
            .option(option::APPLICATION, b"doorbell")
            .end();
        to.write_all(&block(SECTION, &section))?;
        let description = Body::of(&[LINK_TYPE_ETHERNET, SNAPLEN])
            .option(option::INTERFACE_NAME, interface.as_bytes())
            .option(option::DESCRIPTION, description.as_bytes())
            .option(option::RESOLUTION, &[NANOSECONDS])
            .end();
        to.write_all(&block(INTERFACE, &description))?;
        Ok(Self { to })
    }

    /// Adds a frame, captured at `time` in nanoseconds since the epoch.
    pub fn write(&mut self, time: u64, direction: Direction, frame: &[u8]) -> io::Result<()> {
        let padding = frame.len().wrapping_neg() & 3;
        // Seven words precede the frame, and four follow it.
        let (Ok(len), Ok(total)) =
            (u32::try_from(frame.len()), u32::try_from(28 + frame.len() + padding + 16))
        else {
            let why = format!("a capture cannot hold a frame of {} bytes", frame.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        };
        let (high, low) = ((time >> 32) as u32, (time & 0xFFFF_FFFF) as u32);
        let front = [ENHANCED_PACKET, total, 0, high, low, len, len];
        let flags = match direction {
            Direction::Inbound => 1,
            Direction::Outbound => 2,
        };
        let behind = [u32::from(option::FLAGS) | 4 << 16, flags, 0, total];
        self.to.write_all(front.map(u32::to_le_bytes).as_flattened())?;
        self.to.write_all(frame)?;
        self.to.write_all([0; 3].get(..padding).unwrap_or_default())?;
        self.to.write_all(behind.map(u32::to_le_bytes).as_flattened())
    }

    /// Flushes the buffer below.
    pub fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }

    /// Returns the writer below.
    pub fn into_inner(self) -> W {
        self.to
    }
}

/// The body of a block, which stands between its two lengths.
struct Body(Vec<u8>);

impl Body {
    fn of(words: &[u32]) -> Self {
        Self(words.iter().flat_map(|word| word.to_le_bytes()).collect())
    }

    /// Adds an option, padded to whole words.
    fn option(mut self, code: u16, value: &[u8]) -> Self {
        // The values are names, whose length fits 16 bits.
        let len = u16::try_from(value.len()).unwrap_or(u16::MAX);
        self.0.extend(code.to_le_bytes());
        self.0.extend(len.to_le_bytes());
        self.0.extend(value.iter().take(usize::from(len)));
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    /// Appends the end of the options, and returns the body.
    fn end(self) -> Vec<u8> {
        self.option(0, &[]).0
    }
}

/// Encodes a block, which has its kind, its length, its body, and its length again.
fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    // The body has a few options of at most 64 KiB each.
    let len = fields::low32(body.len() + 12).to_le_bytes();
    [&kind.to_le_bytes()[..], &len, body, &len].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The blocks of a file: their kinds and bodies. Panics where a length contradicts another.
    fn blocks(mut file: &[u8]) -> Vec<(u32, &[u8])> {
        let word = |bytes: &[u8], at: usize| {
            u32::from_le_bytes(*bytes[at..].first_chunk().expect("a word"))
        };
        let mut found = Vec::new();
        while !file.is_empty() {
            let len = word(file, 4) as usize;
            assert_eq!(len % 4, 0);
            assert_eq!(word(file, len - 4) as usize, len);
            found.push((word(file, 0), &file[8..len - 4]));
            file = &file[len..];
        }
        found
    }

    #[test]
    fn blocks_have_the_same_length_in_front_and_behind_for_every_length_of_a_frame() {
        let mut writer = Writer::new(Vec::new(), "in", "memory").unwrap();
        for len in 0..9 {
            writer.write(7, Direction::Inbound, &vec![1; len]).unwrap();
        }
        let file = writer.into_inner();
        let kinds: Vec<_> = blocks(&file).iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds[..3], [SECTION, INTERFACE, ENHANCED_PACKET]);
        assert_eq!(kinds.len(), 11);
    }

    #[test]
    fn a_frame_keeps_its_time_and_its_direction() {
        let mut writer = Writer::new(Vec::new(), "", "").unwrap();
        writer.write(0x1122_3344_5566_7788, Direction::Outbound, b"four").unwrap();
        let file = writer.into_inner();
        let body = blocks(&file)[2].1;
        let words: Vec<_> =
            body.as_chunks::<4>().0.iter().map(|b| u32::from_le_bytes(*b)).collect();
        let four = u32::from_le_bytes(*b"four");
        let flags = u32::from(option::FLAGS) | 4 << 16;
        assert_eq!(words, [0, 0x1122_3344, 0x5566_7788, 4, 4, four, flags, 2, 0]);
    }
}
