//! What is placed by messages, without the NIC's writing anything: see
//! [`Policy::PerSize`](crate::Policy::PerSize).
//!
//! A first message says where it begins, how long it is, and what the handler gets. Pieces follow,
//! one message each, which the peer copies into its segment; behind the last of them it runs the
//! handler. One is carried after the other. What is left off in the middle is forgotten when the
//! next begins.

use std::ops::Range;

use doorbell_verbs::work::Send;
use doorbell_verbs::{Buf, Data, Memory, Region, Segment};

use crate::arrival::Arrival;
use crate::buffers::Buffers;
use crate::error::Undeliverable;
use crate::wire::{Header, Kind};

/// What a peer carries here.
#[derive(Default)]
pub(crate) enum Carrying {
    #[default]
    Nothing,
    /// What may not be, and of which the peer has been told.
    Refused,
    Something(Box<Something>),
}

pub(crate) struct Something {
    handler: u16,
    words: Vec<u8>,
    /// Where it belongs, and where what comes next does.
    place: Range<u64>,
    next: u64,
}

/// What became of a message that carries.
pub(crate) enum Carried {
    /// It is done with.
    More,
    /// It was the last, and is the request of all now.
    All,
    /// It is no part of anything.
    Nothing,
    /// What it is of, for this handler, may not be.
    Refused(u16, Undeliverable),
}

impl Carrying {
    /// Takes a message that carries.
    pub fn take(
        &mut self,
        arrival: &mut Arrival,
        admitted: bool,
        segment: Option<&Region>,
    ) -> Carried {
        if arrival.header.words == 0 {
            return self.go_on(arrival, admitted, segment);
        }
        let begun = Something::of(arrival, admitted, segment.map_or(0, Region::len));
        *self = Self::Nothing;
        match begun {
            Ok(begun) if begun.place.is_empty() => begun.finish(arrival),
            Ok(begun) => {
                *self = Self::Something(Box::new(begun));
                Carried::More
            }
            Err(refused) => {
                *self = Self::Refused;
                refused
            }
        }
    }

    fn go_on(
        &mut self,
        arrival: &mut Arrival,
        admitted: bool,
        segment: Option<&Region>,
    ) -> Carried {
        let (mut it, segment) = match (std::mem::take(self), segment) {
            (Self::Something(it), Some(segment)) => (it, segment),
            (Self::Refused, _) => {
                *self = Self::Refused;
                return Carried::More;
            }
            _ => return Carried::Nothing,
        };
        if !admitted {
            *self = Self::Refused;
            return Carried::Refused(it.handler, Undeliverable::WrongTag);
        }
        let data = arrival.data();
        let end = it.next.saturating_add(data.len() as u64);
        let fits = arrival.whole && !data.is_empty() && end <= it.place.end;
        if !fits || segment.write_at(it.next as usize, data).is_err() {
            return Carried::Nothing;
        }
        it.next = end;
        if end == it.place.end {
            return it.finish(arrival);
        }
        *self = Self::Something(it);
        Carried::More
    }
}

impl Something {
    /// What a first message says.
    fn of(arrival: &Arrival, admitted: bool, room: usize) -> Result<Self, Carried> {
        let Header { handler, words, .. } = arrival.header;
        let split = arrival.data().split_at_checked(8 * Kind::Carried.own_words());
        let Some((&[offset, len], rest)) = split.map(|(own, rest)| (own.as_chunks().0, rest))
        else {
            return Err(Carried::Nothing);
        };
        let whole = arrival.whole && rest.len() + 8 * Kind::Carried.own_words() == 8 * words;
        if !whole {
            return Err(Carried::Nothing);
        }
        if !admitted {
            return Err(Carried::Refused(handler, Undeliverable::WrongTag));
        }
        let (start, len) = (u64::from_le_bytes(offset), u64::from_le_bytes(len));
        let end = start.checked_add(len).filter(|&end| end <= room as u64);
        let end = end.ok_or(Carried::Refused(handler, Undeliverable::Segment))?;
        Ok(Self { handler, words: rest.to_vec(), place: start..end, next: start })
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

/// The messages of data, none of which is longer than so much, without what goes with each: of
/// registered memory the parts, of other copies.
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
