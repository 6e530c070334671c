//! Routes: which of its [paths](crate::nic::paths) a connection's packets take.

use crate::nic::paths::Paths;
use crate::nic::state::queue_pair::QueuePair;
use crate::time::Time;
use crate::wire::Psn;

/// How many bytes an acknowledgement counts for, until another route has its turn.
const PER_ACKNOWLEDGEMENT: usize = 4 << 10;

impl QueuePair {
    /// Has packets take several routes, where their source port may be any.
    pub(crate) fn take_paths(&mut self, paths: Paths) {
        if let Some(path) = self.path.as_mut().filter(|path| path.has_label()) {
            path.relabel(paths.label());
            self.requester.paths = Some(Box::new(paths));
        }
    }

    /// Goes on to another route if it is time.
    #[inline]
    pub(crate) fn turn_to_path(&mut self, now: Time) {
        if let Some(paths) = &mut self.requester.paths
            && let Some(label) = paths.turn(now)
            && let Some(path) = &mut self.path
        {
            path.relabel(label);
        }
    }

    /// Notes that an acknowledgement was sent. Whether it arrives is not known, so the next few take
    /// another route.
    #[inline]
    pub(crate) fn acknowledged_by_path(&mut self, now: Time) {
        if let Some(paths) = &mut self.requester.paths {
            paths.sent_others(PER_ACKNOWLEDGEMENT);
            self.turn_to_path(now);
        }
    }

    /// Notes that the peer has sent something again that had come: the route by which it was
    /// acknowledged may be dead.
    #[cold]
    pub(crate) fn leave_path_of_acknowledgements(&mut self, now: Time) {
        if let Some(paths) = &mut self.requester.paths
            && let Some(path) = &mut self.path
        {
            path.relabel(paths.leave(now));
        }
    }

    /// Notes that packet `psn` was lost, and is about to be sent again.
    pub(crate) fn leave_path_of(&mut self, psn: Psn, now: Time) {
        if let Some(paths) = &mut self.requester.paths
            && let Some(label) = paths.lost(psn, self.mtu.bytes(), now)
            && let Some(path) = &mut self.path
        {
            path.relabel(label);
        }
    }
}
