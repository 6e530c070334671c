//! Polling the completion queues of a bundle, and having what came handled.
//!
//! One thread at a time holds the poller, and others that find it held go on. So requests run one
//! after the other, and no two handlers of a bundle run at the same time.

use std::sync::Arc;
use std::task::Waker;

use doorbell_verbs::floor::HeldNic;
use doorbell_verbs::{CompletionQueue, Domain, ResourceError, SharedReceiveQueue};

use super::link_table::LinkTable;
use super::updates::{Departure, Inbox, Update};
use crate::dispatch::{Dispatcher, Looked, Looking};
use crate::shared::Counters;

/// The most messages that are handled in a row, before the NIC has a turn.
const MOST_AT_ONCE: usize = 64;

/// The index of the poller's completion queue for receives.
const RECEIVES: usize = 0;
/// The index of the poller's completion queue for sends.
const SENDS: usize = 1;

/// The poller of a bundle: its completion queues, links and handlers.
pub(super) struct Poller {
    receives: CompletionQueue,
    sends: CompletionQueue,
    inbox: Arc<Inbox>,
    served: Served,
    /// A link with an acknowledgement that the NIC was not told yet.
    unused_ack: Option<UnusedAck>,
}

/// The links and endpoints that a poller serves.
struct Served {
    links: LinkTable,
    dispatcher: Dispatcher,
    /// Links that are over, and messages of which are not all handled.
    departures: Vec<Departure>,
}

/// A link whose peer has acknowledged messages by its own, which no task waits for.
struct UnusedAck {
    /// The number of the link's queue pair.
    link: u32,
    /// For how many more looks without the NIC at hand the acknowledgement is remembered.
    looks: u8,
}

impl Poller {
    pub fn new(
        [receives, sends]: [CompletionQueue; 2],
        inbox: Arc<Inbox>,
        counters: Arc<Counters>,
    ) -> Self {
        let dispatcher = Dispatcher::new(counters);
        let (links, departures) = (LinkTable::default(), Vec::new());
        let served = Served { links, dispatcher, departures };
        Self { receives, sends, inbox, served, unused_ack: None }
    }

    pub fn shared_receives(
        &self,
        domain: &Domain,
        depth: usize,
    ) -> Result<SharedReceiveQueue, ResourceError> {
        domain.shared_receives_to(&self.receives, depth)
    }

    /// Has `waker` woken when a completion comes.
    pub fn arm(&mut self, waker: &Waker) {
        self.receives.arm(waker);
        self.sends.arm(waker);
    }

    /// Drops all links and handlers, since nothing is handled any more.
    pub fn close(&mut self) {
        self.served.links = LinkTable::default();
        self.served.departures.clear();
        self.served.dispatcher.close();
    }

    /// Takes in updates, up to the first by which messages would be handled. Returns whether there
    /// may be more of them, which what was dropped has put.
    pub fn take_in_quietly(&mut self) -> bool {
        let mut updates = self.inbox.take().into_iter();
        let mut looked = Looked::default();
        let mut rest = Vec::new();
        for update in updates.by_ref() {
            if let Update::Opened(_) = update {
                rest.push(update);
                break;
            }
            self.served.update(update, &mut looked);
        }
        rest.extend(updates);
        let none_is_left = rest.is_empty();
        self.inbox.put_back(rest);
        none_is_left && !self.inbox.is_empty()
    }

    /// Returns how many completions were ever taken, of receives and of sends.
    #[inline]
    pub fn taken(&self) -> [usize; 2] {
        [self.receives.taken(), self.sends.taken()]
    }

    /// Returns whether the next look has something to do, even if no completion comes.
    #[inline]
    pub fn goes_on(&self) -> bool {
        self.served.dispatcher.defers() || self.unused_ack.is_some()
    }

    /// Tells the NIC what the peer of a link has acknowledged by its messages.
    #[inline(never)]
    fn use_ack(&mut self, number: u32, nic: HeldNic<'_>) {
        let behind_all = (RECEIVES, self.receives.taken());
        if let Some(link) = self.served.links.get(number, behind_all) {
            link.use_ack(nic);
        }
    }

    /// Handles what has come: receives first, then completed sends. Without `requests`, requests
    /// wait.
    #[inline]
    pub fn look(&mut self, requests: bool, mut looking: Looking<'_>) -> Looked {
        self.served.take_in(&self.inbox, &mut looking.looked);
        self.served.links.settle(self.taken());
        self.served.dispatcher.begin(requests, &mut looking);
        // A task that waits for a lone message does not wait for a look at completed sends, too.
        let was_lone = self.look_at_received(&mut looking);
        self.served.dispatcher.finish(&mut looking.looked);
        if was_lone {
            return looking.looked;
        }
        // The NIC is told of acknowledgements when there is nothing else to do.
        if looking.looked.handled < MOST_AT_ONCE
            && let Some(UnusedAck { link, looks }) = self.unused_ack.take()
        {
            match looking.nic.is_held() {
                true => self.use_ack(link, looking.nic),
                false if looks > 0 => self.unused_ack = Some(UnusedAck { link, looks: looks - 1 }),
                false => {}
            }
        }
        let mut looked = looking.looked;
        self.look_at_sent(&mut looked);
        self.served.retire(&self.receives, &mut looked);
        self.served.links.settle(self.taken());
        looked
    }

    /// Handles the receives that are completed. Returns whether that was a lone message, behind
    /// which nothing else is to be done now.
    #[inline]
    fn look_at_received(&mut self, looking: &mut Looking<'_>) -> bool {
        let is_one = self.receives.waiting() == 1 && self.served.departures.is_empty();
        while looking.looked.handled < MOST_AT_ONCE {
            let behind = (RECEIVES, self.receives.taken());
            let Some(mut completion) = self.receives.look() else { break };
            self.served.take_in(&self.inbox, &mut looking.looked);
            let number = completion.qpn.get();
            let Some(link) = self.served.links.get(number, behind) else { continue };
            let alone = looking.looked.handled == 0 && is_one;
            let buffer = self.served.dispatcher.received(link, &mut completion, alone, looking);
            drop(completion);
            // Behind the answer, which does not wait for the buffer to be posted.
            if let Some(buffer) = buffer {
                link.post(buffer);
            }
            if link.has_useful_ack() {
                let ack = UnusedAck { link: number, looks: 1 };
                let before = self.unused_ack.replace(ack);
                if let Some(other) = before.filter(|other| other.link != number) {
                    self.use_ack(other.link, looking.nic.reborrow());
                }
            }
            if alone {
                return true;
            }
        }
        false
    }

    /// Takes completed sends, and tells their links.
    #[inline]
    fn look_at_sent(&mut self, looked: &mut Looked) {
        for _ in 0..MOST_AT_ONCE {
            let behind = (SENDS, self.sends.taken());
            let Some(mut completion) = self.sends.look() else { break };
            self.served.take_in(&self.inbox, looked);
            if let Some(link) = self.served.links.get(completion.qpn.get(), behind) {
                let memory = std::mem::take(&mut completion.memory);
                looked.woke |= link.sent(completion.id, memory, completion.outcome.is_err());
            }
        }
    }
}

impl Served {
    /// Takes in the updates of endpoints and links.
    #[inline]
    fn take_in(&mut self, inbox: &Inbox, looked: &mut Looked) {
        if !inbox.is_empty() {
            self.take_in_all(inbox, looked);
        }
    }

    #[cold]
    fn take_in_all(&mut self, inbox: &Inbox, looked: &mut Looked) {
        inbox.take().into_iter().for_each(|update| self.update(update, looked));
    }

    fn update(&mut self, update: Update, looked: &mut Looked) {
        match update {
            Update::Endpoint(number, handlers) => self.dispatcher.add(number, handlers),
            Update::EndpointGone(number) => {
                self.links.retain(|link| link.endpoint.number != number);
                self.departures.retain(|departure| departure.link.endpoint.number != number);
                self.dispatcher.remove(number);
            }
            // Even if the link is over by now: its receives are to be posted again.
            Update::Link(link, since) => self.links.put(link, since),
            Update::Opened(link) => self.dispatcher.open(&link, looked),
            Update::LinkGone(departure)
                if self.dispatcher.serves(departure.link.endpoint.number) =>
            {
                self.departures.push(departure);
            }
            Update::LinkGone(_) => {}
        }
    }

    /// Retires links that are over, once all their messages are handled.
    #[inline]
    fn retire(&mut self, receives: &CompletionQueue, looked: &mut Looked) {
        if !self.departures.is_empty() {
            self.retire_some(receives, looked);
        }
    }

    #[cold]
    fn retire_some(&mut self, receives: &CompletionQueue, looked: &mut Looked) {
        let Self { dispatcher, departures, .. } = self;
        let over =
            |gone: &mut Departure| gone.is_over(receives) && !dispatcher.defers_any_of(&gone.link);
        let over: Vec<_> = departures.extract_if(.., over).collect();
        for departure in over {
            let Departure { ref link, lost, promised, .. } = departure;
            self.dispatcher.lose(link, lost);
            link.retire_receives(promised);
            // No task waits for the memory of its sends any more.
            self.links.remove(link);
            looked.woke = true;
        }
    }
}
