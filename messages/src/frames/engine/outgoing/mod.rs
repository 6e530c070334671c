//! The sender's side: messages on their way to a peer.

mod collections;
mod windows;

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::common::{Common, Event, Lost, Transmit};
use super::timing::Time;
use crate::frames::policy::{Offload, Policy};
use crate::frames::wire::{Flags, Head, Kind, MessageHeader};
use collections::Collections;
use windows::{Step, Windows};

/// The most frames of a peer's that are on their way without an answer, whatever the policy allows.
const MOST_FLYING: u32 = 256;
/// As many at first, and at least.
const FIRST_FLYING: u32 = 64;
const LEAST_FLYING: u32 = 4;

/// The messages on their way to a peer.
#[derive(Debug)]
pub struct Outgoing<S> {
    /// Counts how often all messages were given up. Numbers begin anew then.
    epoch: u32,
    /// The number of the next message.
    next: u32,
    messages: BTreeMap<u32, Message<S>>,
    /// Messages with frames that have been asked for, or that are to be sent again.
    ready: BTreeSet<u32>,
    /// Messages with frames that nobody has seen, and that wait until there is room on the way.
    fresh: BTreeSet<u32>,
    /// How many frames are on their way without an answer, and how many may be.
    flying: u32,
    most_flying: u32,
    /// When the peer last answered a message of this epoch.
    heard: Time,
    /// Whether frames can be placed by RDMA writes.
    places: bool,
}

#[derive(Debug)]
struct Message<S> {
    header: MessageHeader,
    body: Bytes,
    message: S,
    /// When the peer last answered the message, or the message began.
    progress: Time,
    flow: Flow,
}

/// The two ways in which a message is sent.
#[derive(Debug)]
enum Flow {
    Collections(Collections),
    Windows(Windows),
}

impl<S> Default for Outgoing<S> {
    fn default() -> Self {
        Self {
            epoch: 0,
            next: 0,
            messages: BTreeMap::new(),
            ready: BTreeSet::new(),
            fresh: BTreeSet::new(),
            flying: 0,
            most_flying: FIRST_FLYING,
            heard: Time::ZERO,
            places: false,
        }
    }
}

impl Flow {
    fn flying(&self) -> u32 {
        match self {
            Self::Collections(collections) => collections.flying(),
            Self::Windows(windows) => windows.flying(),
        }
    }
}

impl<S> Outgoing<S> {
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Sets whether frames can be placed by RDMA writes. If they can, later messages may be placed;
    /// if they can't, messages that are being sent are not placed any more, either.
    pub fn set_places(&mut self, places: bool) {
        self.places = places;
        for message in self.messages.values_mut() {
            if let Flow::Windows(windows) = &mut message.flow {
                windows.set_places(places);
            }
        }
    }

    /// Sends a message behind the others.
    pub fn send(
        &mut self,
        policy: &Policy,
        header: MessageHeader,
        body: Bytes,
        message: S,
        now: Time,
    ) {
        let flow = match policy.is_windowed() {
            true => {
                let places = self.places && policy.offload() != Offload::None;
                Flow::Windows(Windows::new(policy.early(), places))
            }
            false => Flow::Collections(Collections::new(&header)),
        };
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        self.messages.insert(number, Message { header, body, message, progress: now, flow });
        self.fresh.insert(number);
    }

    /// Takes in an answer of the peer's. Returns whether the answer makes sense.
    pub fn handle<P>(
        &mut self,
        common: &mut Common<S, P>,
        epoch: u32,
        number: u32,
        kind: Kind,
        now: Time,
    ) -> bool {
        if epoch != self.epoch {
            return true;
        }
        self.heard = now;
        let Some(message) = self.messages.get_mut(&number) else {
            let was_sent = number < self.next;
            if was_sent && kind == Kind::Received {
                // The peer has not seen that the acknowledgement came.
                common.control(epoch, number, Kind::CleanUp);
            }
            return was_sent;
        };
        let flying = message.flow.flying();
        let is_over = match (&mut message.flow, kind) {
            (Flow::Collections(collections), Kind::Acknowledged { frame }) => {
                if let Some(acknowledged) = collections.acknowledged(frame, now) {
                    self.most_flying = (self.most_flying + 1).min(MOST_FLYING);
                    message.progress = now;
                    acknowledged.trip.into_iter().for_each(|trip| common.trips.measured(trip));
                }
                collections.is_over()
            }
            (Flow::Windows(windows), Kind::Clear(clear)) => {
                let Some(cleared) = windows.cleared(&message.header, &clear, now, &common.timing)
                else {
                    return false;
                };
                message.progress = now;
                common.statistics.resent += u64::from(cleared.again);
                cleared.trip.into_iter().for_each(|trip| common.trips.measured(trip));
                false
            }
            (Flow::Windows(_), Kind::Received) => {
                common.control(epoch, number, Kind::CleanUp);
                true
            }
            _ => return false,
        };
        self.flying = self.flying + message.flow.flying() - flying;
        match is_over {
            true => self.over(common, number),
            false => self.sort(number),
        }
        true
    }

    /// Ends a message that the peer has received.
    fn over<P>(&mut self, common: &mut Common<S, P>, number: u32) {
        let Some(message) = self.messages.remove(&number) else { return };
        self.flying -= message.flow.flying();
        self.ready.remove(&number);
        self.fresh.remove(&number);
        common.statistics.messages_sent += 1;
        common.events.push_back(Event::Sent(message.message));
    }

    /// Notes what a message has to send.
    fn sort(&mut self, number: u32) {
        let Some(message) = self.messages.get(&number) else { return };
        let (is_ready, is_fresh) = match &message.flow {
            Flow::Collections(collections) => {
                (collections.is_ready(), collections.is_fresh(&message.header))
            }
            Flow::Windows(windows) => (windows.is_ready(), false),
        };
        for (set, belongs) in [(&mut self.ready, is_ready), (&mut self.fresh, is_fresh)] {
            match belongs {
                true => set.insert(number),
                false => set.remove(&number),
            };
        }
    }

    /// Returns the next frame of a message that is to be sent.
    pub fn poll_transmit<P>(
        &mut self,
        common: &mut Common<S, P>,
        now: Time,
    ) -> Option<Transmit<'_>> {
        let fresh = || self.fresh.first().filter(|_| self.flying < self.most_flying);
        let number = *self.ready.first().or_else(fresh)?;
        let message = self.messages.get_mut(&number)?;
        let (header, flying) = (message.header, message.flow.flying());
        let (step, is_repeated) = match &mut message.flow {
            Flow::Collections(collections) => {
                let (frame, is_repeated) = collections.next_frame(&header, now)?;
                let flags = Flags { last: collections.is_last(&header, frame), ..Flags::default() };
                (Step::Frame(frame, flags), is_repeated)
            }
            Flow::Windows(windows) => windows.step(&header, now, &common.trips)?,
        };
        common.statistics.resent += u64::from(is_repeated);
        if flying == 0 && !is_repeated && matches!(step, Step::Frame(0, _)) {
            message.progress = now;
        }
        self.flying = self.flying + message.flow.flying() - flying;
        self.sort(number);
        let epoch = self.epoch;
        let body = &self.messages.get(&number)?.body;
        Some(match step {
            Step::Frame(frame, flags) => {
                let kind = match frame {
                    0 => Kind::First(header, flags),
                    _ => Kind::Data { frame, flags },
                };
                Transmit::Frame(Head { epoch, number, kind }, &body[header.range(frame)])
            }
            Step::Place { memory, first, count, flags } => {
                let last = first + u32::from(count) - 1;
                let data = &body[header.range(first).start..header.range(last).end];
                let kind = Kind::Placed { first, count, flags };
                let notice = Head { epoch, number, kind };
                Transmit::Place { memory, data, stride: header.stride, notice }
            }
        })
    }

    /// Returns when frames are to be sent again, if nothing comes before.
    pub fn next_timeout<P>(&self, common: &Common<S, P>) -> Option<Time> {
        let times = self.messages.values().filter_map(|message| match &message.flow {
            Flow::Collections(collections) => collections.next_timeout(&common.trips),
            Flow::Windows(windows) => windows.next_timeout(),
        });
        times.min()
    }

    /// Has frames sent again that were not answered in time. Returns whether the peer was silent
    /// for so long that all messages were given up.
    pub fn handle_timeout<P>(&mut self, common: &mut Common<S, P>, now: Time) -> bool {
        let (mut due, mut is_silent, mut is_crowded) = (Vec::new(), false, false);
        for (&number, message) in &mut self.messages {
            let flying = message.flow.flying();
            let (is_due, is_probing) = match &mut message.flow {
                Flow::Collections(collections) => {
                    (collections.time_out(&common.trips, now), collections.is_probing())
                }
                Flow::Windows(windows) => (windows.time_out(now), false),
            };
            if is_due {
                self.flying = self.flying + message.flow.flying() - flying;
                is_silent |= now >= message.progress.max(self.heard) + common.timing.patience;
                // A probe without an answer tells of a missing receive, and not of a full network.
                is_crowded |= !is_probing;
                due.push(number);
            }
        }
        if is_silent {
            self.fail(common, Lost::Silent);
            return true;
        }
        if is_crowded {
            self.most_flying = (self.most_flying / 2).max(LEAST_FLYING);
        }
        due.into_iter().for_each(|number| self.sort(number));
        false
    }

    /// Gives all messages up.
    pub fn fail<P>(&mut self, common: &mut Common<S, P>, lost: Lost) {
        let messages = std::mem::take(&mut self.messages);
        let failed = messages.into_values().map(|message| message.message);
        common.events.extend(failed.map(|message| Event::SendFailed(message, lost)));
        let (epoch, places) = (self.epoch.wrapping_add(1), self.places);
        *self = Self { epoch, places, ..Self::default() };
    }
}
