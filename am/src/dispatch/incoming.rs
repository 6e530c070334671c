//! A completed receive: taken apart into messages, each of which is handled in its turn.

use std::sync::Arc;

use doorbell_verbs::{Attachment, Buf, Completion, Done, Memory};

use super::{Dispatcher, Looking};
use crate::costs::{Cost, span};
use crate::link::Link;
use crate::receives::Arrival;
use crate::shared::{Runs, count};
use crate::wire::pack::{self, Message};
use crate::wire::{Header, Kind, Placement};

impl Dispatcher {
    /// Handles a completed receive, which came `alone` or with others. Returns the buffer that is
    /// to be posted in its place, if one is.
    #[inline]
    pub fn received(
        &mut self,
        link: &Arc<Link>,
        completion: &mut Completion,
        alone: bool,
        looking: &mut Looking<'_>,
    ) -> Option<Buf> {
        let _semantics = span(Cost::Semantics);
        self.runs = if alone { Runs::Alone } else { Runs::OneOfSeveral };
        let Memory::Buf(buffer) = std::mem::take(&mut completion.memory) else { return None };
        if completion.outcome.is_ok() {
            link.count_message();
        }
        match (&completion.outcome, &completion.attached) {
            (Ok(Done::Received), Attachment::Nothing) => self.messages(link, buffer, looking),
            (Ok(Done::Received), Attachment::Imm(imm)) => {
                self.unframed(link, Header::from_imm(*imm), buffer, looking)
            }
            (Ok(Done::ReceivedWrite), Attachment::Metadata(metadata)) => {
                let placement = Placement::from_metadata(metadata);
                self.placed(link, placement, completion.len.into(), buffer, looking)
            }
            (Ok(_), _) => self.malformed(buffer),
            // The receive was flushed, since its connection is over.
            (Err(_), _) => link.flushed(buffer),
        }
    }

    /// Counts bytes that are no message.
    #[cold]
    fn malformed(&self, buffer: Buf) -> Option<Buf> {
        count(&self.counters.malformed);
        Some(buffer)
    }

    /// Handles a message whose header came in the immediate. The buffer has its words and payload.
    fn unframed(
        &mut self,
        link: &Arc<Link>,
        header: Header,
        buffer: Buf,
        looking: &mut Looking<'_>,
    ) -> Option<Buf> {
        if header.is_wide() || 8 * header.words > buffer.len() {
            return self.malformed(buffer);
        }
        let data = 0..buffer.len();
        self.arrive(link, &mut Arrival::alone(header, buffer, data), looking)
    }

    /// Handles a message whose payload, of `len` bytes, the NIC has placed in the segment.
    fn placed(
        &mut self,
        link: &Arc<Link>,
        placement: Option<Placement>,
        len: u64,
        buffer: Buf,
        looking: &mut Looking<'_>,
    ) -> Option<Buf> {
        let Some(Placement { header, offset }) = placement else { return self.malformed(buffer) };
        let mut arrival = Arrival::alone(header, buffer, 0..0);
        arrival.placed = Some(offset..offset.saturating_add(len));
        self.arrive(link, &mut arrival, looking)
    }

    /// Handles the messages of a send: one, as a rule, or several.
    #[inline]
    fn messages(
        &mut self,
        link: &Arc<Link>,
        buffer: Buf,
        looking: &mut Looking<'_>,
    ) -> Option<Buf> {
        match pack::message(&buffer, 0) {
            Some(Message { header, data, next, taken }) if next == buffer.len() => {
                link.hear_ack(taken);
                self.arrive(link, &mut Arrival::alone(header, buffer, data), looking)
            }
            Some(_) => self.unpack(link, buffer, looking),
            None => self.malformed(buffer),
        }
    }

    /// Handles each message of a send, one after the other, in the buffer that all share.
    fn unpack(&mut self, link: &Arc<Link>, buffer: Buf, looking: &mut Looking<'_>) -> Option<Buf> {
        self.runs = Runs::OneOfSeveral;
        let (mut at, mut rest) = (0, Some(buffer));
        while let Some(buffer) = rest.take() {
            let Some(Message { header, data, next, taken }) = pack::message(&buffer, at) else {
                return if at < buffer.len() { self.malformed(buffer) } else { Some(buffer) };
            };
            let fills = header == pack::FILLING && at > 0 && next == buffer.len();
            at = next;
            link.hear_ack(taken);
            if fills {
                return Some(buffer);
            }
            let buffer = Some(buffer);
            let mut arrival =
                Arrival { header, buffer, data, whole: false, posted: false, placed: None };
            rest = self.arrive(link, &mut arrival, looking);
        }
        rest
    }

    /// Checks a message, and handles it if its link is open. Returns the buffer that is to be
    /// posted in its place, or that has further messages.
    #[inline]
    fn arrive(
        &mut self,
        link: &Arc<Link>,
        arrival: &mut Arrival,
        looking: &mut Looking<'_>,
    ) -> Option<Buf> {
        looking.looked.handled += 1;
        if !arrival.fits(link.payload()) {
            count(&self.counters.malformed);
            return arrival.buffer.take();
        }
        if arrival.header.costs_credit() && !link.count_request() {
            count(&self.counters.malformed);
            link.end_overrun();
            return arrival.buffer.take();
        }
        if !link.is_awake() {
            return self.arrive_with_care(link, arrival, looking);
        }
        self.handle(link, arrival, looking)
    }

    /// Handles a message of a link that rests, or keeps it until its link is open.
    #[cold]
    fn arrive_with_care(
        &mut self,
        link: &Arc<Link>,
        arrival: &mut Arrival,
        looking: &mut Looking<'_>,
    ) -> Option<Buf> {
        if link.is_open() {
            link.take_care(arrival.header.kind);
            return self.handle(link, arrival, looking);
        }
        if link.is_cut_off() {
            return arrival.leave(&link.buffers);
        }
        let (arrival, rest) = arrival.detached(&link.buffers);
        self.early.push((link.clone(), arrival));
        rest
    }

    /// Handles a message of an open link, or defers a request if requests wait.
    #[inline]
    pub(super) fn handle(
        &mut self,
        link: &Arc<Link>,
        arrival: &mut Arrival,
        looking: &mut Looking<'_>,
    ) -> Option<Buf> {
        let buffers = &link.buffers;
        if arrival.header.asks() && (!self.runs_requests || !self.deferred.is_empty()) {
            let (arrival, rest) = arrival.detached(buffers);
            self.deferred.push_back((link.clone(), arrival));
            buffers.set_aside();
            return rest;
        }
        match arrival.header.kind {
            Kind::Request | Kind::Placed | Kind::Fragment => self.request(link, arrival, looking),
            Kind::Reply => self.reply(link, arrival, looking),
            Kind::Returned => self.returned(link, arrival, looking),
            Kind::Done => looking.looked.woke |= link.credit(arrival.header.call),
            Kind::Grant => looking.looked.woke |= link.granted(arrival.header.call),
            Kind::Unanswered => self.unanswered(link, arrival, looking),
        }
        arrival.leave(buffers)
    }
}
