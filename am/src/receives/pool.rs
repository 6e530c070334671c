//! The pool of an endpoint's receives.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use doorbell_verbs::{Buf, Memory, SharedReceiveQueue};

use crate::costs::{Cost, span};
use crate::receives::Spares;

/// The receives that all peers of an endpoint share, and spare buffers of the same length. Spares
/// serve for messages that are sent, and take the place of buffers that handlers retain.
///
/// As many receives are posted as are promised, to peers for their requests and to links for the
/// answers to theirs, and one more, the *reserve*, since a message is answered before its buffer is
/// posted again.
///
/// The pool of an endpoint that is one of many may *rest*. A resting pool has no reserve, and
/// no receive is promised for an answer unless a request is under way. So its messages need more
/// care:
///
/// * When the answer to a request of this side is handled, the promise of its receive is taken back
///   under the lock of the link, before the next request can be sent. The buffer of the answer is
///   the one that is not posted again. Until that is done, the answer is *in hand*, and the promise
///   for another answer needs a receive that is posted anew.
/// * Before another message is handled, such as a request of a peer, another buffer is posted in its
///   place.
///
/// Of all receives that are promised, the reserve among them, and the surplus, each is posted, or
/// completed by a message that is not handled yet; except for the reserve of a resting pool.
pub(crate) struct Buffers {
    queue: SharedReceiveQueue,
    spares: Arc<Spares>,
    /// The most receives beside those that are guaranteed, and the most spare buffers.
    limit: usize,
    /// The most links that have a receive guaranteed, and how many links there are.
    most_guaranteed: usize,
    links: AtomicUsize,
    /// The number of receives that are not promised any more, and so are not posted again when they
    /// complete, times [`ONE`]; and [`IN_HAND`] while a resting pool has a message in hand.
    surplus: AtomicUsize,
    /// Whether the pool rests when the endpoint is idle.
    may_rest: bool,
    /// Whether the pool rests: a [`Sleep`].
    sleep: AtomicU8,
    /// The number of receives that are promised, and the reserve.
    receives: AtomicUsize,
    /// The most receives that there ever were.
    most: AtomicUsize,
    /// Receives that are promised to links that are over, and messages of which are not all
    /// handled.
    retiring: AtomicUsize,
}

/// Whether a pool rests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
enum Sleep {
    Rests,
    /// The reserve is being posted.
    Wakes,
    Awake,
}

/// The weight of a receive in [`Buffers::surplus`], whose lowest bit is [`IN_HAND`].
const ONE: usize = 2;
/// The bit in [`Buffers::surplus`] that is set while a message of a resting pool is in hand.
const IN_HAND: usize = 1;

/// The most spare buffers that are kept of those that a pool gives up which goes to rest.
const SPARES_OF_RESTING: usize = 64;

impl Buffers {
    /// Makes a pool of up to `limit` receives with buffers as the spares are, and one more for each
    /// of up to `most_guaranteed` links. Posts one receive, the reserve, unless the pool `may_rest`:
    /// then it rests at first.
    pub fn new(
        queue: SharedReceiveQueue,
        spares: Arc<Spares>,
        (limit, most_guaranteed): (usize, usize),
        may_rest: bool,
    ) -> Self {
        let none = || AtomicUsize::new(0);
        let buffers = Self {
            queue,
            spares,
            limit,
            most_guaranteed,
            links: none(),
            surplus: none(),
            may_rest,
            sleep: AtomicU8::new(if may_rest { Sleep::Rests } else { Sleep::Awake } as u8),
            receives: AtomicUsize::new(1),
            most: AtomicUsize::new(1),
            retiring: none(),
        };
        if !may_rest {
            buffers.enqueue(buffers.take());
        }
        buffers
    }

    /// Returns whether the pool rests when the endpoint is idle.
    pub fn may_rest(&self) -> bool {
        self.may_rest
    }

    /// Returns whether the reserve is posted.
    pub fn is_awake(&self) -> bool {
        self.sleep.load(Ordering::Acquire) == Sleep::Awake as u8
    }

    /// Posts the reserve if the pool rests. Returns whether it did. If another thread is about to,
    /// the pool rests still.
    pub fn wake(&self) -> bool {
        let rests = !self.is_awake() && self.goes_from(Sleep::Rests, Sleep::Wakes);
        if rests {
            // Posted before anybody relies on the reserve.
            self.enqueue(self.take());
            self.sleep.store(Sleep::Awake as u8, Ordering::Release);
        }
        rests
    }

    fn goes_from(&self, from: Sleep, to: Sleep) -> bool {
        let (from, to) = (from as u8, to as u8);
        self.sleep.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Has the pool rest. The caller holds the poller, which handles no message, has links keep no
    /// receives for answers from here on, and then [gives back](Self::give_back) what they had.
    pub fn rest(&self) {
        if self.goes_from(Sleep::Awake, Sleep::Rests) {
            self.surplus.fetch_add(ONE, Ordering::SeqCst);
        }
    }

    /// Takes back the promise of `count` receives, and takes all receives from the queue that are
    /// not promised.
    pub fn give_back(&self, count: usize) {
        self.release(count);
        while self.takes_surplus() {
            match self.queue.take_back() {
                Some((_, Memory::Buf(buffer))) => self.spares.give(buffer, SPARES_OF_RESTING),
                Some(_) => {}
                // Messages have taken them, behind which they are not posted again.
                None => {
                    self.surplus.fetch_add(ONE, Ordering::SeqCst);
                    return;
                }
            }
        }
    }

    /// Notes that a message is about to be handled while the pool rests. It is in hand until a
    /// buffer is [posted](Self::post) in its place, or it is [set aside](Self::set_aside). Unless it
    /// `is_answer`, the peer may send the next message as soon as this one is handled. So it gets a
    /// receive before, and the buffer of this message is not posted again.
    pub fn take_in_hand(&self, is_answer: bool) {
        let before = self.surplus.fetch_or(IN_HAND, Ordering::SeqCst);
        // While a message is in hand, nobody else takes the last receive of the surplus.
        if !is_answer && before < ONE {
            self.enqueue(self.take());
            self.surplus.fetch_add(ONE, Ordering::SeqCst);
        }
    }

    /// Notes that the message in hand, if there is one, will be handled later.
    pub fn set_aside(&self) {
        if self.may_rest {
            self.surplus.fetch_and(!IN_HAND, Ordering::SeqCst);
        }
    }

    /// Returns the queue that the receives are posted to.
    pub fn queue(&self) -> &SharedReceiveQueue {
        &self.queue
    }

    /// Returns the length of each buffer.
    pub fn size(&self) -> usize {
        self.spares.size()
    }

    /// Returns the most receives that there ever were.
    pub fn most(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }

    /// Counts a link that is made.
    pub fn link_comes(&self) {
        self.links.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a link off that is over, or that was not made.
    pub fn link_goes(&self) {
        self.links.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns how many receives there may be beyond the limit, one for each link.
    fn guaranteed(&self) -> usize {
        self.links.load(Ordering::Relaxed).min(self.most_guaranteed)
    }

    /// Returns whether half of the receives stay free if `more` are promised.
    pub fn is_plenty(&self, more: usize) -> bool {
        self.receives.load(Ordering::Relaxed) + more <= self.limit / 2 + self.guaranteed()
    }

    /// Promises up to `count` receives for the requests of a new peer. Some are left for answers,
    /// so that this side can send. Returns how many were promised.
    pub fn promise_to_peer(&self, count: usize) -> usize {
        self.promise(count, self.limit - (self.limit / 4).clamp(1, 64))
    }

    /// Promises up to `count` more receives to a peer that has some. A quarter is left for new
    /// peers and for answers. Returns how many were promised.
    pub fn promise_more(&self, count: usize) -> usize {
        self.promise(count, self.limit / 4 * 3)
    }

    /// Promises up to `count` receives for answers. Returns how many were promised.
    pub fn promise_for_answers(&self, count: usize) -> usize {
        self.promise(count, self.limit)
    }

    fn promise(&self, count: usize, limit: usize) -> usize {
        let (mut found, limit) = (0, limit + self.guaranteed());
        let more = |receives: usize| {
            found = count.min(limit.saturating_sub(receives));
            Some(receives + found)
        };
        // A link that finds none has put itself on the list of starving links before. So either it
        // sees what `release` has freed, or the caller of `release` sees the link.
        let before = self.receives.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more);
        let receives = before.unwrap_or_else(|all| all) + found;
        self.most.fetch_max(receives, Ordering::Relaxed);
        for _ in 0..found {
            if !self.takes_surplus() {
                self.enqueue(self.take());
            }
        }
        found
    }

    /// Takes back the promise of `count` receives.
    pub fn release(&self, count: usize) {
        // In this order, so that the queue has room for every promised receive at any time.
        self.surplus.fetch_add(count * ONE, Ordering::SeqCst);
        self.receives.fetch_sub(count, Ordering::SeqCst);
    }

    /// Notes that the promise of `count` receives to a link that is over will be taken back once
    /// all its messages are handled. The receives are posted again only then, and nobody may have
    /// them before.
    pub fn retire(&self, count: usize) {
        self.retiring.fetch_add(count, Ordering::SeqCst);
    }

    /// Takes back the promise of `count` receives to a link, all messages of which are handled.
    pub fn retired(&self, count: usize) {
        self.release(count);
        self.link_goes();
        self.retiring.fetch_sub(count, Ordering::SeqCst);
    }

    /// Returns whether receives will become free even if no link gives up any.
    pub fn any_retire(&self) -> bool {
        self.retiring.load(Ordering::SeqCst) > 0
    }

    /// Takes a posted receive off the surplus, if there is one. If a message is in hand, one of the
    /// surplus is its receive, which is not posted.
    fn takes_surplus(&self) -> bool {
        let less = |surplus: usize| (surplus / ONE > surplus % ONE).then(|| surplus - ONE);
        self.surplus.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok()
    }

    /// Returns whether the receive of a message need not be posted again, and counts it off the
    /// surplus. The message is not in hand any more.
    fn is_spared(&self) -> bool {
        let less = |surplus: usize| Some((surplus & !IN_HAND).saturating_sub(ONE));
        let before = self.surplus.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less);
        before.is_ok_and(|before| before >= ONE)
    }

    /// Posts a buffer that was received into, unless there is a surplus of receives.
    #[inline]
    pub fn post(&self, buffer: Buf) {
        if self.surplus.load(Ordering::Relaxed) == 0 {
            self.enqueue(buffer);
        } else {
            self.post_unless_surplus(buffer);
        }
    }

    #[cold]
    fn post_unless_surplus(&self, buffer: Buf) {
        if self.is_spared() {
            self.give(buffer);
        } else {
            self.enqueue(buffer);
        }
    }

    #[inline]
    fn enqueue(&self, buffer: Buf) {
        let _base = span(Cost::Base);
        let posted = self.queue.post(0, buffer);
        debug_assert!(posted.is_ok(), "the queue has room for all that are promised");
    }

    /// Takes an empty spare buffer, or allocates one.
    #[inline]
    pub fn take(&self) -> Buf {
        self.spares.take()
    }

    /// Gives a buffer back as a spare.
    #[inline]
    pub fn give(&self, buffer: Buf) {
        self.spares.give(buffer, self.limit);
    }
}

#[cfg(all(test, not(am_loom)))]
mod tests {
    use doorbell_verbs::{CompletionQueue, Nic};

    use super::*;
    use crate::receives::SparesBySize;

    const DEPTH: usize = 16;

    /// A pool that rests, and has a receive promised to a peer. Nothing but the pool posts to the
    /// queue, and what the pool posted first is taken off as a message would take it.
    fn resting() -> ((Nic, CompletionQueue), Buffers) {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("shm:am-pool-{}/{count}", std::process::id());
        let nic = Nic::builder().open_blocking(&name).expect("nobody has that name");
        let completions = nic.completion_queue(DEPTH).expect("room");
        let queue = nic.domain().shared_receives_to(&completions, DEPTH).expect("room");
        let spares = SparesBySize::default().of(64);
        let pool = Buffers::new(queue, spares, (DEPTH, 0), true);
        assert_eq!((pool.promise_to_peer(1), posted(&pool)), (1, 1));
        ((nic, completions), pool)
    }

    fn posted(pool: &Buffers) -> usize {
        DEPTH - pool.queue.room()
    }

    fn message(pool: &Buffers) -> Buf {
        match pool.queue.take_back() {
            Some((_, Memory::Buf(buffer))) => buffer,
            _ => panic!("a message finds no receive"),
        }
    }

    #[tokio::test]
    async fn a_request_that_follows_an_answer_in_hand_has_a_receive_of_its_own() {
        let (_nic, pool) = resting();
        assert_eq!((pool.promise_for_answers(1), posted(&pool)), (1, 2));
        let answer = message(&pool);
        pool.take_in_hand(true);
        pool.release(1);
        // Another thread sends the next request before the buffer of the answer is posted again.
        assert_eq!((pool.promise_for_answers(1), posted(&pool)), (1, 2));
        pool.post(answer);
        assert_eq!(posted(&pool), 2, "it is not posted again");
        let answer = message(&pool);
        pool.take_in_hand(true);
        pool.release(1);
        pool.post(answer);
        assert_eq!(posted(&pool), 1);
    }

    #[tokio::test]
    async fn a_request_of_a_peer_is_replaced_by_a_receive_before_it_is_handled() {
        let (_nic, pool) = resting();
        let request = message(&pool);
        pool.take_in_hand(false);
        assert_eq!(posted(&pool), 1);
        // A second message in the same buffer needs no further receive.
        pool.take_in_hand(false);
        pool.post(request);
        assert_eq!(posted(&pool), 1);
        let aside = message(&pool);
        pool.take_in_hand(false);
        pool.set_aside();
        assert_eq!((pool.promise_for_answers(1), posted(&pool)), (1, 1), "the receive is there");
        pool.take_in_hand(false);
        pool.post(aside);
        assert_eq!(posted(&pool), 2);
    }

    #[tokio::test]
    async fn a_pool_that_goes_to_rest_gives_back_what_is_not_promised() {
        let (_nic, pool) = resting();
        assert!(pool.wake() && !pool.wake() && pool.is_awake());
        assert_eq!((pool.promise_for_answers(3), posted(&pool)), (3, 5));
        let answer = message(&pool);
        pool.release(1);
        pool.post(answer);
        assert_eq!(posted(&pool), 4, "the reserve, two for answers, and one for the peer");
        pool.rest();
        pool.give_back(2);
        assert_eq!((posted(&pool), pool.is_awake()), (1, false));
    }
}
