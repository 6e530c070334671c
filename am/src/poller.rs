//! Polling: what came runs its handlers.
//!
//! One poller is at it at a time, and whoever finds another at it goes on: so requests run one after
//! the other, and no handler meets another.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

use doorbell_verbs::{AtHand, CompletionQueue, Domain, ResourceError, SharedReceiveQueue};

use crate::handling::{Counters, Handling};
use crate::link::{Answer, Link};
use crate::news::{Inbox, News};
use crate::numbered::Links;

/// Messages that are handled at once, before the NIC is to have a turn.
const MOST_AT_ONCE: usize = 64;

/// How many links are remembered that are over.
const MOST_GONE: usize = 256;

/// What came of a look.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Looked {
    /// How many messages were handled.
    pub handled: usize,
    /// Whether somebody was woken.
    pub woke: bool,
}

/// The answer that is waited for by whoever looks: it is put there, and not kept on the link for him to
/// find.
pub(crate) struct Awaiting<'r> {
    pub link: &'r Arc<Link>,
    pub call: u16,
    pub answer: &'r mut Option<Answer>,
}

/// A look, while it goes on.
pub(crate) struct Looking<'r> {
    pub looked: Looked,
    /// What answers are posted by.
    pub nic: AtHand<'r>,
    pub awaits: Option<Awaiting<'r>>,
}

impl<'r> Looking<'r> {
    pub fn new(nic: AtHand<'r>, awaits: Option<Awaiting<'r>>) -> Self {
        Self { looked: Looked::default(), nic, awaits }
    }

    /// A call is answered. What is waited for comes once: from there on its number may be another call's.
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
    /// Links that are over, the oldest first: what they had received is still to be handled, and what
    /// they had taken of receives comes back.
    gone: VecDeque<Arc<Link>>,
}

/// A link whose peer has said what it has taken, which nobody waits for, and for how many looks more the
/// NIC may be elsewhere before that is forgotten.
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
        let (links, gone) = (Links::default(), VecDeque::new());
        let served = Served { links, handling, gone };
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
        self.served.gone.clear();
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
    fn prove(&mut self, number: u32, nic: AtHand<'_>) {
        if let Some(link) = self.served.links.get(number) {
            link.prove(nic);
        }
    }

    /// Handles what is there: receives first, then what was sent. Without `requests`, those wait.
    #[inline]
    pub fn look(&mut self, requests: bool, mut looking: Looking<'_>) -> Looked {
        self.served.hears(&self.inbox);
        self.served.handling.begins(requests, &mut looking);
        let is_one = self.receives.waiting() == 1;
        while looking.looked.handled < MOST_AT_ONCE {
            let Some(mut completion) = self.receives.look() else {
                if self.served.gone.len() > MOST_GONE {
                    self.served.forget();
                }
                break;
            };
            self.served.hears(&self.inbox);
            let number = completion.qpn.get();
            let Some(link) = self.served.links.get(number) else { continue };
            let alone = looking.looked.handled == 0 && is_one;
            let buffer = self.served.handling.received(link, &mut completion, alone, &mut looking);
            drop(completion);
            // An answer that goes at once has left by now: it does not wait for this.
            if let Some(buffer) = buffer {
                link.post(buffer);
            }
            if link.proves() {
                let proves = Proves { link: number, looks: 1 };
                let before = self.proves.replace(proves);
                if let Some(other) = before.filter(|other| other.link != number) {
                    self.prove(other.link, looking.nic.again());
                }
            }
            // Whoever waits for this one is not to wait for a look at what was sent.
            if alone {
                return looking.looked;
            }
        }
        // What nobody waits for waits until there is nothing else.
        if looking.looked.handled < MOST_AT_ONCE
            && let Some(Proves { link, looks }) = self.proves.take()
        {
            match looking.nic.is_there() {
                true => self.prove(link, looking.nic),
                false if looks > 0 => self.proves = Some(Proves { link, looks: looks - 1 }),
                false => {}
            }
        }
        let mut looked = looking.looked;
        for _ in 0..MOST_AT_ONCE {
            let Some(mut completion) = self.sends.look() else { break };
            self.served.hears(&self.inbox);
            if let Some(link) = self.served.links.get(completion.qpn.get()) {
                let memory = std::mem::take(&mut completion.memory);
                looked.woke |= link.sent(completion.id, memory, completion.outcome.is_err());
            }
        }
        looked
    }
}

impl Served {
    /// Hears what there is of news.
    #[inline]
    fn hears(&mut self, inbox: &Inbox) {
        if !inbox.is_empty() {
            self.catch_up(inbox);
        }
    }

    #[cold]
    fn catch_up(&mut self, inbox: &Inbox) {
        inbox.take().into_iter().for_each(|news| self.hear(news));
    }

    fn hear(&mut self, news: News) {
        match news {
            News::Endpoint(number, handlers) => self.handling.put(number, handlers),
            News::EndpointGone(number) => {
                self.links.retain(|link| link.endpoint.number != number);
                self.gone.retain(|link| link.endpoint.number != number);
                self.handling.remove(number);
            }
            // Even if it is over by now: what it had received is to be posted again.
            News::Link(link) => self.links.put(link),
            News::Opened(link) => self.handling.opened(&link),
            News::LinkGone(link, lost) => {
                self.handling.lost(&link, lost);
                self.gone.push_back(link);
            }
        }
    }

    /// Forgets those that are over longest, when all is handled that they had received. Their numbers
    /// may be others' by now.
    #[cold]
    fn forget(&mut self) {
        while self.gone.len() > MOST_GONE
            && let Some(oldest) = self.gone.pop_front()
        {
            self.links.remove(&oldest);
        }
    }
}
