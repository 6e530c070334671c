//! Links of endpoints whose receives rest while the endpoints are idle: see
//! [`Buffers`](crate::receives::Buffers).

use std::sync::atomic::Ordering;

use super::{Link, SendSide};
use crate::wire::Kind;

/// How many messages go and come by a link before the link is used often, and the pool wakes.
const OFTEN: u8 = 16;

/// How the poller handles the messages of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Stage {
    /// They wait until the link is open, or are dropped since it was cut off.
    Closed,
    /// They are handled as they come.
    Open,
    /// They are handled with the care that a resting pool needs.
    Resting,
}

impl Link {
    /// Returns whether the poller knows that the link is open, and has handled what came before.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.stage.load(Ordering::Relaxed) != Stage::Closed as u8
    }

    /// Returns whether the poller handles messages as they come, and needs no special care.
    #[inline]
    pub fn is_awake(&self) -> bool {
        self.stage.load(Ordering::Relaxed) == Stage::Open as u8
    }

    /// Has the poller, which calls this, handle the link's messages from now on.
    pub fn set_open(&self) {
        let awake = self.buffers.is_awake();
        let stage = if awake { Stage::Open } else { Stage::Resting };
        self.stage.store(stage as u8, Ordering::Relaxed);
        if !awake {
            // The pool may have gone to rest while the link was being made.
            self.release_receives(self.rest());
        }
    }

    /// Has the poller handle no more messages of the link.
    pub(super) fn close(&self) {
        self.stage.store(Stage::Closed as u8, Ordering::Relaxed);
    }

    /// Prepares for the handling of a message while the link rests. The poller calls this.
    #[cold]
    pub fn take_care(&self, kind: Kind) {
        // With these, as many promises of receives are taken back as requests are answered.
        let is_answer = matches!(kind, Kind::Reply | Kind::Returned | Kind::Done | Kind::Grant);
        if !is_answer {
            self.is_used(&mut self.send_side());
        }
        if self.buffers.is_awake() {
            self.turn(Stage::Resting, Stage::Open);
        } else {
            self.buffers.take_in_hand(is_answer);
        }
    }

    /// Wakes the receives of the endpoint, if they rest.
    fn wake(&self) {
        if self.buffers.wake()
            && let Some(owner) = self.endpoint.owner.upgrade()
        {
            owner.rest_when_idle();
        }
    }

    /// Goes to another stage, unless the link was cut off meanwhile.
    fn turn(&self, from: Stage, to: Stage) {
        let _ =
            self.stage.compare_exchange(from as u8, to as u8, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Notes that a receive was promised for an answer. A link that is used often keeps the receive
    /// from one request to the next.
    pub(super) fn has_leased(&self, out: &mut SendSide) {
        if self.buffers.may_rest() && self.is_used(out) {
            out.least_leases = out.least_leases.max(1);
        }
    }

    /// Notes that a message goes or comes that costs more while the pool rests. Returns whether the
    /// link is used often, and the pool does not rest.
    fn is_used(&self, out: &mut SendSide) -> bool {
        out.uses = out.uses.saturating_add(1);
        if out.uses < OFTEN {
            return false;
        }
        self.wake();
        self.buffers.is_awake()
    }

    /// Has the link keep no receives for answers, since the pool rests. Returns how many the link
    /// gives up. The caller holds the poller.
    pub fn rest(&self) -> usize {
        self.turn(Stage::Open, Stage::Resting);
        let out = &mut *self.send_side();
        (out.least_leases, out.uses) = (0, 0);
        let unused = out.leases.saturating_sub(out.under_way);
        out.leases -= unused;
        unused.into()
    }

    /// Returns a count of the requests that have come and gone.
    pub fn requests(&self) -> u32 {
        let asked = self.send_side().asked;
        self.received.load(Ordering::Relaxed).wrapping_add(asked.into())
    }
}
