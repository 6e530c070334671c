//! Handling: from what was received to the handler that it runs.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use doorbell_verbs::floor::HeldNic;
use doorbell_verbs::{Attachment, Buf, Completion, Done, Memory};

use crate::arrival::Arrival;
use crate::carried::Carried;
use crate::contained::contained;
use crate::content::Content;
use crate::costs::{Cost, span};
use crate::error::Undeliverable;
use crate::handlers::Tables;
use crate::link::{Link, To};
use crate::links;
use crate::message::{Asked, Replied, Request, Returned};
use crate::pack::{self, Message};
use crate::poller::{Looked, Looking};
use crate::reply::Reply;
use crate::room::Room;
use crate::tag::Tag;
use crate::wire::{Ask, Header, Kind, Placement, SYSTEM, awaits};

/// What was counted, for whoever asks.
#[derive(Default, Debug)]
pub(crate) struct Counters {
    pub requests: AtomicU64,
    pub replies: AtomicU64,
    pub returned: AtomicU64,
    pub undelivered: AtomicU64,
    pub malformed: AtomicU64,
    pub panics: AtomicU64,
    pub late: AtomicU64,
}

#[inline]
fn count(counter: &AtomicU64) {
    // Only the poller counts these.
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

/// What a thread runs just now.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Runs {
    Nothing,
    /// The handler of a message behind which no other is known of.
    Alone,
    /// That of one of several.
    OneOfSeveral,
}

thread_local! {
    static RUNS: Cell<Runs> = const { Cell::new(Runs::Nothing) };
}

/// Whether this thread runs a handler.
#[inline]
pub(crate) fn handles() -> bool {
    RUNS.get() != Runs::Nothing
}

/// Whether this thread handles several messages, whose answers go together.
#[inline]
pub(crate) fn handles_several() -> bool {
    RUNS.get() == Runs::OneOfSeveral
}

pub(crate) struct Handling {
    tables: Vec<Option<Tables>>,
    /// Whether requests are to run.
    requests: bool,
    /// Those that wait until they are.
    deferred: VecDeque<(Arc<Link>, Arrival)>,
    /// Messages of links that are not open yet.
    early: Vec<(Arc<Link>, Arrival)>,
    counters: Arc<Counters>,
    /// What the handlers are that run now.
    runs: Runs,
}

impl Handling {
    pub fn new(counters: Arc<Counters>) -> Self {
        Self {
            tables: Vec::new(),
            requests: true,
            deferred: VecDeque::new(),
            early: Vec::new(),
            counters,
            runs: Runs::OneOfSeveral,
        }
    }

    /// There is an endpoint.
    pub fn put(&mut self, number: usize, handlers: Tables) {
        if self.tables.len() <= number {
            self.tables.resize_with(number + 1, || None);
        }
        self.tables[number] = Some(handlers);
    }

    /// Whether there is one.
    pub fn serves(&self, number: usize) -> bool {
        self.tables.get(number).is_some_and(Option::is_some)
    }

    /// There was one: for it nothing is answered any more.
    pub fn remove(&mut self, number: usize) {
        self.early.retain(|(link, _)| link.endpoint.number != number);
        self.deferred.retain(|(link, _)| link.endpoint.number != number);
        // None is there behind the end.
        drop_table(self.tables.get_mut(number).and_then(Option::take));
    }

    /// A link is open: what came before is handled now, but requests of others in their turn.
    pub fn opened(&mut self, link: &Link, looked: &mut Looked) {
        if link.is_cut_off() {
            return;
        }
        link.set_open(true);
        let mut looking = Looking::new(HeldNic::none(), None);
        let requests = self.requests;
        self.requests = false;
        let came = |(link, _): &mut (Arc<Link>, _)| link.is_open();
        let early: Vec<_> = self.early.extract_if(.., came).collect();
        for (link, mut arrival) in early {
            if let Some(buffer) = self.handle(&link, &mut arrival, &mut looking) {
                link.post(buffer);
            }
        }
        self.requests = requests;
        looked.handled += looking.looked.handled;
        looked.woke |= looking.looked.woke;
    }

    /// Requests were lost with their link.
    pub fn lost(&mut self, link: &Arc<Link>, count: usize) {
        let its = |(early, _): &mut (Arc<Link>, _)| Arc::ptr_eq(early, link);
        for (link, mut arrival) in self.early.extract_if(.., its) {
            let buffer = arrival.leave(&link.buffers);
            buffer.into_iter().for_each(|buffer| link.post(buffer));
        }
        (0..count).for_each(|_| self.give_up(link, Undeliverable::PeerGone, None));
    }

    pub fn close(&mut self) {
        self.tables.drain(..).for_each(drop_table);
        self.deferred.clear();
        self.early.clear();
    }

    /// Begins to handle; if requests are to run, with those that waited.
    #[inline]
    pub fn begins(&mut self, requests: bool, looking: &mut Looking<'_>) {
        self.requests = requests;
        if requests && !self.deferred.is_empty() {
            self.catch_up(looking);
        }
    }

    /// Whether requests wait.
    #[inline]
    pub fn defers(&self) -> bool {
        !self.deferred.is_empty()
    }

    /// Whether any of a link do.
    pub fn defers_any_of(&self, link: &Arc<Link>) -> bool {
        self.deferred.iter().any(|(of, _)| Arc::ptr_eq(of, link))
    }

    #[cold]
    fn catch_up(&mut self, looking: &mut Looking<'_>) {
        self.runs = Runs::OneOfSeveral;
        while let Some((link, mut arrival)) = self.deferred.pop_front() {
            looking.looked.handled += 1;
            self.request(&link, &mut arrival, looking);
            let buffers = &link.buffers;
            arrival.leave(buffers).into_iter().for_each(|buffer| link.post(buffer));
        }
    }

    /// Handles what was received. The buffer that is to be posted in its place, if one is.
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
            link.takes_one();
        }
        match (&completion.outcome, &completion.attached) {
            (Ok(Done::Received), Attachment::Nothing) => self.messages(link, buffer, looking),
            (Ok(Done::Received), Attachment::Imm(imm)) => {
                self.data(link, Header::from_imm(*imm), buffer, looking)
            }
            (Ok(Done::ReceivedWrite), Attachment::Metadata(metadata)) => {
                let placed = Placement::from_metadata(metadata);
                self.placed(link, placed, completion.len.into(), buffer, looking)
            }
            (Ok(_), _) => self.malformed(buffer),
            // Its connection is over.
            (Err(_), _) => link.flushed(buffer),
        }
    }

    /// What came is no message.
    #[cold]
    fn malformed(&self, buffer: Buf) -> Option<Buf> {
        count(&self.counters.malformed);
        Some(buffer)
    }

    /// One message, of which the buffer has words and payload.
    fn data(
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

    /// One whose payload, of that length, the NIC has placed.
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

    /// One message, as a rule, or several.
    #[inline]
    fn messages(
        &mut self,
        link: &Arc<Link>,
        buffer: Buf,
        looking: &mut Looking<'_>,
    ) -> Option<Buf> {
        match pack::message(&buffer, 0) {
            Some(Message { header, data, next, taken }) if next == buffer.len() => {
                link.hears_of(taken);
                self.arrive(link, &mut Arrival::alone(header, buffer, data), looking)
            }
            Some(_) => self.unpack(link, buffer, looking),
            None => self.malformed(buffer),
        }
    }

    /// Each message of a send, one after the other, in the buffer of all.
    fn unpack(&mut self, link: &Arc<Link>, buffer: Buf, looking: &mut Looking<'_>) -> Option<Buf> {
        self.runs = Runs::OneOfSeveral;
        let (mut at, mut rest) = (0, Some(buffer));
        while let Some(buffer) = rest.take() {
            let Some(Message { header, data, next, taken }) = pack::message(&buffer, at) else {
                return if at < buffer.len() { self.malformed(buffer) } else { Some(buffer) };
            };
            let fills = header == pack::FILLING && at > 0 && next == buffer.len();
            at = next;
            link.hears_of(taken);
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

    /// A message. The buffer that is to be posted in its place: if others are in it, too, when
    /// those are handled.
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
        if arrival.header.asks() && !link.comes() {
            count(&self.counters.malformed);
            link.overrun();
            return arrival.buffer.take();
        }
        if !link.is_open() {
            if link.is_cut_off() {
                return arrival.leave(&link.buffers);
            }
            let (arrival, rest) = arrival.detached(&link.buffers);
            self.early.push((link.clone(), arrival));
            return rest;
        }
        self.handle(link, arrival, looking)
    }

    /// The same of a link that is open.
    #[inline]
    fn handle(
        &mut self,
        link: &Arc<Link>,
        arrival: &mut Arrival,
        looking: &mut Looking<'_>,
    ) -> Option<Buf> {
        let buffers = &link.buffers;
        if arrival.header.asks() && (!self.requests || !self.deferred.is_empty()) {
            let (arrival, rest) = arrival.detached(buffers);
            self.deferred.push_back((link.clone(), arrival));
            return rest;
        }
        match arrival.header.kind {
            Kind::Request | Kind::Placed | Kind::Carried => self.request(link, arrival, looking),
            Kind::Reply => self.reply(link, arrival, looking),
            Kind::Returned => self.returned(link, arrival, looking),
            Kind::Done => looking.looked.woke |= link.credited(arrival.header.call),
            Kind::Grant => looking.looked.woke |= link.granted(arrival.header.call),
            Kind::Unanswered => self.unanswered(link, arrival, looking),
        }
        arrival.leave(buffers)
    }

    #[inline]
    fn request(&mut self, link: &Arc<Link>, arrival: &mut Arrival, looking: &mut Looking<'_>) {
        let kind = arrival.header.kind;
        if kind == Kind::Placed && !locate(arrival) {
            return count(&self.counters.malformed);
        }
        if kind == Kind::Carried && !self.carried(link, arrival) {
            return;
        }
        count(&self.counters.requests);
        let header = arrival.header;
        let endpoint = &link.endpoint;
        if header.handler == SYSTEM {
            return self.system(link, arrival);
        }
        if arrival.placed.as_ref().is_some_and(|placed| placed.end > endpoint.room()) {
            count(&self.counters.undelivered);
            return link.give_back(header, Undeliverable::Segment, &[]);
        }
        let table = self.tables.get_mut(endpoint.number).and_then(Option::as_mut);
        let handler = table.and_then(|table| table.requests.get_mut(header.handler));
        let (true, Some(run)) = (link.is_admitted(), handler) else {
            return self.refuse(link, arrival);
        };
        let mut room = Room::new();
        let words = room.read(arrival.words());
        let mut asked = Asked::new(link, arrival, looking.nic.reborrow());
        let request = Request::new(&mut asked);
        run_contained(&self.counters, self.runs, || run(request, words));
    }

    /// A message that is copied into the segment. Whether that was the last, and is a request now.
    #[cold]
    fn carried(&mut self, link: &Arc<Link>, arrival: &mut Arrival) -> bool {
        match link.carried(arrival) {
            Carried::All => return true,
            Carried::More => link.done(0),
            Carried::Nothing => {
                count(&self.counters.malformed);
                link.done(0);
            }
            Carried::Refused(handler, why) => {
                count(&self.counters.undelivered);
                let header = Header { kind: Kind::Request, words: 0, handler, call: 0 };
                link.give_back(header, why, &[]);
            }
        }
        false
    }

    /// What another endpoint says to this one.
    #[cold]
    fn system(&mut self, link: &Arc<Link>, arrival: &Arrival) {
        let mut room = Room::new();
        let (words, payload) = (room.read(arrival.words()), arrival.payload());
        let to = To { handler: SYSTEM, call: arrival.header.call };
        let nothing = HeldNic::none();
        let table = self.tables.get(link.endpoint.number).and_then(Option::as_ref);
        match (words.first().and_then(|&ask| Ask::from_word(ask)), table) {
            (Some(Ask::Compare), Some(handlers)) => {
                let difference = handlers.differs(payload).map(|found| found.to_bytes());
                let payload = difference.as_deref().unwrap_or_default();
                link.reply(to, Content { words: &[], payload }, nothing);
            }
            (Some(Ask::Show), _) if words.len() <= 2 => {
                let admitted = link.endpoint.admits_anew(link, words.get(1).copied().map(Tag));
                let segment = links::words(link.endpoint.segment_for(link));
                let words = if admitted { &segment[..] } else { &[] };
                link.reply(to, Content { words, payload: &[] }, nothing);
            }
            (Some(Ask::Recall), _) => {
                let count = link.out().yields() as u64;
                link.reply(to, Content { words: &[count], payload: &[] }, nothing);
            }
            (Some(Ask::Lend), _) => {
                let lends = link.endpoint.lends(link).into();
                link.reply(to, Content { words: &[lends], payload: &[] }, nothing);
            }
            (Some(Ask::Names), _) => {
                let known = words.get(1).map_or(usize::MAX, |&known| known as usize);
                let names = link.endpoint.names();
                let more = names.get(known..).unwrap_or_default();
                let payload = &more[..more.len().min(link.longest())];
                link.reply(to, Content { words: &[names.len() as u64], payload }, nothing);
            }
            (Some(Ask::Leave), _) => {
                let in_use = link.life.is_asked().into();
                link.reply(to, Content { words: &[in_use], payload: &[] }, nothing);
            }
            _ => link.give_back(arrival.header, Undeliverable::NoHandler, &[]),
        }
    }

    /// Sends a request back that nobody handles.
    #[cold]
    fn refuse(&self, link: &Arc<Link>, arrival: &Arrival) {
        count(&self.counters.undelivered);
        let why =
            if link.is_admitted() { Undeliverable::NoHandler } else { Undeliverable::WrongTag };
        link.give_back(arrival.header, why, arrival.data());
    }

    #[inline]
    fn reply(&mut self, link: &Arc<Link>, arrival: &mut Arrival, looking: &mut Looking<'_>) {
        count(&self.counters.replies);
        let header = arrival.header;
        if header.call != 0 {
            looking.answered(link, header.call, || Ok(Reply::of(arrival, link)));
            return;
        }
        looking.looked.woke |= link.credited(1);
        let table = self.tables.get_mut(link.endpoint.number).and_then(Option::as_mut);
        let Some(run) = table.and_then(|table| table.replies.get_mut(header.handler)) else {
            return count(&self.counters.undelivered);
        };
        let mut room = Room::new();
        let words = room.read(arrival.words());
        let reply = Replied::new(link, arrival);
        if run_contained(&self.counters, self.runs, || run(reply, words)) == Some(false) {
            count(&self.counters.undelivered);
        }
    }

    /// A call has no answer; or it is asked, or told, whether calls are still awaited.
    #[cold]
    fn unanswered(&mut self, link: &Arc<Link>, arrival: &Arrival, looking: &mut Looking<'_>) {
        let mut room = Room::new();
        let (call, words) = (arrival.header.call, room.read(arrival.words()));
        let sound = match (arrival.header.handler, words) {
            (awaits::ENDS, _) => {
                looking.answered(link, call, || Err(Undeliverable::Unanswered));
                true
            }
            (awaits::ASKED, calls) => link.tells_awaited(call, calls),
            (awaits::TOLD, &[given_up]) => link.hears_awaited(call, given_up),
            _ => false,
        };
        if !sound {
            count(&self.counters.malformed);
        }
    }

    #[cold]
    fn returned(&mut self, link: &Arc<Link>, arrival: &Arrival, looking: &mut Looking<'_>) {
        count(&self.counters.returned);
        let header = arrival.header;
        let code = arrival.data().as_chunks::<8>().0.first().map(|&word| u64::from_le_bytes(word));
        let Some(why) = code.and_then(Undeliverable::from_code) else {
            return count(&self.counters.malformed);
        };
        if header.call != 0 {
            looking.answered(link, header.call, || Err(why));
            return;
        }
        looking.looked.woke |= link.credited(1);
        let header = Header { words: header.words.saturating_sub(1), ..header };
        self.give_up(link, why, Some((header, &arrival.data()[8..])));
    }

    /// A request of this side's was not delivered.
    #[cold]
    fn give_up(&mut self, link: &Arc<Link>, why: Undeliverable, what: Option<(Header, &[u8])>) {
        let returned = Returned { why, link, what };
        let table = self.tables.get_mut(link.endpoint.number).and_then(Option::as_mut);
        match table.and_then(|table| table.returned.as_mut()) {
            Some(run) => drop(run_contained(&self.counters, self.runs, || run(returned))),
            None => tracing::warn!("{returned}"),
        }
    }
}

/// Runs a handler, which may panic. What it gave, if it did not.
#[inline]
fn run_contained<R>(counters: &Counters, runs: Runs, run: impl FnOnce() -> R) -> Option<R> {
    let _handlers = span(Cost::Handlers);
    RUNS.with(|now| now.set(runs));
    let ran = contained(run);
    RUNS.with(|now| now.set(Runs::Nothing));
    if ran.is_none() {
        counters.panics.fetch_add(1, Ordering::Relaxed);
    }
    ran
}

/// Drops handlers, and what they hold, which may panic at that.
#[cold]
fn drop_table(table: Option<Tables>) {
    contained(|| drop(table));
}

/// Takes the place of the payload out of the words. Whether it was there.
#[cold]
fn locate(arrival: &mut Arrival) -> bool {
    let words = arrival.data().as_chunks::<8>().0;
    let &[offset, len, ..] = words else { return false };
    let (offset, len) = (u64::from_le_bytes(offset), u64::from_le_bytes(len));
    let Some(words) = arrival.header.words.checked_sub(Kind::Placed.own_words()) else {
        return false;
    };
    arrival.header = Header { kind: Kind::Request, words, ..arrival.header };
    arrival.data.start += 8 * Kind::Placed.own_words();
    arrival.placed = Some(offset..offset.saturating_add(len));
    true
}
