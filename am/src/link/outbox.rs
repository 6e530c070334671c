//! The send queue of an open link: a lone message leaves at once, several leave together.

use std::collections::VecDeque;
use std::time::Duration;

use doorbell_verbs::floor::{Copied, HeldNic};
use doorbell_verbs::work::{Send, Write};
use doorbell_verbs::{Buf, Inline, SendQueue, WorkRequest};

use crate::costs::{Cost, span};
use crate::credits::{Posted, SelectiveSignalling};
use crate::receives::Buffers;
use crate::wire::pack::{PACKET, Pack};
use crate::wire::{Content, Header, Parting, Taken, WIDE, pack, put_words};

/// Encodes a message as inline data of a work request, if it is short enough.
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

/// The send queue of an open link, and what waits to leave by it.
pub(crate) struct Outbox {
    queue: SendQueue,
    /// Whether messages that leave at once are copied straight into the device. That needs a
    /// lossless device, and a receive at the peer for whatever is sent, so that nothing is sent
    /// twice.
    copies: bool,
    held: Held,
    /// Requests for which the queue had no room: no more than an answer to each of the peer's
    /// requests, and two for each of this side's.
    backlog: VecDeque<WorkRequest>,
    /// Decides which sends of few bytes are signalled, so that the backlog hears of room in the
    /// queue.
    signalling: SelectiveSignalling,
    /// The bytes in the queue for which the doorbell was not rung: no more than [`MUCH`], and those
    /// of one write.
    unrung: u32,
    /// The messages held since some were sent.
    together: u32,
    posted: Posted,
    /// The acknowledgement that messages carry which leave now.
    pub taken: Taken,
}

/// The number of bytes that are worth ringing the doorbell for. The longer a run of packets, the
/// less a packet costs.
pub(crate) const MUCH: u64 = 1 << 20;
/// The number of bytes written to mapped memory that are worth a message. There the writer does all
/// the work, and the peer is to handle one part while the writer copies the next.
pub(crate) const MUCH_MAPPED: u64 = 1 << 18;

/// Messages that leave soon.
enum Held {
    Nothing,
    /// A single message, which leaves as if it were alone unless another comes.
    One(Inline),
    Several(Pack),
}

impl Outbox {
    pub fn new(send: SendQueue, copies: bool) -> Self {
        let (held, backlog) = (Held::Nothing, VecDeque::new());
        let signalling = SelectiveSignalling::new(send.room());
        let (posted, taken) = (Posted::default(), Taken::default());
        Self {
            queue: send,
            copies,
            held,
            backlog,
            signalling,
            unrung: 0,
            together: 0,
            posted,
            taken,
        }
    }

    /// Sends what is held, and drops the queue, whose requests are carried out for a time of at most
    /// `within`. The connection ends with these last words.
    #[cold]
    pub fn linger(mut self, within: Duration, parting: Parting) {
        self.flush();
        let Self { queue, backlog, .. } = self;
        queue.linger(backlog, within, &parting.to_bytes());
    }

    /// Tells the NIC how many of the posted requests the peer has acknowledged by its messages.
    pub fn acknowledged(&mut self, taken: Taken, nic: &mut HeldNic<'_>) {
        if let Some(count) = self.posted.until(taken) {
            nic.acknowledged_by_program(&mut self.queue, count);
        }
    }

    /// Returns whether messages are held that leave soon.
    #[inline]
    pub fn holds(&self) -> bool {
        self.unrung > 0 || !matches!(self.held, Held::Nothing)
    }

    /// Sends a message at once, behind the messages that are held.
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

    /// Copies a message that is too long for inline data straight into the device. Returns whether
    /// that was possible.
    fn copy(&mut self, header: Header, content: Content<'_>, nic: &mut HeldNic<'_>) -> bool {
        if !self.copies || header.is_wide() {
            return false;
        }
        let mut words = [0; 8 * (WIDE - 1)];
        let words = &mut words[..8 * content.words.len()];
        put_words(content.words, words);
        let signalled = self.signals_next();
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

    /// Returns whether the next send that brings no buffer back is signalled.
    #[inline]
    fn signals_next(&mut self) -> bool {
        // While there is a backlog there is no room, even if the queue has some.
        let room = || if self.backlog.is_empty() { self.queue.room() } else { 0 };
        self.signalling.signals_next(room)
    }

    /// Puts a request behind the held messages, to leave with them soon, or at once if they are
    /// much. Returns whether the queue has begun to hold something by that.
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

    /// Puts a full pack, filled up so that it forms a run of packets with those that follow.
    fn put_full(&mut self, pack: Pack) {
        let full = pack.filled(self.taken).into_buffer();
        self.put_first(Send::new(full), pack::MOST as u64);
    }

    /// Puts a request into the queue in front of the held messages, without ringing the doorbell.
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

    /// Puts a write, and holds the message that announces it. Writes go in a row, and their
    /// messages follow together, once there are `much` bytes or the `most` messages. Returns
    /// whether the queue has begun to hold something by that.
    pub fn put_announced(
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

    /// Sends what is held if there are `much` bytes of it.
    fn flush_if(&mut self, much: u64) {
        if u64::from(self.unrung) >= much {
            self.flush();
        }
    }

    /// Sends what is held if there are `most` messages, or [`MUCH`] bytes.
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

    /// Puts a message into a buffer, with its header in front, or in the immediate if the header
    /// would make it a packet more.
    fn in_buffer(&self, header: Header, content: Content<'_>, buffers: &Buffers) -> Send {
        let mut buffer = buffers.take();
        let (len, padded) = (content.len(), pack::size(header, content));
        let apart = padded.div_ceil(PACKET) > len.div_ceil(PACKET) && !header.is_wide();
        let filled = buffer.set_len(if apart { len } else { padded });
        debug_assert!(filled.is_ok(), "longer messages were refused");
        if apart {
            content.put(&mut buffer);
            Send::new(buffer).imm(header.imm())
        } else {
            pack::put(&mut buffer, header, content, self.taken);
            Send::new(buffer)
        }
    }

    /// Sends a message whose payload is in a buffer already, behind room for the header and the
    /// words: at once, or with others soon. Returns whether the queue has begun to hold something by
    /// that.
    pub fn send_in_place(
        &mut self,
        header: Header,
        words: &[u64],
        mut buffer: Buf,
        at_once: bool,
    ) -> bool {
        pack::put_in_front(&mut buffer, header, words, self.taken);
        let len = buffer.len() as u64;
        if at_once {
            self.flush();
            self.post(Send::new(buffer));
            return false;
        }
        self.put(Send::new(buffer), len)
    }

    /// Returns whether messages leave from buffers, and are not copied straight into the device.
    pub fn leaves_from_buffers(&self) -> bool {
        !self.copies
    }

    /// Holds a message, and sends all held messages if they are the `most`. Returns whether the
    /// queue has begun to hold something by that.
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
        // Fast path: most messages of many find others before them.
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
                None => Held::Several(Pack::of(buffers.take(), header, content, self.taken)),
            },
            Held::One(one) => {
                let mut pack = Pack::of_bytes(buffers.take(), one.bytes());
                pack.put(header, content, self.taken);
                Held::Several(pack)
            }
            Held::Several(full) => {
                self.put_full(full);
                Held::Several(Pack::of(buffers.take(), header, content, self.taken))
            }
        };
        self.flush_many(most);
        first && self.holds()
    }

    /// Sends the held messages, and rings the doorbell for requests that were put.
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
        let signalled = self.signals_next();
        let copied = Copied { imm: None, bytes: [few.bytes(), &[]], signalled };
        if self.copies && self.send_copied(copied, &mut nic) {
            return;
        }
        let send = Send::new(few);
        self.post_by(nic, if signalled { send } else { send.unsignalled() });
    }

    /// Posts a request, or keeps it in the backlog until there is room.
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
        // A request that is refused for another reason than want of room goes with the link.
        match nic.post(&mut self.queue, request) {
            // Posting rings the doorbell for what was put before, too.
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

    /// Posts requests of the backlog, since a send was completed and there may be room.
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
