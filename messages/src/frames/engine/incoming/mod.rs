//! The receiver's side: messages on their way from a peer.

mod assembly;
mod windows;

use std::collections::{HashMap, VecDeque};

use super::common::{Common, Destination, Event, Lost, Place, Receives};
use super::timing::Time;
use crate::frames::policy::Offload;
use crate::frames::wire::{Clear, Flags, Frame, Head, Kind, MessageHeader};
use assembly::{Assembly, Step};

/// The most messages whose acknowledgement was not answered yet. The oldest are forgotten.
const MOST_UNCONFIRMED: usize = 1024;

/// The messages on their way from a peer.
///
/// A message whose number is below `next` is noted, under way, or complete: complete are all those
/// of which nothing is known.
#[derive(Debug)]
pub struct Incoming<P> {
    /// The epoch of the peer's messages, once one has come.
    epoch: Option<u32>,
    /// Whether the messages of this epoch were given up.
    is_over: bool,
    /// The number of the next message to be looked at.
    next: u32,
    /// Messages that wait for receives.
    noted: HashMap<u32, Noted>,
    underway: HashMap<u32, Assembly<P>>,
    /// Complete messages whose acknowledgements were not answered, and when they are forgotten.
    unconfirmed: VecDeque<(u32, Time)>,
    /// When the peer was last heard of.
    heard: Time,
}

/// A message that waits for a receive.
#[derive(Clone, Copy, Debug)]
struct Noted {
    header: MessageHeader,
    flags: Flags,
}

impl<P> Default for Incoming<P> {
    fn default() -> Self {
        Self {
            epoch: None,
            is_over: false,
            next: 0,
            noted: HashMap::new(),
            underway: HashMap::new(),
            unconfirmed: VecDeque::new(),
            heard: Time::ZERO,
        }
    }
}

impl<P: Place> Incoming<P> {
    /// Whether no message waits or is under way.
    pub fn is_empty(&self) -> bool {
        self.noted.is_empty() && self.underway.is_empty() && self.unconfirmed.is_empty()
    }

    /// Takes in a frame. Returns whether the frame makes sense.
    pub fn handle<S>(
        &mut self,
        common: &mut Common<S, P>,
        frame: &Frame<'_>,
        now: Time,
        receives: &mut impl Receives<P>,
    ) -> bool {
        let Head { epoch, number, kind } = frame.head;
        if !self.is_current(common, epoch) {
            return true;
        }
        self.heard = now;
        match kind {
            Kind::First(header, flags) => {
                let is_next = number == self.next;
                if is_next && !self.look(common, number, Noted { header, flags }, receives) {
                    return true;
                }
                let known = self.underway.get(&number).is_none_or(|it| *it.header() == header);
                known && self.data(common, number, (0, flags), frame.data, now)
            }
            Kind::Data { frame: 0, flags } | Kind::Placed { flags, .. } if !flags.windows => false,
            Kind::Data { frame: at, flags } => {
                self.data(common, number, (at, flags), frame.data, now)
            }
            Kind::Placed { first, count, flags } => {
                let Some(assembly) = self.underway.get_mut(&number) else {
                    return self.elsewhere(common, number, flags);
                };
                let Some(step) = assembly.placed(first, count, flags, common, now) else {
                    return false;
                };
                self.follow(common, number, step, now);
                true
            }
            Kind::CleanUp => {
                let before = self.unconfirmed.len();
                self.unconfirmed.retain(|&(of, _)| of != number);
                common.statistics.cleaned_up += (before - self.unconfirmed.len()) as u64;
                true
            }
            _ => false,
        }
    }

    /// Whether a frame is of the epoch that counts. The first frame of a later epoch is dropped,
    /// and will come again.
    fn is_current<S>(&mut self, common: &mut Common<S, P>, epoch: u32) -> bool {
        match self.epoch {
            Some(own) if own == epoch => !self.is_over,
            Some(own) if epoch.wrapping_sub(own).cast_signed() < 0 => false,
            own => {
                if own.is_some() {
                    self.fail(common, Lost::Anew);
                }
                *self = Self { epoch: Some(epoch), ..Self::default() };
                // The user has to forget the old messages before it is asked about new ones.
                own.is_none()
            }
        }
    }

    /// Looks at a message whose turn it is: where does it go? Returns `false` if the message has to
    /// come again.
    fn look<S>(
        &mut self,
        common: &mut Common<S, P>,
        number: u32,
        noted: Noted,
        receives: &mut impl Receives<P>,
    ) -> bool {
        let places = noted.flags.places && common.policy.offload() != Offload::None;
        match receives.destination(number, &noted.header, places) {
            Destination::Place(place) => {
                let assembly = Assembly::new(noted.header, noted.flags.windows, place);
                self.underway.insert(number, assembly);
            }
            Destination::Waits => {
                self.noted.insert(number, noted);
            }
            Destination::Nowhere => {}
            Destination::Full => {
                common.statistics.crowded += 1;
                return false;
            }
        }
        self.next = self.next.wrapping_add(1);
        true
    }

    /// Takes in the data of a frame. Returns whether the frame fits its message.
    fn data<S>(
        &mut self,
        common: &mut Common<S, P>,
        number: u32,
        (frame, flags): (u32, Flags),
        data: &[u8],
        now: Time,
    ) -> bool {
        let Some(assembly) = self.underway.get_mut(&number) else {
            if flags.last && !flags.windows && self.is_complete(number) {
                common.statistics.repeated += 1;
                common.statistics.acknowledgements += 1;
                let epoch = self.epoch.unwrap_or_default();
                common.control(epoch, number, Kind::Acknowledged { frame });
                return true;
            }
            return self.elsewhere(common, number, flags);
        };
        let Some(step) = assembly.data(frame, flags, data, common, now) else { return false };
        self.follow(common, number, step, now);
        true
    }

    /// Whether a message is complete: it was looked at, and nothing is known of it any more.
    fn is_complete(&self, number: u32) -> bool {
        number.wrapping_sub(self.next).cast_signed() < 0 && !self.noted.contains_key(&number)
    }

    /// Takes a frame of a message that is not under way.
    fn elsewhere<S>(&mut self, common: &mut Common<S, P>, number: u32, flags: Flags) -> bool {
        let epoch = self.epoch.unwrap_or_default();
        if self.noted.contains_key(&number) {
            common.statistics.dropped += 1;
            if flags.windows {
                common.statistics.cleared += 1;
                let clear = Clear { turn: 0, base: 0, wanted: 0, memory: None };
                common.control(epoch, number, Kind::Clear(clear));
            }
        } else if !self.is_complete(number) {
            common.statistics.early += 1;
        } else if flags.windows {
            common.statistics.acknowledgements += 1;
            common.control(epoch, number, Kind::Received);
        } else {
            common.statistics.repeated += 1;
        }
        true
    }

    /// Does what an assembly asks for.
    fn follow<S>(&mut self, common: &mut Common<S, P>, number: u32, step: Step, now: Time) {
        let epoch = self.epoch.unwrap_or_default();
        match step {
            Step::Nothing => {}
            Step::Acknowledge { frame, is_over } => {
                common.statistics.acknowledgements += 1;
                common.control(epoch, number, Kind::Acknowledged { frame });
                if is_over {
                    self.over(common, number);
                }
            }
            Step::Clear(clear) => {
                common.statistics.cleared += 1;
                common.control(epoch, number, Kind::Clear(clear));
            }
            Step::Over => {
                common.statistics.acknowledgements += 1;
                common.control(epoch, number, Kind::Received);
                if self.unconfirmed.len() == MOST_UNCONFIRMED {
                    self.unconfirmed.pop_front();
                    common.statistics.reclaimed += 1;
                }
                self.unconfirmed.push_back((number, now + common.timing.most * 4));
                self.over(common, number);
            }
        }
    }

    /// Ends a message that is complete.
    fn over<S>(&mut self, common: &mut Common<S, P>, number: u32) {
        if let Some(assembly) = self.underway.remove(&number) {
            common.statistics.messages_received += 1;
            common.events.push_back(Event::Received(assembly.into_place()));
        }
    }

    /// Gives a noted message its place. Returns the place if the message is not noted.
    pub fn place<S>(
        &mut self,
        common: &mut Common<S, P>,
        number: u32,
        place: P,
        now: Time,
    ) -> Result<(), P> {
        let Some(Noted { header, flags }) = self.noted.remove(&number) else { return Err(place) };
        let mut assembly = Assembly::new(header, flags.windows, place);
        // In windows, the receiver asks for the message. Otherwise it will be sent again.
        let step = if flags.windows { assembly.begin(common, now) } else { Step::Nothing };
        self.underway.insert(number, assembly);
        self.follow(common, number, step, now);
        Ok(())
    }

    /// Forgets a noted message whose data is not wanted.
    pub fn swallow<S>(&mut self, common: &mut Common<S, P>, number: u32) {
        let Some(noted) = self.noted.remove(&number) else { return };
        if noted.flags.windows {
            common.statistics.acknowledgements += 1;
            common.control(self.epoch.unwrap_or_default(), number, Kind::Received);
        }
    }

    /// Returns when something is due, if nothing comes before.
    pub fn next_timeout<S>(&self, common: &Common<S, P>) -> Option<Time> {
        let waits = !self.noted.is_empty() || !self.underway.is_empty();
        let silent = waits.then(|| self.heard + common.timing.patience);
        let forgotten = self.unconfirmed.front().map(|&(_, at)| at);
        let again = self.underway.values().filter_map(Assembly::next_timeout).min();
        [silent, forgotten, again].into_iter().flatten().min()
    }

    /// Asks for frames that did not come in time. Returns whether the peer was silent for so long
    /// that all messages were given up.
    pub fn handle_timeout<S>(&mut self, common: &mut Common<S, P>, now: Time) -> bool {
        while self.unconfirmed.front().is_some_and(|&(_, at)| at <= now) {
            self.unconfirmed.pop_front();
            common.statistics.reclaimed += 1;
        }
        if self.is_empty() {
            return false;
        }
        if self.heard + common.timing.patience <= now {
            self.fail(common, Lost::Silent);
            return true;
        }
        let epoch = self.epoch.unwrap_or_default();
        let mut due: Vec<_> = self
            .underway
            .iter_mut()
            .filter_map(|(&number, assembly)| Some((number, assembly.time_out(common, now)?)))
            .collect();
        due.sort_unstable_by_key(|&(number, _)| number);
        for (number, clear) in due {
            common.statistics.cleared += 1;
            common.statistics.asked_again += 1;
            common.control(epoch, number, Kind::Clear(clear));
        }
        false
    }

    /// Gives up all messages. Frames of this epoch are of no use from here on.
    pub fn fail<S>(&mut self, common: &mut Common<S, P>, lost: Lost) {
        self.is_over = true;
        if !self.noted.is_empty() {
            self.noted.clear();
            common.events.push_back(Event::NotesVoid);
        }
        let mut failed: Vec<_> = self.underway.drain().collect();
        failed.sort_unstable_by_key(|&(number, _)| number);
        let failed = failed.into_iter().map(|(_, assembly)| assembly.into_place());
        common.events.extend(failed.map(|place| Event::ReceiveFailed(place, lost)));
        self.unconfirmed.clear();
    }
}
