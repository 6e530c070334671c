//! Requests, which leave if there is a credit.

use std::sync::Arc;

use doorbell_verbs::Data;
use doorbell_verbs::floor::HeldNic;
use doorbell_verbs::work::{Send, Write};

use super::{Link, Out, Placed, To};
use crate::content::Content;
use crate::error::SendError;
use crate::handling::handles;
use crate::outbox::{MUCH, MUCH_MAPPED};
use crate::wire::{Header, Kind, Placement};
use crate::words::MOST_WORDS;

impl Link {
    /// The one by which a request goes: that of its size, if sizes have their own.
    #[inline]
    pub fn lane(self: &Arc<Self>, content: Content<'_>) -> &Arc<Self> {
        let takes = |lane: &&Arc<Self>| lane.takes(content).is_ok();
        self.lanes().iter().find(takes).unwrap_or(self)
    }

    /// Whether a request of this may be sent from here.
    #[inline]
    pub fn allows(&self, content: Content<'_>) -> Result<(), SendError> {
        if handles() {
            return Err(SendError::InHandler);
        }
        self.takes(content)
    }

    /// Whether the peer takes this in a message.
    #[inline]
    pub fn takes(&self, Content { words, payload }: Content<'_>) -> Result<(), SendError> {
        // Words beyond the first take the place of payload, and so does their number.
        let count = words.len();
        let beyond = if count > MOST_WORDS { 8 * (count - MOST_WORDS + 1) } else { 0 };
        let len = payload.len() + beyond;
        if len > 0 && len > self.longest() {
            return Err(SendError::Payload { len, most: self.longest() });
        }
        Ok(())
    }

    /// Sends a request, if there is a credit. Whether there was.
    #[inline]
    pub fn try_request(
        self: &Arc<Self>,
        handler: u16,
        content: Content<'_>,
    ) -> Result<bool, SendError> {
        let mut out = self.out();
        let admitted = self.admit(&mut out)?;
        if admitted {
            self.request(&mut out, handler, content)?;
        }
        Ok(admitted)
    }

    /// Sends a request at once, whatever is under way beside it, if there is a credit. Whether
    /// there was.
    #[inline]
    pub fn try_request_at_once(
        self: &Arc<Self>,
        handler: u16,
        content: Content<'_>,
    ) -> Result<bool, SendError> {
        let mut out = self.out();
        let admitted = self.admit(&mut out)?;
        if admitted {
            self.stands(&out)?;
            out.plain += 1;
            let words = content.words.len();
            let header = Header { kind: Kind::Request, words, handler, call: 0 };
            self.send(&mut out, header, content, Some(HeldNic::none()));
        }
        Ok(admitted)
    }

    /// Sends a request whose answer is kept for who waits for it, if there is a credit. Which call
    /// it is.
    #[inline]
    pub fn try_call(
        self: &Arc<Self>,
        handler: u16,
        content: Content<'_>,
    ) -> Result<Option<u16>, SendError> {
        let mut out = self.out();
        let admitted = self.admit(&mut out)?;
        if admitted { self.call(&mut out, handler, content).map(Some) } else { Ok(None) }
    }

    /// Sends a request for which there was a credit.
    #[inline]
    pub fn request(
        self: &Arc<Self>,
        out: &mut Out,
        handler: u16,
        content: Content<'_>,
    ) -> Result<(), SendError> {
        self.stands(out)?;
        out.plain += 1;
        self.send_request(out, To { handler, call: 0 }, content);
        Ok(())
    }

    /// Sends a request for which there was a credit, and whose answer is kept. Which call it is.
    #[inline]
    pub fn call(
        self: &Arc<Self>,
        out: &mut Out,
        handler: u16,
        content: Content<'_>,
    ) -> Result<u16, SendError> {
        self.stands(out)?;
        let call = out.calls.begin();
        self.send_request(out, To { handler, call }, content);
        Ok(call)
    }

    /// One that nothing is under way beside is alone, and goes at once.
    #[inline]
    fn send_request(self: &Arc<Self>, out: &mut Out, to: To, content: Content<'_>) {
        let alone = out.taken == 1;
        let words = content.words.len();
        let header = Header { kind: Kind::Request, words, handler: to.handler, call: to.call };
        self.send(out, header, content, alone.then(HeldNic::none));
    }

    /// Places data at an offset of the peer's segment, if there is a credit: see
    /// [`place`](Self::place). What is to be placed when there is one, if there was none.
    #[inline]
    pub fn try_place(
        self: &Arc<Self>,
        handler: u16,
        words: &[u64],
        offset: u64,
        data: Data,
    ) -> Result<Result<u16, Placed>, SendError> {
        let mut out = self.out();
        let memory = self.locate(&out, offset, data.len())?;
        let placed = Placed { offset, data, memory };
        if !self.admit(&mut out)? {
            return Ok(Err(placed));
        }
        self.place(&mut out, handler, words, placed).map(Ok)
    }

    /// Places data in the peer's segment, for which there was a credit, and has a request run
    /// behind that. Which one it is of those that wait for their memory to come back.
    pub fn place(
        self: &Arc<Self>,
        out: &mut Out,
        handler: u16,
        words: &[u64],
        placed: Placed,
    ) -> Result<u16, SendError> {
        /// The most bytes of one. Metadata makes the last packet of several longer than the others,
        /// which a run of them may not have: it would end there, and the next begin.
        const ONE_PACKET: u64 = 4096;
        self.stands(out)?;
        if !out.asked && !out.segment.is_empty() && self.endpoint.shared.maps() {
            out.asked = true;
            self.endpoint.borrows(self.clone());
        }
        let Placed { offset, data, memory } = placed;
        let (source, len) = (out.sources.get_or_insert_default().begin(), data.len());
        // What is mapped is written without a packet that metadata could go with.
        let by_metadata = words.is_empty()
            && out.mapped.is_none()
            && len <= ONE_PACKET
            && self.goes_together()
            && self.peer().is_some_and(|peer| peer.metadata);
        out.plain += 1;
        let alone = out.taken == 1;
        let mapped = out.mapped.is_some();
        let half = usize::from(out.credits + out.taken) / 2;
        let Some(outbox) = self.outbox(out) else { return Ok(source) };
        let write = Write::new(data, memory).expect("it was measured").id(source.into());
        let first = if by_metadata {
            let header = Header { kind: Kind::Request, words: 0, handler, call: 0 };
            outbox.put(write.metadata(Placement { header, offset }.metadata()), len)
        } else {
            let all = &mut [0; MOST_WORDS + 2];
            let words = placed_words(all, [offset, len], words);
            let header = Header { kind: Kind::Placed, words: words.len(), handler, call: 0 };
            let content = Content { words, payload: &[] };
            // Half of what may be under way, so that the peer is at it while the other half is
            // written.
            let (much, most) = if mapped { (MUCH_MAPPED, half) } else { (MUCH, usize::MAX) };
            outbox.put_told((write, len), (header, content), (&self.buffers, much, most))
        };
        if alone || !self.goes_together() {
            outbox.flush();
        } else if first {
            self.endpoint.shared.holds(self.clone());
        }
        Ok(source)
    }

    /// Says what is to be carried, for which there was a credit.
    pub fn carry(
        self: &Arc<Self>,
        handler: u16,
        words: &[u64],
        place: [u64; 2],
    ) -> Result<(), SendError> {
        let mut out = self.out();
        self.stands(&out)?;
        out.plain += 1;
        let all = &mut [0; MOST_WORDS + 2];
        let words = placed_words(all, place, words);
        let header = Header { kind: Kind::Carried, words: words.len(), handler, call: 0 };
        self.send(&mut out, header, Content { words, payload: &[] }, Some(HeldNic::none()));
        Ok(())
    }

    /// Sends a piece of it, for which there was a credit. If it is the last, which one it is of
    /// those that wait for their memory to come back.
    pub fn carry_piece(&self, piece: Send, is_last: bool) -> Result<Option<u16>, SendError> {
        let header = Header { kind: Kind::Carried, words: 0, handler: 0, call: 0 };
        let out = &mut *self.out();
        self.stands(out)?;
        out.plain += 1;
        let source = is_last.then(|| out.sources.get_or_insert_default().begin());
        let piece = piece.imm(header.imm()).id(source.map_or(0, u64::from));
        if let Some(outbox) = &mut out.outbox {
            outbox.flush();
            outbox.post(piece);
        }
        Ok(source)
    }
}

/// Where something is placed and how long it is, and the handler's words behind that.
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
