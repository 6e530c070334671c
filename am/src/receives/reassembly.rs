//! Reassembly of payloads that a peer places by messages, without a write of the NIC: see
//! [`Policy::PerSize`](crate::Policy::PerSize).
//!
//! A first message announces where the payload begins, how long it is, and the handler's words.
//! Fragments follow, a message each, which are copied into the segment. Behind the last of them the
//! handler runs. A peer places one payload after the other; a payload that it leaves unfinished is
//! forgotten when the next is announced.

use std::ops::Range;

use doorbell_verbs::Region;

use crate::error::Undeliverable;
use crate::receives::Arrival;
use crate::wire::{Header, Kind};

/// The state of the payload that a peer places by messages.
#[derive(Default)]
pub(crate) enum Reassembly {
    /// No payload is announced.
    #[default]
    Idle,
    /// The announced payload was refused, and the peer was told. Its fragments are dropped.
    Refused,
    /// Fragments of the announced payload are awaited.
    UnderWay(Box<Announced>),
}

/// An announced payload, of which fragments are missing.
pub(crate) struct Announced {
    handler: u16,
    words: Vec<u8>,
    /// The part of the segment that the payload goes to.
    place: Range<u64>,
    /// The offset of the next fragment.
    next: u64,
}

/// The outcome of an announcement or a fragment.
pub(crate) enum Reassembled {
    /// The message is handled, and more are to come.
    More,
    /// The message was the last, and has become the request for the whole payload.
    Whole,
    /// The message belongs to no payload.
    Malformed,
    /// The payload, for the handler of this index, is refused.
    Refused(u16, Undeliverable),
}

impl Reassembly {
    /// Takes in an announcement or a fragment, and copies the fragment into the segment.
    pub fn take(
        &mut self,
        arrival: &mut Arrival,
        admitted: bool,
        segment: Option<&Region>,
    ) -> Reassembled {
        if arrival.header.words == 0 {
            return self.take_fragment(arrival, admitted, segment);
        }
        let announced = Announced::of(arrival, admitted, segment.map_or(0, Region::len));
        *self = Self::Idle;
        match announced {
            Ok(announced) if announced.place.is_empty() => announced.finish(arrival),
            Ok(announced) => {
                *self = Self::UnderWay(Box::new(announced));
                Reassembled::More
            }
            Err(refused) => {
                *self = Self::Refused;
                refused
            }
        }
    }

    fn take_fragment(
        &mut self,
        arrival: &mut Arrival,
        admitted: bool,
        segment: Option<&Region>,
    ) -> Reassembled {
        let (mut announced, segment) = match (std::mem::take(self), segment) {
            (Self::UnderWay(announced), Some(segment)) => (announced, segment),
            (Self::Refused, _) => {
                *self = Self::Refused;
                return Reassembled::More;
            }
            _ => return Reassembled::Malformed,
        };
        if !admitted {
            *self = Self::Refused;
            return Reassembled::Refused(announced.handler, Undeliverable::WrongTag);
        }
        let data = arrival.data();
        let end = announced.next.saturating_add(data.len() as u64);
        let fits = arrival.whole && !data.is_empty() && end <= announced.place.end;
        if !fits || segment.write_at(announced.next as usize, data).is_err() {
            return Reassembled::Malformed;
        }
        announced.next = end;
        if end == announced.place.end {
            return announced.finish(arrival);
        }
        *self = Self::UnderWay(announced);
        Reassembled::More
    }
}

impl Announced {
    /// Parses an announcement, for a segment of `room` bytes.
    fn of(arrival: &Arrival, admitted: bool, room: usize) -> Result<Self, Reassembled> {
        let Header { handler, words, .. } = arrival.header;
        let split = arrival.data().split_at_checked(8 * Kind::Fragment.own_words());
        let Some((&[offset, len], rest)) = split.map(|(own, rest)| (own.as_chunks().0, rest))
        else {
            return Err(Reassembled::Malformed);
        };
        let whole = arrival.whole && rest.len() + 8 * Kind::Fragment.own_words() == 8 * words;
        if !whole {
            return Err(Reassembled::Malformed);
        }
        if !admitted {
            return Err(Reassembled::Refused(handler, Undeliverable::WrongTag));
        }
        let (start, len) = (u64::from_le_bytes(offset), u64::from_le_bytes(len));
        let end = start.checked_add(len).filter(|&end| end <= room as u64);
        let end = end.ok_or(Reassembled::Refused(handler, Undeliverable::Segment))?;
        Ok(Self { handler, words: rest.to_vec(), place: start..end, next: start })
    }

    /// Turns the last message of the payload into the request for the whole.
    fn finish(self, arrival: &mut Arrival) -> Reassembled {
        let Self { handler, words, place, .. } = self;
        arrival.header = Header { kind: Kind::Request, words: words.len() / 8, handler, call: 0 };
        arrival.placed = Some(place);
        // The fragment is in the segment, and the buffer is at least as long as a message's words.
        let held = arrival.buffer.as_mut().map(|buffer| {
            buffer.clear();
            buffer.extend_from_slice(&words)
        });
        arrival.data = 0..words.len();
        if matches!(held, Some(Ok(()))) { Reassembled::Whole } else { Reassembled::Malformed }
    }
}
