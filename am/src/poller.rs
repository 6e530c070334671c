//! Polling: what came runs its handlers.
//!
//! One poller is at it at a time, and whoever finds another at it goes on: so requests run one
//! after the other, and no handler meets another.

use std::sync::Arc;
use std::task::Waker;

use doorbell_verbs::floor::HeldNic;
use doorbell_verbs::{CompletionQueue, Domain, ResourceError, SharedReceiveQueue};

use crate::handling::{Counters, Handling};
use crate::link::{Answer, Link};
use crate::news::{Inbox, News, Parting};
use crate::numbered::Links;

/// Messages that are handled at once, before the NIC is to have a turn.
const MOST_AT_ONCE: usize = 64;

/// The poller's queues.
const RECEIVES: usize = 0;
const SENDS: usize = 1;

/// What came of a look.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Looked {
    /// How many messages were handled.
    pub handled: usize,
    /// Whether somebody was woken.
    pub woke: bool,
}

/// The answer that is waited for by whoever looks: it is put there, and not kept on the link for
/// him to find.
pub(crate) struct Awaiting<'r> {
    pub link: &'r Arc<Link>,
    pub call: u16,
    pub answer: &'r mut Option<Answer>,
}

/// A look, while it goes on.
pub(crate) struct Looking<'r> {
    pub looked: Looked,
    /// What answers are posted by.
    pub nic: HeldNic<'r>,
    pub awaits: Option<Awaiting<'r>>,
}

impl<'r> Looking<'r> {
    pub fn new(nic: HeldNic<'r>, awaits: Option<Awaiting<'r>>) -> Self {
        Self { looked: Looked::default(), nic, awaits }
    }

    /// A call is answered. What is waited for comes once: from there on its number may be another
    /// call's.
    #[inline]
    pub fn answered(&mut self, link: &Arc<Link>, call: u16, answer: impl FnOnce() -> Answer) {
        let is = |awaits: &mut Awaiting<'_>| awaits.call == call && Arc::ptr_eq(awaits.link, link);
        let here = self.awaits.take_if(is).map(|awaits| awaits.answer);
        self.looked.woke |= link.answered(call, answer, here);
    }
}

pub(crate) struct Poller {
    receives: CompletionQueue,
    sends: CompletionQueue,
    inbox: Arc<Inbox>,
    served: Served,
    proves: Option<Proves>,
}

/// Whom it polls for.
struct Served {
    links: Links,
    handling: Handling,
    /// Links that are over, of which not all is handled that came.
    parting: Vec<Parting>,
}

/// A link whose peer has said what it has taken, which nobody waits for, and for how many looks
/// more the NIC may be elsewhere before that is forgotten.
struct Proves {
    link: u32,
    looks: u8,
}

impl Poller {
    pub fn new(
        [receives, sends]: [CompletionQueue; 2],
        inbox: Arc<Inbox>,
        counters: Arc<Counters>,
    ) -> Self {
        let handling = Handling::new(counters);
        let served = Served { links: Links::default(), handling, parting: Vec::new() };
        Self { receives, sends, inbox, served, proves: None }
    }

    pub fn shared_receives(
        &self,
        domain: &Domain,
        depth: usize,
    ) -> Result<SharedReceiveQueue, ResourceError> {
        domain.shared_receives_to(&self.receives, depth)
    }

    /// Has the waker called when something comes.
    pub fn arm(&mut self, waker: &Waker) {
        self.receives.arm(waker);
        self.sends.arm(waker);
    }

    /// Nothing comes any more that anybody handles.
    pub fn close(&mut self) {
        self.served.links = Links::default();
        self.served.parting.clear();
        self.served.handling.close();
    }

    /// How many completions were ever taken of what was received, and of what was sent.
    #[inline]
    pub fn taken(&self) -> [usize; 2] {
        [self.receives.taken(), self.sends.taken()]
    }

    /// Whether there is something to do in the next look, whatever comes.
    #[inline]
    pub fn goes_on(&self) -> bool {
        self.served.handling.defers() || self.proves.is_some()
    }

    /// Takes what a peer said that it has for acknowledged.
    #[inline(never)]
    fn prove(&mut self, number: u32, nic: HeldNic<'_>) {
        let behind_all = (RECEIVES, self.receives.taken());
        if let Some(link) = self.served.links.get(number, behind_all) {
            link.prove(nic);
        }
    }

    /// Handles what is there: receives first, then what was sent. Without `requests`, those wait.
    #[inline]
    pub fn look(&mut self, requests: bool, mut looking: Looking<'_>) -> Looked {
        self.served.hears(&self.inbox, &mut looking.looked);
        self.served.links.settle(self.taken());
        self.served.handling.begins(requests, &mut looking);
        // Whoever waits for one that is alone is not to wait for a look at what was sent.
        if self.look_at_received(&mut looking) {
            return looking.looked;
        }
        // What nobody waits for waits until there is nothing else.
        if looking.looked.handled < MOST_AT_ONCE
            && let Some(Proves { link, looks }) = self.proves.take()
        {
            match looking.nic.is_held() {
                true => self.prove(link, looking.nic),
                false if looks > 0 => self.proves = Some(Proves { link, looks: looks - 1 }),
                false => {}
            }
        }
        let mut looked = looking.looked;
        self.look_at_sent(&mut looked);
        self.served.let_go(&self.receives, &mut looked);
        self.served.links.settle(self.taken());
        looked
    }

    /// Handles what was received. Whether that was one message, and nothing else is to be done.
    #[inline]
    fn look_at_received(&mut self, looking: &mut Looking<'_>) -> bool {
        let is_one = self.receives.waiting() == 1 && self.served.parting.is_empty();
        while looking.looked.handled < MOST_AT_ONCE {
            let behind = (RECEIVES, self.receives.taken());
            let Some(mut completion) = self.receives.look() else { break };
            self.served.hears(&self.inbox, &mut looking.looked);
            let number = completion.qpn.get();
            let Some(link) = self.served.links.get(number, behind) else { continue };
            let alone = looking.looked.handled == 0 && is_one;
            let buffer = self.served.handling.received(link, &mut completion, alone, looking);
            drop(completion);
            // An answer that goes at once has left by now: it does not wait for this.
            if let Some(buffer) = buffer {
                link.post(buffer);
            }
            if link.proves() {
                let proves = Proves { link: number, looks: 1 };
                let before = self.proves.replace(proves);
                if let Some(other) = before.filter(|other| other.link != number) {
                    self.prove(other.link, looking.nic.reborrow());
                }
            }
            if alone {
                return true;
            }
        }
        false
    }

    #[inline]
    fn look_at_sent(&mut self, looked: &mut Looked) {
        for _ in 0..MOST_AT_ONCE {
            let behind = (SENDS, self.sends.taken());
            let Some(mut completion) = self.sends.look() else { break };
            self.served.hears(&self.inbox, looked);
            if let Some(link) = self.served.links.get(completion.qpn.get(), behind) {
                let memory = std::mem::take(&mut completion.memory);
                looked.woke |= link.sent(completion.id, memory, completion.outcome.is_err());
            }
        }
    }
}

impl Served {
    /// Hears what there is of news.
    #[inline]
    fn hears(&mut self, inbox: &Inbox, looked: &mut Looked) {
        if !inbox.is_empty() {
            self.catch_up(inbox, looked);
        }
    }

    #[cold]
    fn catch_up(&mut self, inbox: &Inbox, looked: &mut Looked) {
        inbox.take().into_iter().for_each(|news| self.hear(news, looked));
    }

    fn hear(&mut self, news: News, looked: &mut Looked) {
        match news {
            News::Endpoint(number, handlers) => self.handling.put(number, handlers),
            News::EndpointGone(number) => {
                self.links.retain(|link| link.endpoint.number != number);
                self.parting.retain(|parting| parting.link.endpoint.number != number);
                self.handling.remove(number);
            }
            // Even if it is over by now: what it had received is to be posted again.
            News::Link(link, since) => self.links.put(link, since),
            News::Opened(link) => self.handling.opened(&link, looked),
            News::LinkGone(parting) if self.handling.serves(parting.link.endpoint.number) => {
                self.parting.push(parting);
            }
            News::LinkGone(_) => {}
        }
    }

    /// Lets go of links that are over, of which everything is handled that came.
    #[inline]
    fn let_go(&mut self, receives: &CompletionQueue, looked: &mut Looked) {
        if !self.parting.is_empty() {
            self.let_go_of_some(receives, looked);
        }
    }

    #[cold]
    fn let_go_of_some(&mut self, receives: &CompletionQueue, looked: &mut Looked) {
        let Self { handling, parting, .. } = self;
        let over =
            |gone: &mut Parting| gone.is_over(receives) && !handling.defers_any_of(&gone.link);
        let over: Vec<_> = parting.extract_if(.., over).collect();
        for Parting { link, lost, promised, .. } in over {
            self.handling.lost(&link, lost);
            link.retired(promised);
            // Of what it sent nobody waits for the memory any more.
            self.links.remove(&link);
            looked.woke = true;
        }
    }
}
