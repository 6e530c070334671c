//! What messages carry, and what the end that follows does with them.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use doorbell_am::{Arguments, Call, Handlers, MOST_WORDS, ReplyId, RequestId, Words};

use crate::perf::Plan;
use crate::perf::layers::following::Told;
use crate::perf::plan::test::Am;
use crate::perf::shared::pattern::{Pattern, wholly};

/// The request behind all others of a test, which asks how many came and how many of them were
/// wrong.
pub const END: RequestId<()> = RequestId::new(2, "end");
/// The reply to [`END`]: how many requests came, and how many of them were wrong.
pub const COUNTED: ReplyId<(u64, u64)> = ReplyId::new(1, "counted");

/// Adds the handler of [`END`], by which a test ends.
pub fn until_end(handlers: Handlers, told: &Arc<Told>) -> Handlers {
    let told = told.clone();
    handlers.request(END, move |request, ()| {
        let [count, wrong] = [&told.count, &told.wrong].map(|it| it.load(Ordering::Relaxed));
        request.reply(COUNTED, (count, wrong));
        told.ended.notify_one();
    })
}

/// Adds one to a counter of the end that follows.
pub fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// Arguments that are made of the words of a message.
pub trait Said: Arguments + Clone + Send + 'static {
    /// Makes arguments of `count` words.
    fn of(count: usize, word: impl Fn(usize) -> u64) -> Self;

    fn words(&self) -> &[u64];
}

impl<const N: usize> Said for [u64; N] {
    #[inline]
    fn of(count: usize, word: impl Fn(usize) -> u64) -> Self {
        debug_assert_eq!(count, N);
        std::array::from_fn(word)
    }

    #[inline]
    fn words(&self) -> &[u64] {
        self
    }
}

impl Said for Words {
    #[inline]
    fn of(count: usize, word: impl Fn(usize) -> u64) -> Self {
        let mut words = [0; MOST_WORDS];
        words[..count].iter_mut().enumerate().for_each(|(at, there)| *there = word(at));
        Self::new(&words[..count]).expect("no more than a message has")
    }

    #[inline]
    fn words(&self) -> &[u64] {
        self
    }
}

/// Returns whether a message of `size` bytes can be sent as words, without a payload.
#[inline]
pub const fn fits_words(size: usize) -> bool {
    size <= 8 * MOST_WORDS && size.is_multiple_of(8)
}

/// Returns the number of words that all messages of a test have; `None` if they have payloads, or
/// different numbers of words.
pub fn words_of_each(test: Am, size: usize) -> Option<usize> {
    (matches!(test, Am::Lat | Am::CallLat | Am::CallBw | Am::Bw) && fits_words(size))
        .then_some(size / 8)
}

/// The messages of a test, whose words are arguments of the type `A`.
#[derive(Clone)]
pub struct Messages<A> {
    size: usize,
    /// Whether short messages are sent as words.
    short: bool,
    /// Whether messages have all sizes up to `size`, in steps of a word.
    mixed: bool,
    pattern: Arc<Pattern>,
    arguments: PhantomData<fn(A)>,
}

impl<A: Said> Messages<A> {
    /// A message to be sent back as it is.
    pub const PING: RequestId<A> = RequestId::new(0, "ping");
    /// A message to be checked.
    pub const NOTE: RequestId<A> = RequestId::new(1, "note");
    /// A message of words that is returned as it is.
    pub const CALL: Call<A, A> = Call::new("call");
    /// A payload that is returned as it is.
    pub const CALL_BYTES: Call<Bytes, Bytes> = Call::new("call with bytes");
    /// The reply to a ping.
    pub const PONG: ReplyId<A> = ReplyId::new(0, "pong");

    pub fn new(test: Am, plan: &Plan) -> Self {
        let (size, pattern) = (plan.size, Arc::new(Pattern::new(plan.size)));
        let (short, mixed) = (test != Am::MediumLat, test == Am::MixedBw);
        Self { size, short, mixed, pattern, arguments: PhantomData }
    }

    /// Returns how many words the message with this number has, and how long its payload is.
    #[inline]
    fn shape(&self, number: u64) -> (usize, usize) {
        let size = match self.mixed {
            true => 8 + 8 * (word_of(number, 0) as usize % (self.size / 8)),
            false => self.size,
        };
        let short = self.short && fits_words(size);
        if short { (size / 8, 0) } else { (0, size) }
    }

    /// Returns the words of the message with this number.
    #[inline]
    pub fn words(&self, number: u64) -> A {
        A::of(self.shape(number).0, |at| word_of(number, at))
    }

    /// Returns the payload of the message with this number.
    #[inline]
    pub fn payload(&self, number: u64) -> &[u8] {
        self.pattern.of(number, self.shape(number).1)
    }

    /// Returns whether words and payload are the message with this number.
    #[inline]
    pub fn are(
        &self,
        number: u64,
        words: impl ExactSizeIterator<Item = u64>,
        payload: &[u8],
    ) -> bool {
        words.len() == self.shape(number).0
            && words.enumerate().all(|(at, word)| word == word_of(number, at))
            && self.is_payload(number, payload)
    }

    /// Returns whether bytes are the payload of the message with this number.
    #[inline]
    fn is_payload(&self, number: u64, payload: &[u8]) -> bool {
        let expected = self.payload(number);
        // Even comparing two empty slices would take longer than a message does.
        payload.len() == expected.len() && (payload.is_empty() || payload == expected)
    }

    /// Returns whether words and payload are the message with this number of a stream. Not all
    /// messages of a stream are compared [wholly].
    #[inline]
    fn are_in_stream(
        &self,
        number: u64,
        words: impl ExactSizeIterator<Item = u64>,
        payload: &[u8],
    ) -> bool {
        if wholly(payload.len(), number) {
            return self.are(number, words, payload);
        }
        let expected = self.payload(number);
        words.len() == 0
            && payload.len() == expected.len()
            && payload.first_chunk::<8>() == expected.first_chunk()
            && payload.last_chunk::<8>() == expected.last_chunk()
    }

    /// Counts a message that has come, and counts it as wrong if it is. Returns the message's
    /// number.
    #[inline]
    fn checks(&self, told: &Told, words: &[u64], payload: &[u8]) -> u64 {
        let number = told.count.load(Ordering::Relaxed);
        if !self.are(number, words.iter().copied(), payload) {
            count(&told.wrong);
        }
        told.count.store(number + 1, Ordering::Relaxed);
        number
    }

    /// The handlers of the end that follows.
    pub fn handlers(&self, told: &Arc<Told>) -> Handlers {
        let (checks, noted) = (self.clone(), told.clone());
        let (pings, pinged) = (self.clone(), told.clone());
        let (calls, called) = (self.clone(), told.clone());
        let (bytes_calls, bytes_called) = (self.clone(), told.clone());
        let handlers = Handlers::new()
            .on(Self::CALL, move |_, said| {
                calls.checks(&called, said.words(), &[]);
                said
            })
            .on(Self::CALL_BYTES, move |_, bytes| {
                bytes_calls.checks(&bytes_called, &[], &bytes);
                bytes
            })
            .request(Self::PING, move |request, said| {
                let number = pings.checks(&pinged, said.words(), request.payload());
                let payload = pings.payload(number);
                if payload.is_empty() {
                    request.reply(Self::PONG, said);
                } else if request.reply_with(Self::PONG, said, payload).is_err() {
                    count(&pinged.wrong);
                }
            })
            .request(Self::NOTE, move |request, said| {
                let number = noted.count.load(Ordering::Relaxed);
                if !checks.are_in_stream(number, said.words().iter().copied(), request.payload()) {
                    count(&noted.wrong);
                }
                noted.count.store(number + 1, Ordering::Relaxed);
            });
        until_end(handlers, told)
    }
}

#[inline]
fn word_of(number: u64, at: usize) -> u64 {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(at as u64)
}
