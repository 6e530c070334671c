//! Polling: what came runs its handlers.
//!
//! One poller is at it at a time, and whoever finds another at it goes on: so requests run one after
//! the other, and no handler meets another.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::task::Waker;

use doorbell_verbs::{Buf, CompletionQueue, Domain, ResourceError, SharedReceiveQueue};

use crate::handling::{Counters, Handling, News, Received};
use crate::link::Link;

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

pub(crate) struct Poller {
    receives: CompletionQueue,
    sends: CompletionQueue,
    links: Links,
    handling: Handling,
    /// Links that are over, the oldest first: what they had received is still to be handled, and what
    /// they had taken of receives comes back.
    gone: VecDeque<Arc<Link>>,
    /// A buffer that is posted again when this is looked at next, and whose link it is of: what
    /// answers a message that is alone leaves first.
    used: Option<(u32, Buf)>,
}

/// Links by the numbers of their queue pairs.
type Links = HashMap<u32, Arc<Link>, BuildHasherDefault<AsItIs>>;

/// Those numbers are the NIC's: nobody can choose them so that they collide.
#[derive(Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        // A table looks at the upper bits, too.
        self.0.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.0 = self.0 << 8 | u64::from(byte));
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = number.into();
    }
}

impl Poller {
    pub fn new(receives: CompletionQueue, sends: CompletionQueue, counters: Arc<Counters>) -> Self {
        let handling = Handling::new(counters);
        Self {
            receives,
            sends,
            links: HashMap::default(),
            handling,
            gone: VecDeque::new(),
            used: None,
        }
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

    #[cold]
    pub fn hears(&mut self, news: News) {
        match news {
            News::Endpoint(number, handlers) => self.handling.put(number, handlers),
            News::EndpointGone(number) => {
                self.links.retain(|_, link| link.endpoint.number != number);
                self.gone.retain(|link| link.endpoint.number != number);
                self.handling.remove(number);
            }
            // It may be over before this is heard.
            News::Link(link) if link.ending().is_some() => {}
            News::Link(link) => drop(self.links.insert(link.qpn.get(), link)),
            News::Opened(link) => self.handling.opened(&link),
            News::LinkGone(link, lost) => {
                self.handling.lost(&link, lost);
                self.gone.push_back(link);
            }
        }
    }

    /// Nothing comes any more that anybody handles.
    pub fn close(&mut self) {
        self.links.clear();
        self.gone.clear();
        self.handling.close();
    }

    /// Forgets those that are over longest, when all is handled that they had received. Their numbers
    /// may be others' by now.
    #[cold]
    fn forget(&mut self) {
        while self.gone.len() > MOST_GONE
            && let Some(oldest) = self.gone.pop_front()
        {
            if let Entry::Occupied(there) = self.links.entry(oldest.qpn.get())
                && Arc::ptr_eq(there.get(), &oldest)
            {
                there.remove();
            }
        }
    }

    /// How many completions were ever taken of what was received, and of what was sent.
    #[inline]
    pub fn taken(&self) -> [usize; 2] {
        [self.receives.taken(), self.sends.taken()]
    }

    /// Whether there is something to do in the next look, whatever comes.
    #[inline]
    pub fn goes_on(&self) -> bool {
        self.used.is_some() || self.handling.defers()
    }

    /// Handles what is there: receives first, then what was sent. Without `requests`, those wait.
    #[inline]
    pub fn look(&mut self, requests: bool) -> Looked {
        let mut looked = Looked::default();
        if let Some((qpn, buffer)) = self.used.take()
            && let Some(link) = self.links.get(&qpn)
        {
            link.post(buffer);
        }
        self.handling.begins(requests, &mut looked);
        while looked.handled < MOST_AT_ONCE {
            let next = self.receives.look();
            let next = next.map(|mut it| (it.qpn.get(), Received::of(&mut it)));
            let Some((qpn, received)) = next else {
                if self.gone.len() > MOST_GONE {
                    self.forget();
                }
                break;
            };
            let (Some(link), Some(received)) = (self.links.get(&qpn), received) else { continue };
            let alone = looked.handled == 0 && self.receives.waiting() == 0;
            let buffer = self.handling.received(link, received, alone, &mut looked);
            match buffer {
                Some(buffer) if alone => {
                    self.used = Some((qpn, buffer));
                    return looked;
                }
                Some(buffer) => link.post(buffer),
                None => {}
            }
        }
        for _ in 0..MOST_AT_ONCE {
            let Some(mut completion) = self.sends.look() else { break };
            if let Some(link) = self.links.get(&completion.qpn.get()) {
                let memory = std::mem::take(&mut completion.memory);
                looked.woke |= link.sent(completion.id, memory, completion.outcome.is_err());
            }
        }
        looked
    }
}
