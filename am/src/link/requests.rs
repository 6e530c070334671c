//! Sending requests, each of which takes a credit.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use doorbell_verbs::Buf;
use doorbell_verbs::floor::HeldNic;

use super::{Link, SendSide, To};
use crate::error::{SendError, Unsent};
use crate::shared::handles;
use crate::wire::{Content, Header, Kind, MOST_WORDS};

impl Link {
    /// Fails if a request of this content may not be sent: from a handler, or for its length.
    #[inline]
    pub fn check_allowed(&self, content: Content<'_>) -> Result<(), SendError> {
        if handles() {
            return Err(SendError::InHandler);
        }
        self.check_takes(content)
    }

    /// Fails if the content is longer than the peer takes in a message.
    #[inline]
    pub fn check_takes(&self, Content { words, payload }: Content<'_>) -> Result<(), SendError> {
        // Words beyond the first sixteen take the place of payload, and so does their number.
        let count = words.len();
        let beyond = if count > MOST_WORDS { 8 * (count - MOST_WORDS + 1) } else { 0 };
        let len = payload.len() + beyond;
        if len > 0 && len > self.longest() {
            return Err(self.too_long(len, self.longest()));
        }
        Ok(())
    }

    /// Returns the error of content of `len` bytes, which is longer than the `most` that may be
    /// sent.
    #[cold]
    pub fn too_long(&self, len: usize, most: usize) -> SendError {
        SendError::TooLong { peer: self.peer_text(), what: Unsent::Message, len, most }
    }

    /// Sends a request if there is a credit. Returns whether there was one.
    #[inline]
    pub fn try_request(
        self: &Arc<Self>,
        handler: u16,
        content: Content<'_>,
    ) -> Result<bool, SendError> {
        let mut out = self.send_side();
        let admitted = self.admit(&mut out)?;
        if admitted {
            self.request(&mut out, handler, content)?;
        }
        Ok(admitted)
    }

    /// Sends a request at once, whatever else is under way, if there is a credit. Returns whether
    /// there was one.
    #[inline]
    pub fn try_request_at_once(
        self: &Arc<Self>,
        handler: u16,
        content: Content<'_>,
    ) -> Result<bool, SendError> {
        let mut out = self.send_side();
        let admitted = self.admit(&mut out)?;
        if admitted {
            self.check_stands(&out)?;
            out.one_way += 1;
            let words = content.words.len();
            let header = Header { kind: Kind::Request, words, handler, call: 0 };
            self.send(&mut out, header, content, Some(HeldNic::none()));
        }
        Ok(admitted)
    }

    /// Sends the request of a call if there is a credit. Returns the call's number, by which its
    /// answer is found in the reply table.
    #[inline]
    pub fn try_call(
        self: &Arc<Self>,
        handler: u16,
        content: Content<'_>,
    ) -> Result<Option<u16>, SendError> {
        let mut out = self.send_side();
        let admitted = self.admit_call(&mut out)?;
        if admitted { self.call(&mut out, handler, content) } else { Ok(None) }
    }

    /// Sends a request that is no call. The caller has taken a credit.
    #[inline]
    pub fn request(
        self: &Arc<Self>,
        out: &mut SendSide,
        handler: u16,
        content: Content<'_>,
    ) -> Result<(), SendError> {
        self.check_stands(out)?;
        out.one_way += 1;
        let at_once = self.is_heard(out);
        self.send_request(out, To { handler, call: 0 }, content, at_once);
        Ok(())
    }

    /// Sends a request whose payload is in a buffer that has room for the header and the words in
    /// front of it.
    pub fn request_gathered(
        self: &Arc<Self>,
        out: &mut SendSide,
        handler: u16,
        words: &[u64],
        buffer: Buf,
    ) -> Result<(), SendError> {
        self.check_stands(out)?;
        out.one_way += 1;
        let (alone, packs) = (self.is_heard(out) || out.under_way == 1, self.packs());
        let header = Header { kind: Kind::Request, words: words.len(), handler, call: 0 };
        let Some(outbox) = self.outbox(out) else { return Ok(()) };
        let at_once = !packs || alone && !outbox.holds();
        if outbox.send_in_place(header, words, buffer, at_once) {
            self.hold();
        }
        Ok(())
    }

    /// Returns whether the peer was heard of since the last request. The first request behind one of
    /// the peer's may be what the peer waits for, as in turns.
    #[inline]
    fn is_heard(&self, out: &mut SendSide) -> bool {
        let heard = self.received.load(Ordering::Relaxed);
        std::mem::replace(&mut out.heard, heard) != heard
    }

    /// Sends the request of a call, and returns the call's number, or `None` if there is no number
    /// for it. The caller has taken a credit.
    #[inline]
    pub fn call(
        self: &Arc<Self>,
        out: &mut SendSide,
        handler: u16,
        content: Content<'_>,
    ) -> Result<Option<u16>, SendError> {
        self.check_stands(out)?;
        if !out.calls.has_room() {
            return Ok(None);
        }
        let call = out.calls.begin();
        self.send_request(out, To { handler, call }, content, false);
        Ok(Some(call))
    }

    /// Sends a request, at once if that is wished or no other is under way.
    #[inline]
    fn send_request(
        self: &Arc<Self>,
        out: &mut SendSide,
        to: To,
        content: Content<'_>,
        at_once: bool,
    ) {
        let alone = at_once || out.under_way == 1;
        let words = content.words.len();
        let header = Header { kind: Kind::Request, words, handler: to.handler, call: to.call };
        self.send(out, header, content, alone.then(HeldNic::none));
    }
}
