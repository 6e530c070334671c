//! Placing data in the peer's segment.
//!
//! As a rule the NIC writes the data, and a request follows that runs the handler. With
//! [`Policy::PerSize`](crate::Policy::PerSize) the data leaves in messages, which the peer copies
//! into its segment: see [`Reassembly`](crate::receives::Reassembly).

use std::sync::Arc;

use doorbell_verbs::floor::HeldNic;
use doorbell_verbs::work::{Send, Write};
use doorbell_verbs::{Buf, Data, Mapped, Memory, RemoteMemory, Segment};

use super::outbox::{MUCH, MUCH_MAPPED};
use super::{Link, Placed, SendSide};
use crate::config::SegmentMemory;
use crate::error::SendError;
use crate::receives::Buffers;
use crate::wire::{Content, Header, Kind, MOST_WORDS, Placement};

impl Link {
    /// Returns the part of the peer's segment at an offset, or an error if the segment is shorter.
    #[inline]
    pub fn locate(&self, out: &SendSide, offset: u64, len: u64) -> Result<RemoteMemory, SendError> {
        out.segment.at(offset, len).map_err(|_| {
            let (peer, room) = (self.peer_text(), out.segment.len());
            SendError::Segment { peer, offset, len, room }
        })
    }

    /// [Places](Self::place) data at an offset of the peer's segment if there is a credit, and
    /// gives the data back if there is none.
    #[inline]
    pub fn try_place(
        self: &Arc<Self>,
        handler: u16,
        words: &[u64],
        offset: u64,
        data: Data,
    ) -> Result<Result<u16, Placed>, SendError> {
        let mut out = self.send_side();
        let memory = self.locate(&out, offset, data.len())?;
        let placed = Placed { offset, data, memory };
        if !self.admit(&mut out)? {
            return Ok(Err(placed));
        }
        self.place(&mut out, handler, words, placed).map(Ok)
    }

    /// Writes data into the peer's segment, followed by a request that runs a handler. The caller
    /// has taken a credit. Returns the number of the placement in the table of placements.
    pub fn place(
        self: &Arc<Self>,
        out: &mut SendSide,
        handler: u16,
        words: &[u64],
        placed: Placed,
    ) -> Result<u16, SendError> {
        /// The longest data that is announced by metadata of the write. Metadata makes the last
        /// packet of several longer than the others, which would end a run of packets.
        const ONE_PACKET: u64 = 4096;
        self.check_stands(out)?;
        self.ask_to_map(out);
        let Placed { offset, data, memory } = placed;
        let (placement, len) = (out.placements.get_or_insert_default().begin(), data.len());
        // Mapped memory is written without a packet that could carry metadata.
        let by_metadata = words.is_empty()
            && out.mapped.is_none()
            && len <= ONE_PACKET
            && self.packs()
            && self.peer().is_some_and(|peer| peer.metadata);
        out.one_way += 1;
        let alone = out.under_way == 1;
        let mapped = out.mapped.is_some();
        let half = usize::from(out.credits + out.under_way) / 2;
        let Some(outbox) = self.outbox(out) else { return Ok(placement) };
        let write = Write::new(data, memory).expect("the length was checked").id(placement.into());
        let first = if by_metadata {
            let header = Header { kind: Kind::Request, words: 0, handler, call: 0 };
            outbox.put(write.metadata(Placement { header, offset }.metadata()), len)
        } else {
            let all = &mut [0; MOST_WORDS + 2];
            let words = placed_words(all, [offset, len], words);
            let header = Header { kind: Kind::Placed, words: words.len(), handler, call: 0 };
            let content = Content { words, payload: &[] };
            // Half of what may be under way, so that the peer handles that while this side writes
            // the other half.
            let (much, most) = if mapped { (MUCH_MAPPED, half) } else { (MUCH, usize::MAX) };
            outbox.put_announced((write, len), (header, content), (&self.buffers, much, most))
        };
        if alone || !self.packs() {
            outbox.flush();
        } else if first {
            self.hold();
        }
        Ok(placement)
    }

    /// Asks the peer once to share its segment, if memory can be mapped here.
    fn ask_to_map(self: &Arc<Self>, out: &mut SendSide) {
        if !out.asked_to_map && !out.segment.is_empty() && self.endpoint.maps() {
            out.asked_to_map = true;
            if let Some(owner) = self.endpoint.owner.upgrade() {
                owner.map_segment(self.clone());
            }
        }
    }

    /// Announces data that follows in messages. The caller has taken a credit.
    pub fn announce_fragments(
        self: &Arc<Self>,
        handler: u16,
        words: &[u64],
        place: [u64; 2],
    ) -> Result<(), SendError> {
        let mut out = self.send_side();
        self.check_stands(&out)?;
        out.one_way += 1;
        let all = &mut [0; MOST_WORDS + 2];
        let words = placed_words(all, place, words);
        let header = Header { kind: Kind::Fragment, words: words.len(), handler, call: 0 };
        self.send(&mut out, header, Content { words, payload: &[] }, Some(HeldNic::none()));
        Ok(())
    }

    /// Sends a fragment of announced data. The caller has taken a credit. For the last fragment,
    /// returns the number of the placement in the table of placements.
    pub fn send_fragment(&self, fragment: Send, is_last: bool) -> Result<Option<u16>, SendError> {
        let header = Header { kind: Kind::Fragment, words: 0, handler: 0, call: 0 };
        let out = &mut *self.send_side();
        self.check_stands(out)?;
        out.one_way += 1;
        let placement = is_last.then(|| out.placements.get_or_insert_default().begin());
        let fragment = fragment.imm(header.imm()).id(placement.map_or(0, u64::from));
        if let Some(outbox) = &mut out.outbox {
            outbox.flush();
            outbox.post(fragment);
        }
        Ok(placement)
    }

    /// Shares this side's segment with the peer, if the segment is shared memory and the endpoint
    /// admits the peer. Returns whether it is shared.
    pub fn grant_segment(&self) -> bool {
        let shared = matches!(self.endpoint.config.segment, Some(SegmentMemory::Shared(_)));
        let grants = shared && self.is_admitted() && self.endpoint.maps();
        let Some(segment) = self.endpoint.segment.clone().filter(|_| grants) else { return false };
        let connection = self.connection.clone();
        if !std::mem::replace(&mut self.send_side().granted_segment, true) {
            // In a task, since whoever handles a message may hold the NIC's lock.
            self.endpoint.runtime.spawn(async move {
                if let Err(why) = connection.grant(&segment) {
                    tracing::debug!(qpn = %connection.qpn(), %why, "a segment was not granted");
                }
            });
        }
        true
    }
}

impl SendSide {
    /// Keeps the mapping of the peer's segment for as long as the link stands.
    pub fn set_mapped(&mut self, mapped: Mapped) {
        if self.ending.is_none() {
            self.mapped = Some(Box::new(mapped));
        }
    }
}

/// Puts the words of a handler behind the offset and length of what is placed.
fn placed_words<'w>(
    all: &'w mut [u64; MOST_WORDS + 2],
    place: [u64; 2],
    words: &[u64],
) -> &'w [u64] {
    let all = &mut all[..place.len() + words.len()];
    let (front, behind) = all.split_at_mut(place.len());
    front.copy_from_slice(&place);
    behind.copy_from_slice(words);
    all
}

/// Splits data into sends of at most `most` bytes: parts of registered memory, or copies.
pub(crate) fn fragments<'d>(
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
        debug_assert!(copied.is_ok(), "a buffer is as long as a message");
        Send::new(copy)
    }))
}

fn parts(whole: Segment, most: usize) -> impl Iterator<Item = Send> {
    (0..whole.len).step_by(most).map(move |at| {
        let len = (whole.len - at).min(most as u32);
        Send::new(Segment { address: whole.address + u64::from(at), len, lkey: whole.lkey })
    })
}
