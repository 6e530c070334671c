//! Gather and scatter: part of a request's memory as the payload of one packet, and a payload into
//! a request's memory.

use std::ops::Range;

use crate::nic::protection::key_table::KeyTable;
use crate::nic::protection::rights::Rights;
use crate::nic::protection::segment::{Domain, Segment};
use crate::nic::requests::failure::Cause;
use crate::nic::requests::memory::Memory;
use crate::payload::{Payload, WordBytes};
use crate::sync::AtomicU64;
use crate::wire::Crc;

/// The part of a request's registered memory that one packet carries.
#[derive(Clone, Copy)]
pub(crate) enum Source<'a> {
    /// Bytes in one piece.
    Words(WordBytes<'a>),
    /// Bytes in several segments.
    Pieces(Pieces<'a>),
}

/// Bytes that lie in several segments, whose keys were found to be good.
#[derive(Clone, Copy)]
pub(crate) struct Pieces<'a> {
    keys: &'a KeyTable,
    domain: Domain,
    segments: &'a [Segment],
    at: usize,
    len: usize,
}

/// Returns a part of the registered memory that `segments` name, if the keys allow it.
#[inline]
pub(crate) fn gather<'a>(
    keys: &'a KeyTable,
    domain: Domain,
    segments: &'a [Segment],
    part: Range<usize>,
) -> Result<Source<'a>, Cause> {
    for (index, segment) in segments.iter().enumerate() {
        let (region, start) = allowed(keys, domain, index, segment, Rights::NONE)?;
        if segments.len() == 1 {
            let words = WordBytes::new(region.words(), start + part.start..start + part.end);
            if let Some(words) = words {
                return Ok(Source::Words(words));
            }
        }
    }
    let (at, len) = (part.start, part.len());
    Ok(Source::Pieces(Pieces { keys, domain, segments, at, len }))
}

/// Returns the memory of a segment and where the segment begins in it, or why the segment may not
/// be used.
#[inline]
pub(crate) fn allowed<'a>(
    keys: &'a KeyTable,
    domain: Domain,
    index: usize,
    segment: &Segment,
    needed: Rights,
) -> Result<(&'a crate::memory::Region, usize), Cause> {
    keys.local(domain, segment, needed)
        .map_err(|why| Cause::LocalProtection { segment: index as u16, why })
}

/// Puts a payload into memory from byte `at` on, where there must be room for it. If the keys do
/// not allow it, nothing is written.
#[inline(always)]
pub(crate) fn scatter<P: Payload>(
    memory: &mut Memory,
    at: usize,
    payload: P,
    keys: &KeyTable,
    domain: Domain,
) -> Result<(), Cause> {
    if let Memory::Buf(buf) = memory {
        payload.copy_to(&mut buf.capacity_mut()[at..at + payload.len()]);
        return Ok(());
    }
    scatter_to_segments(memory.segments(), at, payload, keys, domain)
}

fn scatter_to_segments<P: Payload>(
    segments: &[Segment],
    at: usize,
    payload: P,
    keys: &KeyTable,
    domain: Domain,
) -> Result<(), Cause> {
    let place = |index: usize| allowed(keys, domain, index, &segments[index], Rights::LOCAL_WRITE);
    for index in 0..segments.len() {
        place(index)?;
    }
    pieces(segments, at, payload.len(), |index, from, count, done| {
        if let Ok((region, start)) = place(index) {
            payload.part(done, count).copy_to_words(region.words(), start + from);
        }
    });
    Ok(())
}

/// Calls `each` for each segment that holds some of the bytes `at..at + len` of all segments
/// together, with the segment's index, where in the segment those bytes begin, how many they are,
/// and where they stand in the range.
#[inline]
pub(crate) fn pieces(
    segments: &[Segment],
    at: usize,
    len: usize,
    mut each: impl FnMut(usize, usize, usize, usize),
) {
    let (mut skip, mut done) = (at, 0);
    for (index, segment) in segments.iter().enumerate() {
        let segment = segment.len as usize;
        if skip >= segment {
            skip -= segment;
            continue;
        }
        let count = (segment - skip).min(len - done);
        if count > 0 {
            each(index, skip, count, done);
        }
        (skip, done) = (0, done + count);
        if done == len {
            break;
        }
    }
}

impl<'a> Pieces<'a> {
    /// Calls `each` with every piece and where the piece stands in the payload.
    fn each(&self, mut each: impl FnMut(WordBytes<'a>, usize)) {
        pieces(self.segments, self.at, self.len, |index, from, count, done| {
            let segment = &self.segments[index];
            let found = self.keys.local(self.domain, segment, Rights::NONE).ok();
            let words = found.and_then(|(region, start)| {
                WordBytes::new(region.words(), start + from..start + from + count)
            });
            if let Some(words) = words {
                each(words, done);
            }
        });
    }
}

impl Payload for Source<'_> {
    #[inline]
    fn len(&self) -> usize {
        match self {
            Self::Words(words) => words.len(),
            Self::Pieces(pieces) => pieces.len,
        }
    }

    #[inline]
    fn copy_to(&self, to: &mut [u8]) {
        match self {
            Self::Words(words) => words.copy_to(to),
            Self::Pieces(pieces) => {
                pieces.each(|words, at| words.copy_to(&mut to[at..at + words.len()]));
            }
        }
    }

    fn copy_to_summed(&self, to: &mut [u8], crc: Crc) -> Crc {
        if let Self::Words(words) = self {
            return words.copy_to_summed(to, crc);
        }
        self.copy_to(to);
        crc.update(&to[..self.len()])
    }

    #[inline]
    fn copy_to_words(&self, to: &[AtomicU64], at: usize) {
        match self {
            Self::Words(words) => words.copy_to_words(to, at),
            Self::Pieces(pieces) => {
                pieces.each(|words, further| words.copy_to_words(to, at + further));
            }
        }
    }

    #[inline]
    fn part(&self, at: usize, len: usize) -> Self {
        match self {
            Self::Words(words) => Self::Words(words.part(at, len)),
            Self::Pieces(pieces) => Self::Pieces(Pieces { at: pieces.at + at, len, ..*pieces }),
        }
    }
}
