//! The network adapter in software: a pure state machine.
//!
//! Packets and time go in; packets, a next time-out and completions come out. It does no input or
//! output, reads no clock, and has no randomness but a [`Seed`].
//!
//! # The two sides
//!
//! A **program** holds the ends of rings, which may be used from any thread: a [`SendQueue`] and a
//! [`ReceiveQueue`] for each queue pair, and a [`CompletionQueue`] for as many of them as it likes.
//! It posts a [`WorkRequest`] and rings the doorbell, once for several if it likes.
//!
//! The **NIC** is run by one at a time, whoever has it in hand. A turn is:
//! [`advance`](Nic::advance) if a clock was read; a burst of [`packet`](Inbox::packet)s;
//! [`transmit`](Nic::transmit), which answers doorbells, sends what may be sent, and then what is
//! owed to peers. With the NIC in hand, [`post`](Nic::post) needs neither doorbell nor turn. Before
//! sleeping, [`next_timeout`](Nic::next_timeout) says how long.
//!
//! # What it does
//!
//! | [transport](Transport) | requests | |
//! |---|---|---|
//! | reliable | send, write, read, compare-and-swap, fetch-and-add | once, in order, or both sides hear |
//! | unreliable | send, write | whole or not at all, complete when sent |
//! | datagram | send of one packet | to whomever it names, if it arrives |
//!
//! A message may bring an [attachment](Attachment) into the completion that it makes. Receives come
//! from a queue of one's own, or from one that several queue pairs [share](SharedReceiveQueue).
//! Queue pair 1 is the connection managers': its datagrams are handed [out](Nic::management) and
//! [in](Nic::manage) to whoever runs the NIC. Hosts that fall silent are
//! [asked and noticed](KeepAlive).
//!
//! Of reliable requests, sends and writes are carried out in the order in which they were posted,
//! but for writes into memory that is [mapped](Nic::map), which may overtake sends. A read may see
//! what was posted after it, unless that is [fenced](WorkRequest::fenced).
//!
//! # What it promises
//!
//! Every request posted to a reliable connection completes exactly once, in the order of its queue,
//! whatever the network does: with success when the peer has all of it, or with a [`Failure`] that
//! says why, and then everything behind it is [flushed](Failure::Flushed). A message is received
//! once, whole, in order, or not at all. Nothing that arrives can make it panic, write outside what
//! was granted, or keep more than its tables: those are allocated when a queue pair is made and
//! connected, and no message allocates anything.
//!
//! On a device that cannot lose, it keeps no timers and sends no acknowledgements: the device says
//! how far the peer has taken its packets ([`Outbox::delivered`]). Refusals are sent all the same.
//! A turn there [collects](Nic::collect) what was delivered.
//!
//! What such a device delivers and no queue pair takes, since it is not there, or of another
//! service, or not connected, or connected anew since, does not pass for done: the NIC owes the
//! link a notice that names those packets, and whoever has them under way fails as if nobody had
//! answered. As on any device, a packet does not say who sent it, and one of a forgotten connection
//! is the present peer's if it bears just the number that is expected of that: hence [first
//! numbers](Nic::first_psn) that nobody can guess, and connections that are ended on both sides.
//!
//! Nobody posts to a queue pair while it is reset or taken down: a [reset](Nic::reset) borrows both
//! of its ends, and it is not [taken down](Nic::drop_queue_pair) before they are dropped. So what
//! was accepted then is flushed like everything else.
//!
//! # How it is cut
//!
//! | file | idea |
//! |---|---|
//! | `work`, `completion`, `queues` | what programs see: requests, completions, the rings' ends |
//! | `keys`, `numbering` | protection; numbers that can't be guessed |
//! | `config`, `resources`, `refusals` | making and taking down |
//! | `states`, `pair` | a queue pair's states, the ways between them, and what breaks it |
//! | `requester`, `rto` | what is sent, and sent again |
//! | `mapped` | peers' memory that is mapped here, and what is written there without a packet |
//! | `completer` | what the peer answers |
//! | `responder`, `reads` | what the peer requests, and asks of this side's memory |
//! | `receives` | where receives are taken from |
//! | `unreliable`, `datagrams`, `management` | the other services, and queue pair 1 |
//! | `hosts` | whether peers are still there |
//! | `probe` | whether the peer of one queue pair is, asked on demand |
//! | `common`, `leaps`, `doorbells` | what queue pairs share |
//! | `device` | what a device must do, and is told |
//! | `around` | how one full link keeps nobody else waiting |
//! | `notices` | what a link is told of packets that nobody took |

mod around;
mod common;
mod completer;
mod completion;
mod config;
mod counters;
mod datagrams;
mod device;
mod doorbells;
mod gather;
mod growth;
mod hosts;
mod keys;
mod leaps;
mod management;
mod mapped;
mod notices;
mod numbering;
mod pair;
mod probe;
mod queues;
mod reads;
mod receives;
mod refusals;
mod requester;
mod resources;
mod responder;
mod rights;
#[allow(unsafe_code)]
mod ring;
mod rto;
mod states;
mod unreliable;
mod work;

pub use crate::common::Seed;
pub use common::{AddressId, CompletionQueueId, Event};
pub use completion::{Cause, Completion, Done, Failure};
pub use config::{Config, Objects, QueuePairConfig, QueuePairEnds, Transport};
pub use counters::Counters;
pub use datagrams::DATAGRAM_HEADER;
pub use device::{Flow, Inbox, Outbox};
pub use hosts::{KeepAlive, Silence};
pub use keys::{Domain, KeyError, Lkey, Registration, TableFull};
pub use management::{Management, TooMany, Way};
pub use mapped::MappingId;
pub use numbering::{Numbering, NumberingError};
pub use queues::{
    CompletionGauge, CompletionQueue, Notify, Polled, PostError, ReceiveQueue, Refused, SendQueue,
    SharedReceiveQueue,
};
pub use receives::SharedReceiveQueueId;
pub use refusals::ResourceError;
pub use rights::{NotRights, Rights};
pub use states::{Change, ChangeError, Connection, Sending, State};
pub use work::{
    Attachment, Copied, Data, Inline, LONGEST_MESSAGE, MOST_INLINE, Memory, Operation,
    ReceiveRequest, Segment, WorkRequest,
};

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::encap::{Host, Path, PathId};
use crate::payload::Payload;
use crate::planted::{Bug, planted};
use crate::time::Time;
use crate::wire::cm::Mad;
use crate::wire::{AfterBth, Bth, Malformed, Opcode, OpcodeInfo, Packet, Qpn, RawBth, Service};

use crate::common::random::Random;
use common::Common;
use device::by_row;
use doorbells::Doorbells;
use growth::timer_of;
use hosts::{HostId, Suspect};
use notices::LINKS;
use numbering::Numbers;
use pair::{Blamed, QueuePair};
use requester::Turn;
use responder::{Answered, Due};
use ring::Nothing;

/// Packets that a queue pair sends before the next has its turn.
const QUANTUM: u32 = 32;

/// The least time between two messages of a closed port that are looked at.
const BETWEEN_CLOSED: Duration = Duration::from_millis(1);

/// A network adapter in software. See the [module](self).
pub struct Nic {
    common: Common,
    pairs: Vec<Option<Box<QueuePair>>>,
    /// Places in about the order in which they were left. One of the older half is taken at random:
    /// so nobody can tell which, and a number is long out of use before it is used again.
    free: VecDeque<u32>,
    /// How many queue pairs there may be. The tables grow up to that.
    most_pairs: usize,
    numbers: Numbers,
    random: Random,
    doorbells: Arc<Doorbells>,
    domains: u32,
    /// What those have instead of a receive queue who share one.
    no_receives: Nothing<ReceiveRequest>,
    /// Places whose timers went off, while they are seen to.
    fired: Vec<u32>,
    /// From when on a message that a port is closed is looked at again.
    closed_again: Time,
}

impl fmt::Debug for Nic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nic").field("objects", &self.objects()).finish_non_exhaustive()
    }
}

#[inline]
fn find(
    pairs: &mut [Option<Box<QueuePair>>],
    numbers: Numbers,
    qpn: Qpn,
) -> Option<&mut QueuePair> {
    pairs.get_mut(numbers.place(qpn))?.as_deref_mut().filter(|pair| pair.number() == qpn)
}

/// Asks a peer that was silent whether it is there, or breaks all connections to it.
#[cold]
fn look_after(host: HostId, pairs: &mut [Option<Box<QueuePair>>], common: &mut Common) {
    let again = match common.hosts.due(host, common.now, &common.leaps) {
        hosts::Due::Wait(until) => until,
        hosts::Due::Ask(speaker, again) => {
            // Whoever heard of it last, and then the others in turn: the peer of one may have gone,
            // and not its whole process.
            let (before, from) = pairs.split_at_mut(speaker as usize);
            let mut others = from.iter_mut().chain(before).flatten();
            let asks = others.find(|pair| pair.host == host && pair.state.requests());
            if let Some(pair) = asks.filter(|_| !planted(Bug::AsksNobody)) {
                pair.responder.asks = true;
                common.hosts.asked_by(host, pair.shared.place);
                common.owe_answer(pair);
            }
            again
        }
        hosts::Due::Gone(limit) => {
            let cause = common.hosts.silent(limit);
            for pair in pairs.iter_mut().flatten().filter(|pair| pair.host == host) {
                pair.break_with(cause, Blamed::Request(0), common);
            }
            return;
        }
        hosts::Due::Nobody => return,
    };
    common.timers.arm(host.timer(), again);
}

/// Has a queue pair, which is taken off the list, send or flush what it can, and enters it where it
/// belongs then. Not if the device has no room: whether it had.
#[inline]
fn serve<O: Outbox>(pair: &mut QueuePair, common: &mut Common, outbox: &mut O) -> bool {
    let turn = match pair.state {
        State::Error => pair.flush(common),
        _ => pair.send(common, outbox, QUANTUM),
    };
    let place = pair.shared.place;
    match turn {
        Turn::Idle => pair.active = false,
        Turn::More => common.active.push_back(place),
        Turn::Starved => common.starve(place),
        Turn::DeviceFull => return false,
    }
    true
}

/// Progress.
impl Nic {
    /// Tells the time, and does what the time has come for: what waited too long for an answer is
    /// sent again or given up. So whoever may find answers that have come already
    /// [tells](Self::tell) the time, takes those in, and calls this afterwards.
    pub fn advance(&mut self, now: Time) {
        self.tell(now);
        let Self { common, pairs, fired, .. } = self;
        common.leaps.sees_to(common.timers.next(), common.now, common.hosts.limits.busy);
        common.timers.expire(common.now, fired);
        for timer in fired.drain(..) {
            match HostId::of_timer(timer) {
                Ok(host) => look_after(host, pairs, common),
                Err(place) => {
                    if let Some(pair) = pairs[place as usize].as_deref_mut() {
                        pair.expire(common);
                    }
                }
            }
        }
    }

    /// Tells the time, and does nothing yet. Packets are sent and received at the time that was
    /// told last: let that not be much older than what matters to time-outs, or [say](Self::leap)
    /// so afterwards.
    #[inline]
    pub fn tell(&mut self, now: Time) {
        self.common.now = self.common.now.max(now);
    }

    /// [Tells](Self::tell) the time where it was not told for a while, in which requests may have
    /// been posted and packets taken in, nobody knows when. Their time-outs count from now.
    pub fn leap(&mut self, now: Time) {
        let common = &mut self.common;
        common.leaps.note(common.now, now);
        self.tell(now);
    }

    /// Has all packets acknowledged at once that were taken and are not yet, for a program that is
    /// about to sleep. Otherwise the timers of those acknowledgements, a fraction of a millisecond
    /// later, would wake it, and each acknowledgement would wake its peer.
    pub fn acknowledge(&mut self) {
        let Self { common, pairs, .. } = self;
        while let Some(place) = common.delaying.pop() {
            let Some(pair) = pairs[place as usize].as_deref_mut() else { continue };
            pair.responder.delaying = false;
            if pair.responder.ack_at.take().is_some() {
                common.owe(pair, Due::Ack);
            }
            // A timer stays armed when its deadline moves to later, and would go off for nothing.
            // That of a queue pair with something to do may be for a turn without any deadline.
            if !pair.active && pair.state != State::Error {
                common.timers.disarm(timer_of(place));
                pair.arm(common);
            }
        }
    }

    /// Has the peers asked whether they are there that a newcomer at the end of a path can have
    /// replaced: those at its host whose queue pair numbers bear the same [tag](Numbering::tag) as
    /// the newcomer's queue pair, since no two living processes of an interface share one. A peer
    /// that gives no sign of life within [`KeepAlive::busy`] is gone, and all connections to it
    /// break. Until then it is asked sixteen times, as by a [probe](Self::probe). However often
    /// this is called, a peer that answers is asked once in that time. What one peer there says
    /// does not count for another, as far as their GUIDs are [known](Connection::peer_guid).
    ///
    /// Peers of other tags are other processes, which the newcomer leaves alone: one that is
    /// stopped while nothing is under way to it keeps its connections for [`KeepAlive::idle`].
    ///
    /// Nothing is done on a lossless device, which tells itself when a peer has gone.
    pub fn suspect(&mut self, path: &Path, newcomer: Qpn) {
        let Self { common, numbers, .. } = self;
        if common.lossless {
            return;
        }
        let (_, host) = path.outer().hosts();
        let replaced = |peer| numbers.same_process(peer, newcomer);
        for (peer, at) in common.hosts.suspect(host, Suspect::Replaced, replaced, common.now) {
            common.timers.arm(peer.timer(), at);
        }
    }

    /// The next moment at which to [advance](Self::advance), if nothing happens before.
    pub fn next_timeout(&self) -> Option<Time> {
        self.common.timers.next()
    }

    /// Whether there is anything for [`transmit`](Self::transmit) to do.
    #[inline]
    pub fn has_work(&self) -> bool {
        let common = &self.common;
        !common.active.is_empty()
            || !common.answers.is_empty()
            || common.management.has_work()
            || self.doorbells.any()
    }

    /// Posts a request, and sends it at once: for whoever has the NIC in hand, and needs no
    /// doorbell to call it. What else there is to do is left to the next turn.
    ///
    /// # Errors
    /// As [`SendQueue::post`].
    #[inline]
    pub fn post<O: Outbox>(
        &mut self,
        queue: &mut SendQueue,
        request: WorkRequest,
        outbox: &mut O,
    ) -> Result<(), Refused<WorkRequest>> {
        queue.post(request)?;
        self.posted(queue, outbox);
        Ok(())
    }

    /// Sends what was posted to a queue and not rung for, as [`post`](Self::post) does.
    #[inline]
    pub fn posted<O: Outbox>(&mut self, queue: &SendQueue, outbox: &mut O) {
        let ours = queue.rings(&self.doorbells);
        match find(&mut self.pairs, self.numbers, queue.qpn()).filter(|_| ours) {
            Some(pair) if !pair.active => {
                pair.active = true;
                if let Some(path) = &pair.path {
                    outbox.prepare(path.id());
                }
                if !serve(pair, &mut self.common, outbox) {
                    self.common.active.push_back(pair.shared.place);
                }
                outbox.flush();
            }
            // Others, or requests before this one, have their turn first.
            Some(_) => self.transmit(outbox),
            None => queue.ring(),
        }
    }

    /// Sends a message at once, of which nothing is kept, and nothing has to be lent to the NIC: on
    /// a device that loses nothing, if nothing else waits to be sent on this connection, and it
    /// goes into one packet. Whether it was sent; if not, it is to be posted as others are.
    ///
    /// A peer without a receive for it can't be sent it again: that ends the connection, with
    /// [`Cause::ReceiverNotReady`].
    #[inline(always)]
    pub fn send_copied<O: Outbox>(
        &mut self,
        queue: &mut SendQueue,
        message: &Copied<'_>,
        outbox: &mut O,
    ) -> bool {
        let Self { common, pairs, numbers, doorbells, .. } = self;
        let ours = queue.rings(doorbells) && common.lossless && !common.behind;
        let pair = find(pairs, *numbers, queue.qpn()).filter(|pair| ours && !pair.active);
        let Some(pair) = pair else { return false };
        if let Some(path) = &pair.path {
            outbox.prepare(path.id());
        }
        let sent = pair.send_copied(queue, message, common, outbox);
        outbox.flush();
        sent
    }

    /// The peer's program has said, by a message that came of it, that it received the first
    /// `count` of all requests that were posted to a queue since the connection began: they are
    /// acknowledged by that, and the peer's NIC need not say so. A peer that says what is not so
    /// loses what it did not receive.
    #[inline]
    pub fn proved(&mut self, queue: &SendQueue, count: u32) {
        if queue.rings(&self.doorbells)
            && let Some(pair) = find(&mut self.pairs, self.numbers, queue.qpn())
        {
            pair.proved(count, &mut self.common);
        }
    }

    /// Sends management datagrams, what was posted, as far as it may be sent, and then what is owed
    /// to peers: that can wait, and for data somebody does.
    #[inline]
    pub fn transmit<O: Outbox>(&mut self, outbox: &mut O) {
        let Self { common, pairs, doorbells, .. } = self;
        doorbells.answer(|place| {
            if let Some(pair) = pairs[place as usize].as_deref_mut() {
                common.activate(pair);
            }
        });
        common.feed();
        // Before data, so that what tells a peer that a connection stands, and its private data, is
        // not overtaken by the first message.
        if common.management.has_work() {
            let full = common.lossless.then_some(&mut common.full);
            common.counters.sent += common.management.transmit(outbox, full);
        }
        // What the device had no room for goes before everything else, or a stream of data would
        // keep it waiting for ever.
        if common.behind {
            self.catch_up(outbox);
        } else {
            self.send(outbox);
        }
        self.answer(outbox);
        if self.common.full.any() {
            self.common.full.forget();
        }
        outbox.flush();
    }

    #[inline]
    fn send<O: Outbox>(&mut self, outbox: &mut O) {
        let Self { common, pairs, .. } = self;
        while let Some(place) = common.active.pop_front() {
            let Some(pair) = pairs[place as usize].as_deref_mut() else { continue };
            if !serve(pair, common, outbox) {
                return self.stopped_at(place, outbox);
            }
        }
    }

    /// Sends what queue pairs owe their peers. Each has one turn, so that a long answer keeps
    /// nobody waiting.
    #[inline]
    pub fn answer<O: Outbox>(&mut self, outbox: &mut O) {
        let Self { common, pairs, .. } = self;
        common.behind = false;
        for _ in 0..common.answers.len() {
            let Some(place) = common.answers.pop_front() else { break };
            let Some(pair) = pairs.get_mut(place as usize).and_then(Option::as_deref_mut) else {
                if place == LINKS {
                    common.tell_links(pairs, outbox);
                }
                continue;
            };
            match pair.answer(common, outbox, QUANTUM) {
                Answered::All => pair.responder.listed = false,
                Answered::Some => common.answers.push_back(place),
                Answered::DeviceFull => {
                    common.answers.push_front(place);
                    return self.answer_around(outbox);
                }
            }
        }
    }

    /// Completes what a lossless device has [delivered](Outbox::delivered): in every turn, between
    /// the burst and [`transmit`](Self::transmit). Other devices do not need the call.
    // Within a loop over what arrived it would take the registers of that.
    #[inline(never)]
    pub fn collect<O: Outbox>(&mut self, outbox: &mut O) {
        let Self { common, pairs, .. } = self;
        let mut index = 0;
        while let Some(&place) = common.flying.get(index) {
            let pair = pairs[place as usize].as_deref_mut();
            match pair.is_some_and(|pair| pair.collect(pair.delivered(outbox), common)) {
                true => index += 1,
                false => drop(common.flying.swap_remove(index)),
            }
        }
        if !common.gone.is_empty() {
            self.break_gone();
        }
    }

    /// Whether a link was [gone](Inbox::gone) in the last burst: then what it has delivered is to
    /// be [collected](Self::collect) before the next one.
    #[inline]
    pub fn has_gone(&self) -> bool {
        !self.common.gone.is_empty()
    }

    /// The links that were [gone](Inbox::gone) in the last burst, until what they have delivered is
    /// [collected](Self::collect). Whoever keeps something for a link drops it now.
    pub fn links_gone(&self) -> &[PathId] {
        &self.common.gone
    }

    #[cold]
    fn break_gone(&mut self) {
        let Self { common, pairs, .. } = self;
        for link in std::mem::take(&mut common.gone) {
            for pair in pairs.iter_mut().flatten().filter(|pair| pair.is_joined_by(link)) {
                pair.break_with(Cause::LinkGone, Blamed::Request(0), common);
            }
        }
    }

    /// Asks for an event when the next completion comes to a queue, or the next of those that the
    /// peer or a failure makes urgent. Whether there are completions already, for which there will
    /// be none: look at the queue once more afterwards, before sleeping.
    ///
    /// # Errors
    /// When there is no such queue.
    pub fn arm(&mut self, queue: CompletionQueueId, notify: Notify) -> Result<bool, ResourceError> {
        let queue = self.completions(queue)?;
        // Whoever asked for any is not to miss one because another asked for less.
        if queue.armed != Some(Notify::Any) {
            queue.armed = Some(notify);
        }
        Ok(queue.has_some())
    }

    /// Whether there is an event.
    #[inline]
    pub fn has_events(&self) -> bool {
        !self.common.events.is_empty()
    }

    /// The next event, if there is one.
    pub fn event(&mut self) -> Option<Event> {
        let event = self.common.events.pop_front()?;
        let Self { common, pairs, numbers, .. } = self;
        let told = match event {
            Event::Completion(queue) => {
                let found =
                    common.completions.get_mut(queue.place as usize).and_then(Option::as_mut);
                found.map(|queue| &mut queue.told)
            }
            Event::Broken(qpn, _) => find(pairs, *numbers, qpn).map(|pair| &mut pair.told_broken),
            Event::Drained(qpn) => find(pairs, *numbers, qpn).map(|pair| &mut pair.told_drained),
            Event::Established(qpn) => {
                find(pairs, *numbers, qpn).map(|pair| &mut pair.told_established)
            }
            Event::PathChanged(qpn) => find(pairs, *numbers, qpn).map(|pair| &mut pair.told_path),
            Event::LastReceive(qpn) => find(pairs, *numbers, qpn).map(|pair| &mut pair.told_last),
            Event::ReceivesLow(queue) => {
                let queues = &mut common.shared_receives;
                let found = queues.get_mut(queue.place as usize).and_then(Option::as_mut);
                found.map(|queue| &mut queue.told)
            }
            Event::RequestBounced(_) => {
                common.management.told();
                None
            }
        };
        if let Some(told) = told {
            *told = false;
        }
        Some(event)
    }

    /// Whether a management datagram came to queue pair 1.
    #[inline]
    pub fn has_management(&self) -> bool {
        self.common.management.has_arrived()
    }

    /// The next management datagram that came to queue pair 1.
    pub fn management(&mut self) -> Option<Management> {
        self.common.management.arrived()
    }

    /// Sends a management datagram to the queue pair 1 at the end of a path, in the next turn.
    ///
    /// # Errors
    /// When too many wait already.
    pub fn manage(&mut self, path: Path, datagram: [u8; Mad::LEN]) -> Result<(), TooMany> {
        self.common.management.send(path, datagram)
    }

    /// What has been counted so far.
    pub fn counters(&self) -> &Counters {
        &self.common.counters
    }
}

impl Nic {
    #[inline(always)]
    fn dispatch<P: Payload>(&mut self, flow: Flow<'_>, packet: &Packet<P>, info: OpcodeInfo) {
        let Self { common, pairs, numbers, .. } = self;
        common.counters.received += 1;
        let bth = packet.headers.bth;
        let Some(pair) = find(pairs, *numbers, bth.destination()) else {
            return self.for_nobody((flow, *packet));
        };
        // Datagrams come from anywhere.
        if pair.service() != Service::Ud && !pair.is_between(flow, common) {
            common.counters.strangers += 1;
            return self.not_taken(flow.link(), info, bth.destination(), bth.psn());
        }
        if !pair.pkey.same_partition(bth.pkey()) {
            common.counters.other_partition += 1;
            return self.not_taken(flow.link(), info, bth.destination(), bth.psn());
        }
        pair.hear(common);
        if info.service != pair.service() {
            common.counters.wrong_service += 1;
            return self.not_taken(flow.link(), info, bth.destination(), bth.psn());
        }
        match info.service {
            Service::Ud => pair.take_datagram(flow, packet, common),
            _ if info.is_response() => pair.answered(packet, info, common),
            _ => pair.respond(packet, info, common),
        }
    }
}

impl Inbox for Nic {
    #[inline(never)]
    fn packet<P: Payload>(&mut self, flow: Flow<'_>, packet: &Packet<P>) {
        by_row!(
            packet.headers.bth.opcode(),
            [RcReadRequest, RcReadResponseOnly, RcFetchAdd, RcAtomicAcknowledge],
            row => self.dispatch(flow, packet, row),
            other => self.dispatch(flow, packet, *other.info())
        );
    }

    #[inline(always)]
    fn usual(&mut self, flow: Flow<'_>, bth: RawBth, behind: impl AfterBth) -> bool {
        let Self { common, pairs, numbers, .. } = self;
        find(pairs, *numbers, bth.destination())
            .is_some_and(|pair| pair.take_usual(flow, bth, behind, common))
    }

    #[inline(always)]
    fn known<P: Payload>(&mut self, flow: Flow<'_>, packet: Packet<P>, row: OpcodeInfo) {
        self.dispatch(flow, &packet, row);
    }

    /// What is under way there is over when it is known what was delivered before.
    #[cold]
    fn gone(&mut self, link: PathId) {
        if !self.common.gone.contains(&link) {
            self.common.gone.push(link);
        }
    }

    /// Has all peers at the host asked at once. A message that quotes no packet of this NIC's that
    /// is under way changes nothing: whoever forges one would have to know 24 bits of a queue pair
    /// number and the sequence number of the moment. Of those that come within a millisecond, one
    /// is looked at, since that takes a walk along all queue pairs.
    ///
    /// Of what is quoted of a management datagram, an [event](Event::RequestBounced) tells.
    #[cold]
    fn port_closed(&mut self, at: Host, quoted: &[u8]) {
        let Some((bth, behind)) = quoted.split_first_chunk() else { return };
        let Ok(bth) = Bth::from_bytes(bth) else { return };
        if bth.destination() == Qpn::GSI {
            let bounced = self.common.management.bounced(bth, behind);
            return self.common.events.extend(bounced.map(Event::RequestBounced));
        }
        let Self { common, pairs, closed_again, .. } = self;
        if common.lossless || common.now < *closed_again {
            return;
        }
        *closed_again = common.now + BETWEEN_CLOSED;
        if !pairs.iter().flatten().any(|pair| pair.has_sent(at, &bth)) {
            return;
        }
        common.counters.closed_ports += 1;
        for (peer, at) in common.hosts.suspect(at, Suspect::Closed, |_| true, common.now) {
            common.timers.arm(peer.timer(), at);
        }
    }

    fn malformed(&mut self, why: Malformed) {
        tracing::trace!(%why, "malformed");
        self.common.counters.malformed += 1;
    }
}
