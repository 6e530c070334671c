//! The probe of one queue pair's peer that is under way.

use crate::time::Time;

/// A probe that is under way.
#[derive(Clone, Copy)]
pub(crate) struct Probe {
    /// When the first question was asked. Whatever came by the queue pair since then ends the
    /// probe.
    pub since: Time,
    /// When to ask again, or to judge.
    pub again: Time,
    /// How many questions were asked. The first is asked when the clock is read next: the time that
    /// was told last may be long ago.
    pub asked: u8,
}
