//! What follows from an event, and is done without the lock on the endpoint's state.

use std::sync::Arc;
use std::task::Waker;

use super::arrived::PullJob;
use super::lane::Lane;

/// The effects of an event that wait until the state's lock is released: frames that are to be
/// sent, tasks that are to be woken, and bodies that are to be pulled. Most events have none, or a
/// task to wake.
#[derive(Debug, Default)]
pub struct Effects {
    waker: Option<Waker>,
    /// The lane whose frames are to be sent.
    lane: Option<Arc<Lane>>,
    more: Option<Box<More>>,
}

/// The effects of events that have several.
#[derive(Debug, Default)]
struct More {
    lanes: Vec<Arc<Lane>>,
    cut_off: Option<Arc<Lane>>,
    wakers: Vec<Waker>,
    pulls: Vec<PullJob>,
}

impl Effects {
    fn more(&mut self) -> &mut More {
        self.more.get_or_insert_default()
    }

    /// Has what is on a lane sent.
    pub fn send(&mut self, lane: &Arc<Lane>) {
        match &self.lane {
            None => self.lane = Some(lane.clone()),
            Some(there) if Arc::ptr_eq(there, lane) => {}
            Some(_) => self.more().lanes.push(lane.clone()),
        }
    }

    /// Has the connection to a peer ended that breaks the rules.
    pub fn cut_off(&mut self, lane: &Arc<Lane>) {
        self.more().cut_off = Some(lane.clone());
    }

    /// Has a task woken, if there is one.
    pub fn wake(&mut self, waker: Option<Waker>) {
        match (&self.waker, waker) {
            (_, None) => {}
            (None, waker) => self.waker = waker,
            (Some(_), Some(waker)) => self.more().wakers.push(waker),
        }
    }

    /// Has a long body pulled.
    pub fn pull(&mut self, job: PullJob) {
        self.more().pulls.push(job);
    }

    /// Takes out the bodies that are to be pulled.
    #[inline]
    pub fn take_pulls(&mut self) -> Vec<PullJob> {
        self.more.as_mut().map(|more| std::mem::take(&mut more.pulls)).unwrap_or_default()
    }

    /// Sends what is to be sent, and wakes who is to be woken. Returns whether a task was woken, or
    /// begun.
    #[inline]
    pub fn finish(self) -> bool {
        let Self { waker, lane, more } = self;
        let mut woke = waker.is_some();
        waker.into_iter().for_each(Waker::wake);
        if let Some(more) = more {
            woke |= more.finish();
        }
        lane.map_or(woke, |lane| lane.flush() || woke)
    }
}

impl More {
    #[cold]
    fn finish(self) -> bool {
        let Self { lanes, cut_off, wakers, pulls } = self;
        debug_assert!(pulls.is_empty(), "they are taken out before");
        let woke = !wakers.is_empty();
        wakers.into_iter().for_each(Waker::wake);
        cut_off.iter().for_each(|lane| lane.cut_off());
        lanes.iter().filter(|lane| lane.flush()).count() > 0 || woke
    }
}
