//! Making and taking down: what a NIC's tables hold.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicU8;

use bytes::Bytes;

use crate::encap::{Path, PathId};
use crate::memory::Region;
use crate::time::Time;
use crate::wire::{Psn, Qpn, RemoteAddr, Rkey};

use super::around::FullLinks;
use super::common::{AddressId, Addresses, Common, CompletionQueueId};
use super::completion::Cause;
use super::config::{Config, Objects, QueuePairConfig, QueuePairEnds};
use super::counters::Counters;
use super::doorbells::Doorbells;
use super::growth::FIRST_PLACES;
use super::hosts::Hosts;
use super::keys::{Domain, KeyError, Keys, Lkey, Registration, TableFull};
use super::leaps::Leaps;
use super::management::Mailbox;
use super::mapped::{MappingId, Mappings};
use super::notices::Notices;
use super::numbering::{NumberingError, Numbers};
use super::pair::{Blamed, QueuePair};
use super::queues::{
    CompletionQueue, Completions, ReceiveQueue, SendQueue, Shared, SharedReceiveQueue,
};
use super::receives::{Receives, SharedReceiveQueueId, SharedReceives};
use super::refusals::ResourceError;
use super::requester::{Requester, Turn};
use super::responder::Responder;
use super::rights::Rights;
use super::ring::Nothing;
use super::states::{Change, ChangeError, State};
use super::work::ReceiveRequest;
use super::{Event, Nic, find};
use crate::common::random::{Random, Seed, take_at_random};
use crate::common::timers::Timers;

/// The most entries of a queue.
pub(super) const DEEPEST: usize = 1 << 24;

fn check_depth(entries: usize) -> Result<(), ResourceError> {
    match (1..=DEEPEST).contains(&entries) {
        true => Ok(()),
        false => Err(ResourceError::Depth(entries)),
    }
}

/// Making and taking down.
impl Nic {
    /// A NIC with empty tables.
    ///
    /// # Errors
    /// When the numbering can't be.
    pub fn new(config: Config, seed: Seed) -> Result<Self, NumberingError> {
        let mut random = Random::new(seed);
        let numbers = Numbers::new(config.numbering, config.queue_pairs)?;
        // Errors show it, so it tells nothing of the numbers.
        let nic = random.u32();
        let most = config.queue_pairs.clamp(1, numbers.capacity());
        let mut made = Self {
            common: Common {
                now: Time::ZERO,
                leaps: Leaps::default(),
                nic,
                lossless: config.lossless,
                runs: config.runs && !config.lossless,
                keys: Keys::new(config.registrations),
                mapped: Mappings::default(),
                completions: Vec::new(),
                counters: Counters::default(),
                timers: Timers::new(0),
                hosts: Hosts::new(config.keep_alive),
                active: VecDeque::new(),
                gone: Vec::new(),
                starved: Vec::new(),
                delaying: Vec::new(),
                answers: VecDeque::new(),
                notices: Notices::default(),
                behind: false,
                full: FullLinks::default(),
                flying: Vec::new(),
                events: VecDeque::new(),
                shared_receives: Vec::new(),
                addresses: Addresses::new(nic),
                most_addresses: config.addresses,
                management: Mailbox::default(),
            },
            pairs: Vec::new(),
            free: VecDeque::new(),
            most_pairs: most,
            numbers,
            random,
            doorbells: Arc::new(Doorbells::new(most)),
            domains: 0,
            no_receives: Nothing::new(),
            fired: Vec::new(),
            closed_again: Time::ZERO,
        };
        made.grow(most.min(FIRST_PLACES));
        Ok(made)
    }

    /// A new protection domain.
    pub fn domain(&mut self) -> Domain {
        self.domains += 1;
        Domain(self.domains)
    }

    /// Registers memory, and gives its keys and its address.
    ///
    /// # Errors
    /// When the table is full.
    pub fn register(
        &mut self,
        domain: Domain,
        region: Region,
        rights: Rights,
    ) -> Result<Registration, TableFull> {
        self.common.keys.register(&mut self.random, domain, region, rights)
    }

    /// Registers immutable bytes, which peers may read and do nothing else with. The local key is
    /// good for [taking them back](Self::deregister), and names nothing in requests.
    ///
    /// # Errors
    /// When the table is full.
    pub fn lend(&mut self, domain: Domain, bytes: Bytes) -> Result<Registration, TableFull> {
        self.common.keys.lend(&mut self.random, domain, bytes)
    }

    /// Takes a registration back: when this returns, no peer and no request reaches the memory by
    /// its keys any more. The region is an empty one where bytes were [lent](Self::lend).
    ///
    /// # Errors
    /// When there is none.
    pub fn deregister(&mut self, lkey: Lkey) -> Result<Region, KeyError> {
        self.common.keys.deregister(lkey)
    }

    /// Gives a registration a new remote key, also after a peer has taken the old one back; that is
    /// of no use any more.
    ///
    /// # Errors
    /// When there is no such registration.
    pub fn renew(&mut self, lkey: Lkey) -> Result<Rkey, KeyError> {
        self.common.keys.renew(&mut self.random, lkey)
    }

    /// Says that memory of a peer's is mapped here, which is at the end of a link and gave it this
    /// key and address. From now on a plain write there, by a reliable connection on that link, is
    /// carried out here: no packet is sent, and the peer's NIC is not asked. It is complete when
    /// all before it is, and overtakes nothing of it but sends. On a device that may lose packets
    /// this has no effect.
    pub fn map(&mut self, link: PathId, rkey: Rkey, base: RemoteAddr, region: Region) -> MappingId {
        self.common.mapped.add(link, rkey, base, region)
    }

    /// Takes that back: what is written there is sent again. The memory, if it was not before.
    pub fn unmap(&mut self, mapping: MappingId) -> Option<Region> {
        self.common.mapped.remove(mapping)
    }

    /// Keeps an address to send datagrams to: the way there.
    ///
    /// # Errors
    /// When there are as many as configured.
    pub fn address(&mut self, path: Path) -> Result<AddressId, ResourceError> {
        let Common { addresses, most_addresses, .. } = &mut self.common;
        addresses.add(path, *most_addresses).ok_or(ResourceError::AddressesFull(*most_addresses))
    }

    /// Forgets an address. Datagrams that are still to be sent there break their queue pair.
    ///
    /// # Errors
    /// When there is none.
    pub fn drop_address(&mut self, address: AddressId) -> Result<(), ResourceError> {
        self.common.addresses.remove(address).map(drop).ok_or(ResourceError::NoSuchAddress(address))
    }

    /// Makes a completion queue of `capacity` entries.
    ///
    /// # Errors
    /// When that is none.
    pub fn completion_queue(
        &mut self,
        capacity: usize,
    ) -> Result<(CompletionQueueId, CompletionQueue), ResourceError> {
        self.completion_queue_of(capacity, false)
    }

    /// Makes a completion queue that has `capacity` entries at first, and grows with the number of
    /// receive queues that end there.
    ///
    /// # Errors
    /// When the capacity is zero.
    pub fn growing_completion_queue(
        &mut self,
        capacity: usize,
    ) -> Result<(CompletionQueueId, CompletionQueue), ResourceError> {
        self.completion_queue_of(capacity, true)
    }

    fn completion_queue_of(
        &mut self,
        capacity: usize,
        grows: bool,
    ) -> Result<(CompletionQueueId, CompletionQueue), ResourceError> {
        check_depth(capacity)?;
        let (own, programs) = Completions::new(capacity, grows);
        let queues = &mut self.common.completions;
        let place = queues.iter().position(Option::is_none).unwrap_or_else(|| {
            queues.push(None);
            queues.len() - 1
        });
        queues[place] = Some(own);
        Ok((self.common.completion_queue(place as u32), programs))
    }

    /// Takes a completion queue down; its program may still poll what is in it.
    ///
    /// # Errors
    /// When there is none, or it is in use.
    pub fn drop_completion_queue(&mut self, queue: CompletionQueueId) -> Result<(), ResourceError> {
        let found = self.completions(queue)?;
        match found.senders + found.receivers + found.shared {
            0 => self.common.completions[queue.place as usize] = None,
            users => return Err(ResourceError::InUse { queue, users }),
        }
        // Its number is the next one's: an event of it would be taken for that's.
        self.common.events.retain(|event| *event != Event::Completion(queue));
        Ok(())
    }

    pub(super) fn completions(
        &mut self,
        queue: CompletionQueueId,
    ) -> Result<&mut Completions, ResourceError> {
        let Common { completions, nic, .. } = &mut self.common;
        let found = completions.get_mut(queue.place as usize).filter(|_| queue.nic == *nic);
        found.and_then(Option::as_mut).ok_or(ResourceError::NoSuchCompletionQueue(queue))
    }

    /// Whether a completion queue has slots enough for so many more queues to end there.
    fn check_room(
        &mut self,
        queue: CompletionQueueId,
        senders: usize,
        receivers: usize,
    ) -> Result<(), ResourceError> {
        let completions = self.completions(queue)?;
        completions.grow_for(senders, receivers);
        match completions.has_and_needs(senders, receivers) {
            (has, needs) if has < needs => Err(ResourceError::QueueTooSmall { queue, has, needs }),
            _ => Ok(()),
        }
    }

    /// Makes a receive queue of `depth` that queue pairs of one domain draw from, all of which have
    /// their receives completed in one queue.
    ///
    /// # Errors
    /// When the depth is none, or there is no such completion queue.
    pub fn shared_receive_queue(
        &mut self,
        domain: Domain,
        completions: CompletionQueueId,
        depth: usize,
    ) -> Result<(SharedReceiveQueueId, SharedReceiveQueue), ResourceError> {
        check_depth(depth)?;
        self.completions(completions)?.shared += 1;
        let (programs, ring) = SharedReceiveQueue::new(depth);
        let own = SharedReceives {
            ring,
            domain,
            completions: completions.place,
            users: 0,
            limit: 0,
            told: false,
        };
        let queues = &mut self.common.shared_receives;
        let place = queues.iter().position(Option::is_none).unwrap_or_else(|| {
            queues.push(None);
            queues.len() - 1
        });
        queues[place] = Some(own);
        let nic = self.common.nic;
        Ok((SharedReceiveQueueId { place: place as u32, nic }, programs))
    }

    /// Takes a shared receive queue down, and drops the receives that are in it.
    ///
    /// # Errors
    /// When there is none, or queue pairs draw from it.
    pub fn drop_shared_receive_queue(
        &mut self,
        queue: SharedReceiveQueueId,
    ) -> Result<(), ResourceError> {
        let found = self.shared_receives(queue)?;
        let (users, completions) = (found.users, found.completions);
        if users > 0 {
            return Err(ResourceError::SharedInUse { queue, users });
        }
        self.common.shared_receives[queue.place as usize] = None;
        self.common.events.retain(|event| *event != Event::ReceivesLow(queue));
        self.completions(self.common.completion_queue(completions))?.shared -= 1;
        Ok(())
    }

    /// Takes back the receive that was posted first to a shared queue, if no message has taken it.
    ///
    /// # Errors
    /// When there is no such queue.
    pub fn take_back_shared(
        &mut self,
        queue: SharedReceiveQueueId,
    ) -> Result<Option<ReceiveRequest>, ResourceError> {
        Ok(self.shared_receives(queue)?.ring.pop())
    }

    /// Asks for [an event](super::Event::ReceivesLow), once, when a message leaves fewer receives
    /// than `limit` in a shared queue.
    ///
    /// # Errors
    /// When there is no such queue.
    pub fn tell_low(
        &mut self,
        queue: SharedReceiveQueueId,
        limit: usize,
    ) -> Result<(), ResourceError> {
        self.shared_receives(queue)?.limit = limit;
        Ok(())
    }

    pub(super) fn shared_receives(
        &mut self,
        queue: SharedReceiveQueueId,
    ) -> Result<&mut SharedReceives, ResourceError> {
        let Common { shared_receives, nic, .. } = &mut self.common;
        let found = shared_receives.get_mut(queue.place as usize).filter(|_| queue.nic == *nic);
        found.and_then(Option::as_mut).ok_or(ResourceError::NoSuchSharedQueue(queue))
    }

    /// Whether a queue pair may draw from the shared queue that it names.
    fn check_shared(&mut self, config: &QueuePairConfig) -> Result<(), ResourceError> {
        let Some(queue) = config.shared_receives else {
            return check_depth(config.receive_depth);
        };
        let shared = self.shared_receives(queue)?;
        let fits = shared.domain == config.domain
            && shared.completions == config.receive_completions.place;
        fits.then_some(()).ok_or(ResourceError::OtherShared(queue))
    }

    /// Makes a queue pair, in the reset state.
    ///
    /// # Errors
    /// When the table is full, a completion queue does not exist or is too small, or a depth is
    /// none.
    pub fn queue_pair(&mut self, config: &QueuePairConfig) -> Result<QueuePairEnds, ResourceError> {
        let queues = (config.send_completions, config.receive_completions);
        check_depth(config.send_depth)?;
        self.check_shared(config)?;
        let shared = usize::from(queues.0 == queues.1);
        self.check_room(queues.0, 1, shared)?;
        self.check_room(queues.1, shared, 1)?;
        self.grow_if_crowded();
        let full = ResourceError::QueuePairsFull(self.most_pairs);
        let place = take_at_random(&mut self.free, &mut self.random).ok_or(full)?;
        let qpn = self.new_number(place);
        self.completions(queues.0)?.senders += 1;
        self.completions(queues.1)?.receivers += 1;
        let state = Arc::new(AtomicU8::new(State::Reset as u8));
        let (service, doorbells) = (config.transport.service(), Arc::clone(&self.doorbells));
        let shared = Shared { qpn, place, service, state, doorbells };
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
        let queues = (queues.0.place, queues.1.place);
        let sides = (Requester::new(sends, config.send_depth), Responder::new(receives));
        let pair = QueuePair::new(shared, config.domain, queues, sides.0, sides.1);
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
    /// When there is none, or one of its ends is still there; then nothing is changed. Or when its
    /// completion queues have no room for what must be flushed; then it is in the error state.
    pub fn drop_queue_pair(&mut self, qpn: Qpn) -> Result<(), ResourceError> {
        let place = self.numbers.place(qpn);
        let Some(pair) = find(&mut self.pairs, self.numbers, qpn) else {
            return Err(ResourceError::NoSuchQueuePair(qpn));
        };
        if !pair.is_deserted() {
            return Err(ResourceError::HasEnds(qpn));
        }
        pair.break_with(Cause::Told, Blamed::Nothing, &mut self.common);
        if pair.flush(&mut self.common) == Turn::Starved {
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
        self.free.push_back(place as u32);
        self.completions(self.common.completion_queue(queues.0))?.senders -= 1;
        self.completions(self.common.completion_queue(queues.1))?.receivers -= 1;
        Ok(())
    }

    /// Changes the state of a queue pair. See [`reset`](Self::reset) for the way back.
    ///
    /// # Errors
    /// When there is none, or no way from its state.
    pub fn change(&mut self, qpn: Qpn, change: Change) -> Result<(), ChangeError> {
        let Self { pairs, common, numbers, .. } = self;
        let pair = find(pairs, *numbers, qpn).ok_or(ChangeError::NoSuchQueuePair(qpn))?;
        pair.change(change, common)
    }

    /// Has the packets of a connected queue pair go along another path, to the same peer.
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
    /// When requests are outstanding, or the ends are not this NIC's, or not of one queue pair.
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

    /// How many queue pairs there may be.
    pub fn most_queue_pairs(&self) -> usize {
        self.most_pairs
    }

    /// How many objects there are of each kind.
    pub fn objects(&self) -> Objects {
        let common = &self.common;
        Objects {
            queue_pairs: self.pairs.iter().flatten().count(),
            completion_queues: common.completions.iter().flatten().count(),
            shared_receive_queues: common.shared_receives.iter().flatten().count(),
            registrations: common.keys.len(),
            addresses: common.addresses.len(),
            hosts: common.hosts.len(),
        }
    }

    /// The state of a queue pair.
    pub fn state(&self, qpn: Qpn) -> Option<State> {
        let pair = self.pairs.get(self.numbers.place(qpn)).and_then(Option::as_ref);
        pair.filter(|pair| pair.number() == qpn).map(|pair| pair.state)
    }

    /// A first sequence number that nobody can guess.
    pub fn first_psn(&mut self) -> Psn {
        Psn::new(self.random.u32())
    }
}
