//! Capture files in the classic pcap format, as tcpdump and Wireshark read and write them.
//!
//! ```
//! use doorbell_core::pcap;
//!
//! let mut file = pcap::Writer::new(Vec::new())?;
//! file.write(1_000_000_042, b"a frame, from the Ethernet header on")?;
//! let bytes = file.into_inner();
//!
//! for record in pcap::Reader::new(&bytes)? {
//!     let record = record?;
//!     assert_eq!(record.time, 1_000_000_042);
//!     assert_eq!(record.data, b"a frame, from the Ethernet header on");
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![deny(clippy::indexing_slicing, clippy::cast_possible_truncation)]

use std::io;
use std::iter::FusedIterator;

use crate::fields;
use crate::wire::{Malformed, Part, split};

const MAGIC_US: u32 = 0xA1B2_C3D4;
const MAGIC_NS: u32 = 0xA1B2_3C4D;
const MAJOR_VERSION: u16 = 2;
const MINOR_VERSION: u16 = 4;
const LINK_TYPE_ETHERNET: u32 = 1;
const FILE_HEADER: usize = 24;
const RECORD_HEADER: usize = 16;
const SECOND: u64 = 1_000_000_000;

/// A frame in a capture file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record<'a> {
    /// The time of the capture, in nanoseconds since the epoch.
    pub time: u64,
    /// The length of the frame on the wire, which is more than the length of `data` if the capture
    /// cut it.
    pub original_len: u32,
    /// The frame, from its Ethernet header on.
    pub data: &'a [u8],
}

/// An iterator over the frames of a capture that is in memory.
///
/// The iteration ends after an error, since the beginning of the next record is not known then.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    format: Format,
}

/// The format of a file, as its magic number says it.
#[derive(Clone, Copy, Debug)]
struct Format {
    big_endian: bool,
    nanoseconds_per_tick: u64,
}

impl Format {
    fn of(magic: [u8; 4]) -> Result<Self, Malformed> {
        for big_endian in [false, true] {
            for (number, nanoseconds_per_tick) in [(MAGIC_NS, 1), (MAGIC_US, 1_000)] {
                let format = Self { big_endian, nanoseconds_per_tick };
                if format.u32(magic) == number {
                    return Ok(format);
                }
            }
        }
        Err(Malformed::PcapMagic(u32::from_be_bytes(magic)))
    }

    fn u16(self, bytes: [u8; 2]) -> u16 {
        if self.big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) }
    }

    fn u32(self, bytes: [u8; 4]) -> u32 {
        if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    }
}

impl<'a> Reader<'a> {
    /// Begins at the first frame of `file`, a capture of Ethernet frames, of either byte order and
    /// resolution.
    pub fn new(file: &'a [u8]) -> Result<Self, Malformed> {
        let (header, rest) = split::<FILE_HEADER>(Part::PcapFile, file)?;
        let [a, b, c, d, ..] = *header;
        let format = Format::of([a, b, c, d])?;
        let major = format.u16(fields::at::<4, _, _>(header));
        if major != MAJOR_VERSION {
            let found = u32::from(major);
            return Err(Malformed::Field { part: Part::PcapFile, field: "major version", found });
        }
        // The whole word is compared, since its upper bits would say that check sums follow the frames.
        match format.u32(fields::at::<20, _, _>(header)) {
            LINK_TYPE_ETHERNET => Ok(Self { rest, format }),
            other => Err(Malformed::PcapLinkType(other)),
        }
    }

    fn record(&self) -> Result<(Record<'a>, &'a [u8]), Malformed> {
        let (header, rest) = split::<RECORD_HEADER>(Part::PcapRecord, self.rest)?;
        let word = |bytes| self.format.u32(bytes);
        let (seconds, ticks) = (fields::at::<0, _, _>(header), fields::at::<4, _, _>(header));
        let original_len = word(fields::at::<12, _, _>(header));
        let need = word(fields::at::<8, _, _>(header)) as usize;
        let truncated = Malformed::Truncated { part: Part::PcapFrame, need, have: rest.len() };
        let (data, rest) = rest.split_at_checked(need).ok_or(truncated)?;
        let ticks = u64::from(word(ticks)) * self.format.nanoseconds_per_tick;
        let time = u64::from(word(seconds)) * SECOND + ticks;
        Ok((Record { time, original_len, data }, rest))
    }
}

impl<'a> Iterator for Reader<'a> {
    type Item = Result<Record<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let found = self.record();
        self.rest = found.map_or(&[], |(_, rest)| rest);
        Some(found.map(|(record, _)| record))
    }
}

impl FusedIterator for Reader<'_> {}

/// A writer of capture files, little-endian and with nanoseconds.
#[derive(Debug)]
pub struct Writer<W> {
    to: W,
}

impl<W: io::Write> Writer<W> {
    /// The most bytes of a frame that are kept.
    pub const SNAPLEN: u32 = 262_144;

    /// Begins a capture of Ethernet frames. `to` should be buffered, since each frame is two
    /// writes.
    pub fn new(mut to: W) -> io::Result<Self> {
        let mut header = [0; FILE_HEADER];
        header[0..4].copy_from_slice(&MAGIC_NS.to_le_bytes());
        header[4..6].copy_from_slice(&MAJOR_VERSION.to_le_bytes());
        header[6..8].copy_from_slice(&MINOR_VERSION.to_le_bytes());
        header[16..20].copy_from_slice(&Self::SNAPLEN.to_le_bytes());
        header[20..24].copy_from_slice(&LINK_TYPE_ETHERNET.to_le_bytes());
        to.write_all(&header)?;
        Ok(Self { to })
    }

    /// Adds a frame, captured at `time` in nanoseconds since the epoch.
    ///
    /// # Errors
    /// When the time is after February 2106, since the format has 32 bits for the seconds.
    pub fn write(&mut self, time: u64, frame: &[u8]) -> io::Result<()> {
        let seconds = u32::try_from(time / SECOND).map_err(|_| {
            let why = format!("a capture cannot say {time} ns: its seconds have 32 bits");
            io::Error::new(io::ErrorKind::InvalidInput, why)
        })?;
        let nanoseconds = (time % SECOND) as u32;
        let original_len = u32::try_from(frame.len()).unwrap_or(u32::MAX);
        let kept = original_len.min(Self::SNAPLEN);
        let mut header = [0; RECORD_HEADER];
        let words = [seconds, nanoseconds, kept, original_len];
        for (field, word) in header.as_chunks_mut::<4>().0.iter_mut().zip(words) {
            *field = word.to_le_bytes();
        }
        self.to.write_all(&header)?;
        self.to.write_all(frame.get(..kept as usize).unwrap_or(frame))
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn capture() -> Vec<u8> {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/captures/rping.pcap");
        std::fs::read(path).expect("the capture is there")
    }

    fn written(frames: &[(u64, Vec<u8>)]) -> Vec<u8> {
        let mut writer = Writer::new(Vec::new()).unwrap();
        for (time, frame) in frames {
            writer.write(*time, frame).unwrap();
        }
        writer.into_inner()
    }

    /// A capture of one frame, in the format asked for.
    fn one_frame(magic: u32, bytes_of: fn(u32) -> [u8; 4], version: [u8; 4]) -> Vec<u8> {
        let mut file = bytes_of(magic).to_vec();
        file.extend(version);
        for word in [0, 0, 65_535, LINK_TYPE_ETHERNET, 1_234, 567, 3, 1_500] {
            file.extend(bytes_of(word));
        }
        file.extend([7, 8, 9]);
        file
    }

    #[test]
    fn a_real_capture_is_read_to_its_end() {
        let file = capture();
        let records: Vec<_> = Reader::new(&file).unwrap().map(Result::unwrap).collect();
        assert_eq!(records.len(), 29);
        assert!(records.iter().all(|record| record.original_len as usize == record.data.len()));
        assert!(records.is_sorted_by_key(|record| record.time));
        // The first frame's time, as the file's first record header has it in microseconds.
        assert_eq!(records[0].time, 0x6B01_40C2 * SECOND + 0x0C_BE9F * 1_000);
        assert_eq!(records[0].data[..6], [0x52, 0x54, 0x00, 0x77, 0x00, 0x03]);
    }

    #[test]
    fn both_byte_orders_and_both_resolutions_are_read() {
        for (magic, fraction) in [(MAGIC_US, 567_000), (MAGIC_NS, 567)] {
            let big = one_frame(magic, u32::to_be_bytes, [0, 2, 0, 4]);
            let little = one_frame(magic, u32::to_le_bytes, [2, 0, 4, 0]);
            let expected =
                Record { time: 1_234 * SECOND + fraction, original_len: 1_500, data: &[7, 8, 9] };
            for file in [big, little] {
                let records: Vec<_> = Reader::new(&file).unwrap().collect();
                assert_eq!(records, [Ok(expected)]);
            }
        }
    }

    #[test]
    fn a_capture_cut_at_any_byte_says_where() {
        let file = capture();
        for end in 0..file.len() {
            let Ok(reader) = Reader::new(&file[..end]) else {
                let error = Reader::new(&file[..end]).map(drop).unwrap_err();
                let part = Part::PcapFile;
                assert_eq!(error, Malformed::Truncated { part, need: FILE_HEADER, have: end });
                continue;
            };
            let mut at = FILE_HEADER;
            for record in reader {
                at += match record {
                    Ok(record) => RECORD_HEADER + record.data.len(),
                    Err(error) => {
                        assert_eq!(error, cut_at(&file, at, end));
                        end - at
                    }
                };
            }
            assert_eq!(at, end);
        }
    }

    /// The error that a little-endian capture gives whose record at `at` is cut at `end`.
    fn cut_at(file: &[u8], at: usize, end: usize) -> Malformed {
        let have = end - at;
        if have < RECORD_HEADER {
            return Malformed::Truncated { part: Part::PcapRecord, need: RECORD_HEADER, have };
        }
        let need = u16::from_le_bytes([file[at + 8], file[at + 9]]).into();
        Malformed::Truncated { part: Part::PcapFrame, need, have: have - RECORD_HEADER }
    }

    #[test]
    fn a_length_beyond_the_file_ends_the_reading() {
        let mut file = written(&[(0, vec![1; 60]), (1, vec![2; 60])]);
        file[FILE_HEADER + 8..][..4].fill(0xFF);
        let mut reader = Reader::new(&file).unwrap();
        let (part, need, have) = (Part::PcapFrame, u32::MAX as usize, 60 + 16 + 60);
        assert_eq!(reader.next(), Some(Err(Malformed::Truncated { part, need, have })));
        assert_eq!(reader.next(), None);
    }

    #[test]
    fn what_is_no_capture_of_ethernet_is_refused_with_a_reason() {
        let good = written(&[]);
        let spoilt = |at: usize, value: u8| {
            let mut file = good.clone();
            file[at] = value;
            Reader::new(&file).map(drop).unwrap_err()
        };
        assert_eq!(spoilt(0, 0), Malformed::PcapMagic(0x003C_B2A1));
        assert_eq!(spoilt(20, 113), Malformed::PcapLinkType(113));
        let (part, field) = (Part::PcapFile, "major version");
        assert_eq!(spoilt(4, 1), Malformed::Field { part, field, found: 1 });
    }

    #[test]
    fn a_frame_longer_than_is_kept_is_cut_and_says_so() {
        let file = written(&[(5, vec![3; 300_000])]);
        let record = Reader::new(&file).unwrap().next().unwrap().unwrap();
        assert_eq!((record.original_len, record.data.len()), (300_000, 262_144));
    }

    #[test]
    fn a_time_that_does_not_fit_is_refused() {
        let mut writer = Writer::new(Vec::new()).unwrap();
        writer.write(u64::from(u32::MAX) * SECOND + SECOND - 1, &[]).unwrap();
        let error = writer.write(u64::from(u32::MAX) * SECOND + SECOND, &[]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(
            frames in proptest::collection::vec(
                (0..=u64::from(u32::MAX) * SECOND, proptest::collection::vec(any::<u8>(), 0..200)),
                0..10,
            ),
        ) {
            let file = written(&frames);
            let read: Vec<_> = Reader::new(&file).unwrap().map(Result::unwrap).collect();
            prop_assert_eq!(read.len(), frames.len());
            for (record, (time, frame)) in read.iter().zip(&frames) {
                prop_assert_eq!(record.time, *time);
                prop_assert_eq!(record.original_len as usize, frame.len());
                prop_assert_eq!(record.data, frame);
            }
        }

        #[test]
        fn no_bytes_are_too_strange_to_be_refused(
            mut bytes in proptest::collection::vec(any::<u8>(), 0..400),
            headed: bool,
        ) {
            let header = written(&[]);
            if headed && bytes.len() >= header.len() {
                bytes[..header.len()].copy_from_slice(&header);
            }
            if let Ok(reader) = Reader::new(&bytes) {
                prop_assert!(reader.count() <= bytes.len());
            }
        }
    }
}
