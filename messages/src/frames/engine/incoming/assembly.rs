//! A message under way, which is put together in its place.

use super::windows::Windows;
use crate::frames::engine::bits::Bits;
use crate::frames::engine::common::{Common, Place};
use crate::frames::engine::timing::Time;
use crate::frames::wire::{Clear, Flags, MessageHeader};

/// A message under way at its receiver.
#[derive(Debug)]
pub struct Assembly<P> {
    header: MessageHeader,
    place: P,
    got: Bits,
    /// The windows that were cleared, if the message is sent in windows.
    windows: Option<Windows>,
}

/// The step that the receiver of a message takes next, for example because a frame has come.
#[derive(Debug)]
pub enum Step {
    Nothing,
    /// Acknowledge the collection of a frame. The message may be over.
    Acknowledge {
        frame: u32,
        is_over: bool,
    },
    Clear(Clear),
    /// Acknowledge the message, which is over.
    Over,
}

impl<P: Place> Assembly<P> {
    pub fn new(header: MessageHeader, is_windowed: bool, place: P) -> Self {
        let windows = is_windowed.then(Windows::default);
        Self { header, place, got: Bits::new(header.frames), windows }
    }

    pub fn header(&self) -> &MessageHeader {
        &self.header
    }

    pub fn into_place(self) -> P {
        self.place
    }

    /// Clears the first window of a message that had to wait for its receive.
    pub fn begin<S>(&mut self, common: &Common<S, P>, now: Time) -> Step {
        self.clear_more(common, now).map_or(Step::Nothing, Step::Clear)
    }

    /// Takes in the data of a frame. Returns `None` if the frame does not fit the message.
    pub fn data<S>(
        &mut self,
        frame: u32,
        flags: Flags,
        data: &[u8],
        common: &mut Common<S, P>,
        now: Time,
    ) -> Option<Step> {
        let range = self.header.range(frame);
        let fits = frame < self.header.frames && range.len() == data.len();
        if !fits || flags.windows != self.windows.is_some() {
            return None;
        }
        let is_new = self.got.add(frame);
        match is_new {
            true => self.place.write(range.start, data),
            false => common.statistics.repeated += 1,
        }
        Some(match self.windows.is_some() {
            true => self.after(is_new, flags, common, now),
            false => self.collected(frame, is_new || flags.last),
        })
    }

    /// Takes the notice that frames were placed. Returns `None` if that can't be.
    pub fn placed<S>(
        &mut self,
        first: u32,
        count: u16,
        flags: Flags,
        common: &mut Common<S, P>,
        now: Time,
    ) -> Option<Step> {
        let past = first.checked_add(count.into())?;
        let may = self.windows.as_ref().is_some_and(|windows| past <= windows.cleared());
        if !may || self.place.memory().is_none() {
            return None;
        }
        let mut new = 0;
        (first..past).for_each(|frame| new += u64::from(self.got.add(frame)));
        common.statistics.placed += new;
        Some(self.after(new > 0, flags, common, now))
    }

    /// Acknowledges a frame's collection if that is complete, and if the frame tells anything new.
    fn collected(&mut self, frame: u32, tells: bool) -> Step {
        let size = u32::from(self.header.collection);
        let start = frame / size * size;
        let end = start.saturating_add(size).min(self.header.frames);
        match tells && self.got.has_all(start..end) {
            true => Step::Acknowledge { frame, is_over: self.got.is_full() },
            false => Step::Nothing,
        }
    }

    /// Does what follows from a frame of a message in windows.
    fn after<S>(&mut self, is_new: bool, flags: Flags, common: &Common<S, P>, now: Time) -> Step {
        if self.got.is_full() {
            return Step::Over;
        }
        let first_missing = self.got.first_missing();
        let Some(windows) = &mut self.windows else { return Step::Nothing };
        if is_new {
            windows.has_come(now + common.trips.time_out(0));
        }
        let is_through = first_missing >= windows.cleared();
        let clear = match is_through || is_new && flags.more {
            true => self.clear_more(common, now),
            // The sender repeats its request: the clear to send may be lost.
            false if !is_new && (flags.more || flags.end) => windows.latest(),
            false => None,
        };
        clear.map_or(Step::Nothing, Step::Clear)
    }

    /// Clears the next window, as the policy has it.
    fn clear_more<S>(&mut self, common: &Common<S, P>, now: Time) -> Option<Clear> {
        let (got, header) = (&self.got, &self.header);
        let windows = self.windows.as_mut()?;
        // The first frame came unasked, if it has come.
        let cleared = windows.cleared().max(u32::from(got.has(0)));
        let count = common.policy.cleared(header.frames.saturating_sub(cleared), header.stride);
        let is_far = cleared + count > got.first_missing() + 64;
        if count == 0 || is_far {
            return None;
        }
        let wanted = u64::MAX >> (64 - count);
        let deadline = now + common.trips.time_out(0);
        Some(windows.clear(cleared, wanted, self.place.memory(), deadline))
    }

    pub fn next_timeout(&self) -> Option<Time> {
        self.windows.as_ref()?.next_timeout()
    }

    /// Asks again for frames that were cleared and did not come in time.
    pub fn time_out<S>(&mut self, common: &Common<S, P>, now: Time) -> Option<Clear> {
        let windows = self.windows.as_mut()?;
        let tries = windows.time_out(now)?;
        let base = self.got.first_missing();
        let end = windows.cleared().min(base.saturating_add(64));
        let missing = (base..end).filter(|&frame| !self.got.has(frame));
        let wanted = missing.fold(0, |wanted, frame| wanted | 1 << (frame - base));
        let deadline = now + common.trips.time_out(tries);
        Some(windows.clear(base, wanted, self.place.memory(), deadline))
    }
}
