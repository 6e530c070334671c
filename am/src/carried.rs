//! What is placed by messages, without the NIC's writing anything: see
//! [`Policy::PerSize`](crate::Policy::PerSize).
//!
//! A first message says where it begins, how long it is, and what the handler gets. Pieces follow, one
//! message each, which the peer copies into its segment; behind the last of them it runs the handler. One
//! is carried after the other. What is left off in the middle is forgotten when the next begins.

use std::ops::Range;

use doorbell_verbs::{Buf, Data, Memory, Region, Segment, Send};

use crate::buffers::Buffers;
use crate::error::Undeliverable;
use crate::message::Arrival;
use crate::wire::{Header, Kind};

/// What is being carried here.
pub(crate) struct Carrying {
    handler: u16,
    words: Vec<u8>,
    /// Where it belongs, and where what comes next does.
    place: Range<u64>,
    next: u64,
}

/// What became of a message that carries.
pub(crate) enum Carried {
    /// More is to come.
    More,
    /// It is all there, and the message is its request.
    All,
    /// It is no part of anything.
    Nothing,
    /// It may not be.
    Refused(Undeliverable),
}

impl Carrying {
    /// Takes a message that carries.
    pub fn take(
        carrying: &mut Option<Box<Self>>,
        arrival: &mut Arrival,
        segment: Option<&Region>,
    ) -> Carried {
        if arrival.header.words > 0 {
            return Self::begin(carrying, arrival, segment);
        }
        let (Some(mut it), Some(segment)) = (carrying.take(), segment) else {
            return Carried::Nothing;
        };
        let data = arrival.data();
        let end = it.next.saturating_add(data.len() as u64);
        if data.is_empty()
            || end > it.place.end
            || segment.write_at(it.next as usize, data).is_err()
        {
            return Carried::Nothing;
        }
        it.next = end;
        if end < it.place.end {
            *carrying = Some(it);
            return Carried::More;
        }
        it.finish(arrival)
    }

    fn begin(
        carrying: &mut Option<Box<Self>>,
        arrival: &mut Arrival,
        segment: Option<&Region>,
    ) -> Carried {
        *carrying = None;
        let own = Kind::Carried.own_words();
        let Some((place, words)) = arrival.data().split_at_checked(8 * own) else {
            return Carried::Nothing;
        };
        let &[offset, len] = place.as_chunks::<8>().0 else { return Carried::Nothing };
        let (start, len) = (u64::from_le_bytes(offset), u64::from_le_bytes(len));
        let room = segment.map_or(0, |segment| segment.len() as u64);
        let Some(end) = start.checked_add(len).filter(|&end| end <= room) else {
            return Carried::Refused(Undeliverable::Segment);
        };
        let few = words.len() == 8 * arrival.header.words.saturating_sub(own);
        let (handler, words) = (arrival.header.handler, words.to_vec());
        let begun = Self { handler, words, place: start..end, next: start };
        match (few, len) {
            (false, _) => Carried::Nothing,
            (true, 0) => begun.finish(arrival),
            (true, _) => {
                *carrying = Some(Box::new(begun));
                Carried::More
            }
        }
    }

    /// Makes its last message its request.
    fn finish(self, arrival: &mut Arrival) -> Carried {
        let Self { handler, words, place, .. } = self;
        arrival.header = Header { kind: Kind::Request, words: words.len() / 8, handler, call: 0 };
        arrival.placed = Some(place);
        // Its data is in the segment, and the buffer is as long as a message's words at least.
        let held = arrival.buffer.as_mut().map(|buffer| {
            buffer.clear();
            buffer.extend_from_slice(&words)
        });
        arrival.data = 0..words.len();
        if matches!(held, Some(Ok(()))) { Carried::All } else { Carried::Nothing }
    }
}

/// The messages of data, none of which is longer than so much, without what goes with each: of registered
/// memory the parts, of other copies.
pub(crate) fn pieces<'d>(
    data: &'d Data,
    most: usize,
    buffers: &'d Buffers,
) -> Box<dyn Iterator<Item = Send> + std::marker::Send + 'd> {
    match data {
        Data::Inline(few) => copies(few.bytes(), most, buffers),
        Data::Memory(Memory::None) => Box::new(std::iter::empty()),
        Data::Memory(Memory::Buf(buffer)) => copies(buffer, most, buffers),
        Data::Memory(Memory::Segment(segment)) => Box::new(parts(*segment, most)),
        Data::Memory(Memory::List(list)) => {
            Box::new(list.iter().flat_map(move |segment| parts(*segment, most)))
        }
    }
}

fn copies<'d>(
    bytes: &'d [u8],
    most: usize,
    buffers: &'d Buffers,
) -> Box<dyn Iterator<Item = Send> + std::marker::Send + 'd> {
    Box::new(bytes.chunks(most).map(|piece| {
        let mut copy: Buf = buffers.take();
        let copied = copy.extend_from_slice(piece);
        debug_assert!(copied.is_ok(), "a buffer holds as much as a message");
        Send::new(copy)
    }))
}

fn parts(whole: Segment, most: usize) -> impl Iterator<Item = Send> {
    (0..whole.len).step_by(most).map(move |at| {
        let len = (whole.len - at).min(most as u32);
        Send::new(Segment { address: whole.address + u64::from(at), len, lkey: whole.lkey })
    })
}
