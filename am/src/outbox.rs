//! What leaves: alone at once, in company soon.

use std::collections::VecDeque;

use doorbell_verbs::floor::{Copied, HeldNic};
use doorbell_verbs::work::{Send, Write};
use doorbell_verbs::{Inline, SendQueue, WorkRequest};

use crate::buffers::Buffers;
use crate::content::Content;
use crate::costs::{Cost, span};
use crate::pack::{self, Pack};
use crate::proofs::{Posted, Taken};
use crate::telling::Telling;
use crate::wire::{Header, WIDE};
use crate::words::put_words;

/// A message as the bytes that travel in a request, if it is short enough for that.
#[inline]
fn few(header: Header, content: Content<'_>, taken: Taken) -> Option<Inline> {
    if content.payload.is_empty() && !header.is_wide() {
        return Inline::of_words(pack::head(header, content, taken), content.words);
    }
    let mut few = [0; 64];
    let bytes = few.get_mut(..pack::size(header, content))?;
    pack::put(bytes, header, content, taken);
    Inline::new(bytes)
}

/// The sending end of a link that is open.
pub(crate) struct Outbox {
    queue: SendQueue,
    /// Whether the device loses nothing, and the peer has a receive for whatever is sent: then
    /// messages that go at once are copied to where they leave, and nothing of them is kept.
    copies: bool,
    held: Held,
    /// What there was no room to send: no more than an answer to each of the peer's requests, and
    /// two for each of this side's.
    backlog: VecDeque<WorkRequest>,
    /// Which sends of few bytes are told of: then there is room again for what waits.
    telling: Telling,
    /// How many bytes are in the queue without the doorbell having been rung for them: no more than
    /// [`MUCH`], and what one write has.
    unrung: u32,
    /// How many messages were held since some were sent.
    together: u32,
    posted: Posted,
    /// What this side has taken, as messages say that leave now.
    pub taken: Taken,
}

/// What is worth a doorbell: the longer a row of packets, the cheaper.
pub(crate) const MUCH: u64 = 1 << 20;
/// The same where there are none, for who writes does all the work: the peer is to hear of it
/// meanwhile.
pub(crate) const MUCH_MAPPED: u64 = 1 << 18;

/// What goes soon.
enum Held {
    Nothing,
    /// A message that will go as if it were alone, if no other comes.
    One(Inline),
    Several(Pack),
}

impl Outbox {
    pub fn new(send: SendQueue, copies: bool) -> Self {
        let (held, backlog) = (Held::Nothing, VecDeque::new());
        let telling = Telling::new(send.room());
        let (posted, taken) = (Posted::default(), Taken::default());
        Self { queue: send, copies, held, backlog, telling, unrung: 0, together: 0, posted, taken }
    }

    /// The peer has taken so much of what was posted.
    pub fn proved(&mut self, taken: Taken, nic: &mut HeldNic<'_>) {
        if let Some(count) = self.posted.until(taken) {
            nic.proved(&mut self.queue, count);
        }
    }

    #[inline]
    pub fn holds(&self) -> bool {
        self.unrung > 0 || !matches!(self.held, Held::Nothing)
    }

    /// Sends a message at once, behind what is held.
    #[inline]
    pub fn send(
        &mut self,
        header: Header,
        content: Content<'_>,
        buffers: &Buffers,
        mut nic: HeldNic<'_>,
    ) {
        self.flush();
        match few(header, content, self.taken) {
            Some(few) => self.send_few(few, nic),
            None if self.copy(header, content, &mut nic) => {}
            None => {
                let request = self.in_buffer(header, content, buffers);
                self.post_by(nic, request);
            }
        }
    }

    /// Sends a message that does not travel in a request by copying it to where it leaves, if it
    /// can be. Whether it was.
    fn copy(&mut self, header: Header, content: Content<'_>, nic: &mut HeldNic<'_>) -> bool {
        if !self.copies || header.is_wide() {
            return false;
        }
        let mut words = [0; 8 * (WIDE - 1)];
        let words = &mut words[..8 * content.words.len()];
        put_words(content.words, words);
        let signalled = self.tells();
        let imm = Some(header.imm());
        self.send_copied(Copied { imm, bytes: [words, content.payload], signalled }, nic)
    }

    #[inline]
    fn send_copied(&mut self, message: Copied<'_>, nic: &mut HeldNic<'_>) -> bool {
        let _base = span(Cost::Base);
        let sent = self.backlog.is_empty() && nic.send_copied(&mut self.queue, &message);
        if sent {
            self.posted.count(true);
        }
        sent
    }

    /// Whether the next message is told of that brings no buffer back.
    #[inline]
    fn tells(&mut self) -> bool {
        // While something waits, there is no room, even if the queue has some.
        let room = || if self.backlog.is_empty() { self.queue.room() } else { 0 };
        self.telling.tells(room)
    }

    /// Puts a request behind what is held, to go with it soon; at once if that is much. Whether
    /// nothing was there before that goes soon.
    pub fn put(&mut self, request: impl Into<WorkRequest>, len: u64) -> bool {
        let first = !self.holds();
        match std::mem::replace(&mut self.held, Held::Nothing) {
            Held::Several(pack) => self.put_full(pack),
            held => {
                self.held = held;
                self.send_held();
            }
        }
        self.put_first(request, len);
        self.flush_if(MUCH);
        first && self.unrung > 0
    }

    /// Puts a pack behind which others go, in one row with them.
    fn put_full(&mut self, pack: Pack) {
        let full = pack.filled(self.taken).into_buffer();
        self.put_first(Send::new(full), pack::MOST as u64);
    }

    /// Puts a request to go soon, before what is held.
    fn put_first(&mut self, request: impl Into<WorkRequest>, len: u64) {
        self.unrung = self.unrung.saturating_add(len.clamp(1, u32::MAX.into()) as u32);
        let request = request.into();
        if !self.backlog.is_empty() {
            return self.backlog.push_back(request);
        }
        let takes = request.takes_receive();
        match self.queue.put(request) {
            Ok(()) => self.posted.count(takes),
            Err(refused) => self.backlog.push_back(*refused.request),
        }
    }

    /// Puts a write, and its message behind it: with those of others, which their writes need not
    /// follow. So writes go in a row, until there is so `much` of them, or of messages the `most`.
    /// Whether nothing was there before that goes soon.
    pub fn put_told(
        &mut self,
        (write, len): (Write, u64),
        (header, content): (Header, Content<'_>),
        (buffers, much, most): (&Buffers, u64, usize),
    ) -> bool {
        let first = !self.holds();
        self.put_first(write, len);
        self.hold(header, content, (buffers, most));
        self.flush_if(much);
        first && self.holds()
    }

    /// What goes soon goes at once, if it is so much.
    fn flush_if(&mut self, much: u64) {
        if u64::from(self.unrung) >= much {
            self.flush();
        }
    }

    /// The same if so many messages go, or else so much.
    #[inline]
    fn flush_many(&mut self, most: usize) {
        if self.together as usize >= most {
            self.flush();
        } else {
            self.flush_if(MUCH);
        }
    }

    #[inline]
    fn ring(&mut self) {
        if std::mem::take(&mut self.unrung) > 0 {
            let _base = span(Cost::Base);
            self.queue.ring();
        }
    }

    /// A message that needs a buffer: with its header in front, unless that makes a packet more.
    fn in_buffer(&self, header: Header, content: Content<'_>, buffers: &Buffers) -> Send {
        /// Of whose length packets are, or of a multiple.
        const PACKET: usize = 1024;
        let mut buffer = buffers.take();
        let (len, padded) = (content.len(), pack::size(header, content));
        let apart = padded.div_ceil(PACKET) > len.div_ceil(PACKET) && !header.is_wide();
        let filled = buffer.set_len(if apart { len } else { padded });
        debug_assert!(filled.is_ok(), "what is longer was refused");
        if apart {
            content.put(&mut buffer);
            Send::new(buffer).imm(header.imm())
        } else {
            pack::put(&mut buffer, header, content, self.taken);
            Send::new(buffer)
        }
    }

    /// Puts a message to what goes soon: at once, if it is the last of so many. Whether there was
    /// nothing before that goes soon, and is now.
    pub fn hold(
        &mut self,
        header: Header,
        content: Content<'_>,
        (buffers, most): (&Buffers, usize),
    ) -> bool {
        if content.len() > pack::LONGEST {
            if self.copies {
                self.flush();
                if self.copy(header, content, &mut HeldNic::none()) {
                    return false;
                }
            }
            let request = self.in_buffer(header, content, buffers);
            return self.put(request, content.len() as u64);
        }
        self.together += 1;
        // Most messages of many find others before them.
        if let Held::Several(pack) = &mut self.held
            && pack.put(header, content, self.taken)
        {
            self.flush_many(most);
            return false;
        }
        let first = !self.holds();
        let held = std::mem::replace(&mut self.held, Held::Nothing);
        self.held = match held {
            Held::Nothing => match few(header, content, self.taken) {
                Some(few) => Held::One(few),
                None => Held::Several(Pack::of(buffers, header, content, self.taken)),
            },
            Held::One(one) => {
                let mut pack = Pack::of_bytes(buffers, one.bytes());
                pack.put(header, content, self.taken);
                Held::Several(pack)
            }
            Held::Several(full) => {
                self.put_full(full);
                Held::Several(Pack::of(buffers, header, content, self.taken))
            }
        };
        self.flush_many(most);
        first && self.holds()
    }

    /// Sends what is held, and rings for what was put.
    #[inline]
    pub fn flush(&mut self) {
        self.send_held();
        self.ring();
    }

    #[inline]
    fn send_held(&mut self) {
        self.together = 0;
        match std::mem::replace(&mut self.held, Held::Nothing) {
            Held::Nothing => {}
            Held::One(few) => self.send_few(few, HeldNic::none()),
            Held::Several(pack) => self.post(Send::new(pack.into_buffer())),
        }
    }

    #[inline]
    fn send_few(&mut self, few: Inline, mut nic: HeldNic<'_>) {
        let signalled = self.tells();
        let copied = Copied { imm: None, bytes: [few.bytes(), &[]], signalled };
        if self.copies && self.send_copied(copied, &mut nic) {
            return;
        }
        let send = Send::new(few);
        self.post_by(nic, if signalled { send } else { send.unsignalled() });
    }

    /// Posts a request; or keeps it, if there is no room, until there is.
    #[inline]
    pub fn post(&mut self, request: impl Into<WorkRequest>) {
        self.post_by(HeldNic::none(), request);
    }

    #[inline]
    fn post_by(&mut self, mut nic: HeldNic<'_>, request: impl Into<WorkRequest>) {
        if !self.backlog.is_empty() {
            return self.backlog.push_back(request.into());
        }
        let _base = span(Cost::Base);
        let request = request.into();
        let takes = request.takes_receive();
        // What is refused for another reason than want of room goes with the link.
        match nic.post(&mut self.queue, request) {
            // That rings for what was put before, too.
            Ok(()) => {
                self.posted.count(takes);
                self.unrung = 0;
            }
            Err(refused) => {
                self.backlog.push_back(*refused.request);
                self.ring();
            }
        }
    }

    /// There may be room for what was kept.
    #[inline]
    pub fn sent(&mut self) {
        while let Some(request) = self.backlog.pop_front() {
            let takes = request.takes_receive();
            match self.queue.post(request) {
                Ok(()) => self.posted.count(takes),
                Err(refused) => return self.backlog.push_front(*refused.request),
            }
        }
    }
}
