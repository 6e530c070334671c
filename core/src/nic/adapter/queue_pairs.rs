//! Queue pairs: how they are made, changed and taken down.

use std::sync::Arc;
use std::sync::atomic::AtomicU8;

use crate::cipher::Keys;
use crate::common::random::take_at_random;
use crate::encap::Path;
use crate::nic::adapter::completion_queues::check_depth;
use crate::nic::adapter::nic::{Nic, find};
use crate::nic::config::connection::Change;
use crate::nic::config::errors::{ChangeError, ResourceError};
use crate::nic::config::queue_pair::QueuePairConfig;
use crate::nic::config::queue_pair_state::State;
use crate::nic::queues::ends::QueuePairEnds;
use crate::nic::queues::receive_queue::ReceiveQueue;
use crate::nic::queues::receives::Receives;
use crate::nic::queues::send_queue::SendQueue;
use crate::nic::queues::shared_with_program::SharedWithProgram;
use crate::nic::requests::failure::Cause;
use crate::nic::state::queue_pair::{Blamed, QueuePair};
use crate::nic::state::requester::Requester;
use crate::nic::state::responder::Responder;
use crate::nic::state::turns::RequesterTurn;
use crate::wire::{Psn, Qpn};

impl Nic {
    /// Makes a queue pair, in the reset state.
    ///
    /// # Errors
    /// When the table is full, a completion queue does not exist or is too small, or a depth is
    /// zero or too large.
    pub fn queue_pair(&mut self, config: &QueuePairConfig) -> Result<QueuePairEnds, ResourceError> {
        let queues = (config.send_completions, config.receive_completions);
        check_depth(config.send_depth)?;
        self.check_shared(config)?;
        let shared = usize::from(queues.0 == queues.1);
        self.check_room(queues.0, 1, shared)?;
        self.check_room(queues.1, shared, 1)?;
        self.grow_if_crowded();
        let full = ResourceError::QueuePairsFull(self.most_pairs);
        let place = take_at_random(&mut self.free_places, &mut self.random).ok_or(full)?;
        let qpn = self.new_number(place);
        self.completions(queues.0)?.senders += 1;
        self.completions(queues.1)?.receivers += 1;
        let state = Arc::new(AtomicU8::new(State::Reset as u8));
        let (service, doorbells) = (config.transport.service(), Arc::clone(&self.doorbells));
        let shared = SharedWithProgram { qpn, place, service, state, doorbells };
        let (send, sends) = SendQueue::new(shared.clone(), config.send_depth);
        let (receive, receives) = match config.shared_receives {
            Some(queue) => {
                self.shared_receives(queue)?.users += 1;
                let end = ReceiveQueue::without(shared.clone(), &self.no_receives);
                (end, Receives::Shared(queue))
            }
            None => {
                let (receive, ring) = ReceiveQueue::new(shared.clone(), config.receive_depth);
                (receive, Receives::Own(ring))
            }
        };
        let requester = Requester::new(sends, config.send_depth);
        let (responder, domain) = (Responder::new(receives), config.domain);
        let (sends, receives) = (queues.0.place, queues.1.place);
        let pair = QueuePair::new(shared, domain, sends, receives, requester, responder);
        self.pairs[place as usize] = Some(Box::new(pair));
        Ok(QueuePairEnds { qpn, send, receive })
    }

    /// Draws a number for a queue pair at a place.
    fn new_number(&mut self, place: u32) -> Qpn {
        loop {
            if let Some(qpn) = self.numbers.number(place, self.random.u32()) {
                return qpn;
            }
        }
    }

    /// Returns how many requests of a queue pair were posted and have not completed; 0 if there is
    /// no such queue pair.
    pub fn unfinished(&mut self, qpn: Qpn) -> usize {
        find(&mut self.pairs, self.numbers, qpn).map_or(0, |pair| pair.requester.outstanding())
    }

    /// Takes a queue pair down whose ends were dropped: nobody can post any more, and all that was
    /// posted is flushed first.
    ///
    /// # Errors
    /// When there is no such queue pair, or one of its ends is still there; then nothing is
    /// changed. Or when its completion queues have no room for what must be flushed; then the queue
    /// pair is in the error state.
    pub fn drop_queue_pair(&mut self, qpn: Qpn) -> Result<(), ResourceError> {
        let place = self.numbers.place(qpn);
        let Some(pair) = find(&mut self.pairs, self.numbers, qpn) else {
            return Err(ResourceError::NoSuchQueuePair(qpn));
        };
        if !pair.is_deserted() {
            return Err(ResourceError::HasEnds(qpn));
        }
        pair.break_with(Cause::Told, Blamed::Nothing, &mut self.common);
        if pair.flush(&mut self.common) == RequesterTurn::Starved {
            let outstanding = pair.outstanding();
            return Err(ResourceError::Outstanding { qpn, outstanding });
        }
        pair.forget_events(&mut self.common);
        pair.leave_peer(&mut self.common);
        let queues = (pair.send_completions, pair.receive_completions);
        let shared = pair.responder.shared();
        self.common.forget(place as u32);
        if let Some(queue) = shared {
            self.shared_receives(queue)?.users -= 1;
        }
        self.pairs[place] = None;
        self.free_places.push_back(place as u32);
        self.completions(self.common.completion_queue(queues.0))?.senders -= 1;
        self.completions(self.common.completion_queue(queues.1))?.receivers -= 1;
        Ok(())
    }

    /// Changes the state of a queue pair. See [`reset`](Self::reset) for the way back.
    ///
    /// # Errors
    /// When there is no such queue pair, or no transition from its state.
    pub fn change(&mut self, qpn: Qpn, change: Change) -> Result<(), ChangeError> {
        let Self { pairs, common, numbers, .. } = self;
        let pair = find(pairs, *numbers, qpn).ok_or(ChangeError::NoSuchQueuePair(qpn))?;
        pair.change(change, common)
    }

    /// Has the packets of a connected queue pair take another path, to the same peer.
    ///
    /// # Errors
    /// When there is no such queue pair, it has no peer, or the path leads elsewhere.
    pub fn redirect(&mut self, qpn: Qpn, path: Path) -> Result<(), ChangeError> {
        let Self { pairs, common, numbers, .. } = self;
        let pair = find(pairs, *numbers, qpn).ok_or(ChangeError::NoSuchQueuePair(qpn))?;
        let same = |old: &Path| old.outer().hosts() == path.outer().hosts();
        if !pair.path.as_ref().is_some_and(same) {
            return Err(ChangeError::OtherPeer { qpn });
        }
        pair.redirect(path, common);
        Ok(())
    }

    /// Has a queue pair forget its connection: it is then as it was made. Both of its ends are
    /// borrowed, so that nobody posts what nobody would complete.
    ///
    /// # Errors
    /// When requests are outstanding, or the ends are not of this NIC, or not of one queue pair.
    pub fn reset(
        &mut self,
        send: &mut SendQueue,
        receive: &mut ReceiveQueue,
    ) -> Result<(), ChangeError> {
        let qpn = send.qpn();
        if !send.rings(&self.doorbells) {
            return Err(ChangeError::OfAnotherNic(qpn));
        }
        if !receive.rings(&self.doorbells) {
            return Err(ChangeError::OfAnotherNic(receive.qpn()));
        }
        if qpn != receive.qpn() {
            return Err(ChangeError::OfTwo { send: qpn, receive: receive.qpn() });
        }
        let Self { pairs, common, numbers, .. } = self;
        let pair = find(pairs, *numbers, qpn).ok_or(ChangeError::NoSuchQueuePair(qpn))?;
        pair.reset(common)
    }

    /// The state of a queue pair.
    pub fn state(&self, qpn: Qpn) -> Option<State> {
        self.look_at(qpn).map(|pair| pair.state)
    }

    /// Has a queue pair encrypt what it sends with the next key from now on. The peer follows. Returns
    /// whether there is such a queue pair, and its packets are encrypted.
    pub fn renew_keys(&mut self, qpn: Qpn) -> bool {
        let pair = find(&mut self.pairs, self.numbers, qpn);
        let keys = pair.and_then(|pair| pair.path.as_mut()).and_then(Path::keys_mut);
        keys.map(Keys::renew).is_some()
    }

    /// Returns the sequence number of the next request packet that a queue pair expects from its
    /// peer; `None` if there is no such queue pair.
    pub fn expected_psn(&self, qpn: Qpn) -> Option<Psn> {
        self.look_at(qpn).map(|pair| pair.responder.expected_psn)
    }

    fn look_at(&self, qpn: Qpn) -> Option<&QueuePair> {
        let pair = self.pairs.get(self.numbers.place(qpn)).and_then(Option::as_deref);
        pair.filter(|pair| pair.number() == qpn)
    }
}
