//! The message handlers of a process, which serve the other processes.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use doorbell_am::costs::{Cost, span};
use doorbell_am::{Handlers, ReplyId, RequestId, Undeliverable};
use doorbell_verbs::Region;
use doorbell_verbs::floor::locked;

use super::entry::{Operation, read_head, whole};
use crate::element::Element;
use crate::functions::Function;
use crate::heap::{CONTROL, Guards, counter};

/// A request with operations, which is answered. Its argument comes back with the answer.
pub(crate) const OPERATIONS: RequestId<u64> = RequestId::new(0, "operations");
/// A request with stores, which is not answered: how many bytes they store, and the turn in which
/// these are counted.
pub(crate) const STORES: RequestId<(u64, u64)> = RequestId::new(1, "stores");
/// A request that wakes a process which sleeps until its memory changes.
pub(crate) const WAKE: RequestId<u64> = RequestId::new(2, "wake");
/// A request by which a process says that its program has ended: it writes nothing more.
pub(crate) const ENDED: RequestId<u64> = RequestId::new(3, "ended");
/// The reply to `OPERATIONS`, with the values that the operations found. Its argument is the
/// argument of the request.
pub(crate) const ANSWERS: ReplyId<u64> = ReplyId::new(0, "answers");
/// The reply to `OPERATIONS` of which some were refused: the argument of the request, and
/// [which](Refusals) operations were refused.
pub(crate) const REFUSALS: ReplyId<[u64; 9]> = ReplyId::new(1, "refusals");

/// An answer to a message of operations, as the handler of replies leaves it for the program.
pub(crate) struct Answer {
    /// The argument of the request: the peer's rank in the upper half, and the message's number in
    /// the lower.
    pub about: u64,
    /// The operations that the peer refused; or why the message did not arrive.
    pub refused: Result<Refusals, Undeliverable>,
    /// The values that the operations found, in the order of the operations.
    pub values: Vec<u8>,
}

/// The operations of a message that were refused: a bit for each operation, by its position.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Refusals([u64; 8]);

impl Refusals {
    /// How many operations a message has at most: each takes a word, and a message has 4096 bytes.
    const MOST: usize = 512;

    pub fn any(&self) -> bool {
        self.0 != [0; 8]
    }

    pub fn count(&self) -> u64 {
        self.0.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Whether the operation at a position was refused.
    pub fn contains(&self, at: usize) -> bool {
        self.0.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
    }

    fn add(&mut self, at: usize) {
        if let Some(word) = self.0.get_mut(at / 64) {
            *word |= 1 << (at % 64);
        }
    }

    fn add_from(&mut self, at: usize) {
        (at..Self::MOST).for_each(|at| self.add(at));
    }

    fn words(self, about: u64) -> [u64; 9] {
        std::array::from_fn(|at| if at == 0 { about } else { self.0[at - 1] })
    }

    fn of_words(words: [u64; 9]) -> (u64, Self) {
        (words[0], Self(std::array::from_fn(|at| words[at + 1])))
    }
}

/// The state that message handlers share with the program.
pub(crate) struct Served {
    heap: Region,
    /// The ranges of the heap that no message may access at present.
    guards: Arc<Guards>,
    functions: RwLock<Vec<Function>>,
    /// A lock that is held while a function changes a value that is not a single word.
    pub large: Mutex<()>,
    /// How many operations of peers were refused here.
    refused: AtomicU64,
    /// How many peers have said that their programs have ended.
    ended: AtomicUsize,
    answers: Mutex<VecDeque<Answer>>,
    waiting: AtomicUsize,
    /// Buffers of answers that were handled, to be used again.
    spare: Mutex<Vec<Vec<u8>>>,
}

/// The most buffers of answers that are kept to be used again.
const SPARE: usize = 64;

impl Served {
    pub fn new(heap: Region, guards: Arc<Guards>) -> Arc<Self> {
        Arc::new(Self {
            heap,
            guards,
            functions: RwLock::default(),
            large: Mutex::default(),
            refused: AtomicU64::new(0),
            ended: AtomicUsize::new(0),
            answers: Mutex::default(),
            waiting: AtomicUsize::new(0),
            spare: Mutex::default(),
        })
    }

    /// The table of message handlers, for the endpoint of this process.
    pub fn handlers(self: &Arc<Self>) -> Handlers {
        let [operations, stores, answers, refusals, ended, returned] =
            [(); 6].map(|()| self.clone());
        let mut values = Vec::new();
        Handlers::new()
            .request(OPERATIONS, move |request, about| {
                let _semantics = span(Cost::Semantics);
                values.clear();
                let refused = operations.serve(request.payload(), &mut values);
                let replied = match refused.any() {
                    false => request.reply_with(ANSWERS, about, &values),
                    true => request.reply_with(REFUSALS, refused.words(about), &values),
                };
                if replied.is_err() {
                    operations.refused.fetch_add(1, Ordering::Relaxed);
                    tracing::warn!("an answer was longer than its message allows");
                }
            })
            .request(STORES, move |request, (bytes, turn)| {
                let mut none = Vec::new();
                stores.serve(request.payload(), &mut none);
                stores.count(bytes, turn);
            })
            .request(WAKE, |_, _| ())
            .request(ENDED, move |_, _| {
                ended.ended.fetch_add(1, Ordering::Release);
            })
            .reply(ANSWERS, move |reply, about| {
                let _semantics = span(Cost::Semantics);
                let values = answers.values_of(reply.payload());
                answers.answer(Answer { about, refused: Ok(Refusals::default()), values });
            })
            .reply(REFUSALS, move |reply, words| {
                let (about, refused) = Refusals::of_words(words);
                let values = refusals.values_of(reply.payload());
                refusals.answer(Answer { about, refused: Ok(refused), values });
            })
            .returned(move |came_back| {
                let about = came_back.words().next();
                if let (Some(0), Some(about)) = (came_back.handler(), about) {
                    let refused = Err(came_back.why());
                    returned.answer(Answer { about, refused, values: Vec::new() });
                }
            })
    }

    /// A copy of the values of an answer, in a buffer that was used before if there is one.
    fn values_of(&self, payload: &[u8]) -> Vec<u8> {
        let mut values = locked(&self.spare).pop().unwrap_or_default();
        values.extend_from_slice(payload);
        values
    }

    /// How many peers have said that their programs have ended. What they wrote before is in place
    /// by then.
    pub fn ended(&self) -> usize {
        self.ended.load(Ordering::Acquire)
    }

    fn answer(&self, answer: Answer) {
        let mut answers = locked(&self.answers);
        answers.push_back(answer);
        self.waiting.store(answers.len(), Ordering::Release);
    }

    /// Whether at least one answer waits for the program to take it.
    #[inline]
    pub fn has_answers(&self) -> bool {
        self.waiting.load(Ordering::Acquire) > 0
    }

    /// Takes the oldest answer that waits for the program.
    pub fn next_answer(&self) -> Option<Answer> {
        let mut answers = locked(&self.answers);
        let next = answers.pop_front();
        self.waiting.store(answers.len(), Ordering::Release);
        next
    }

    /// Keeps the buffer of an answer that was handled, to be used again.
    pub fn recycle(&self, mut values: Vec<u8>) {
        values.clear();
        let mut spare = locked(&self.spare);
        if spare.len() < SPARE {
            spare.push(values);
        }
    }

    /// Adds bytes that were stored here to the counter of a turn.
    pub fn count(&self, bytes: u64, turn: u64) {
        let _ = self.heap.fetch_add(counter(turn), bytes);
    }

    /// Adds a function that peers may apply.
    pub fn defines(&self, function: Function) {
        self.functions.write().unwrap_or_else(PoisonError::into_inner).push(function);
    }

    /// Runs a function, by its number, on a value of this process's own or of mapped memory. `None`
    /// if the place can't hold the value.
    pub fn run<A: Element, R: Element>(
        &self,
        number: u64,
        place: (&Region, usize),
        argument: A,
    ) -> Option<R> {
        let functions = self.functions.read().unwrap_or_else(PoisonError::into_inner);
        let mut result = R::new_zeroed();
        let function = functions.get(number as usize)?;
        let done = function.run(place, &self.large, argument.as_bytes(), result.as_mut_bytes());
        done.then_some(result)
    }

    /// How many operations of peers were refused here.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Whether an entry may access a range of the heap. The words at the beginning of the heap are
    /// the library's own, and a part that this process has as a slice is that process's alone.
    #[inline]
    fn allows(&self, offset: usize, len: usize) -> bool {
        offset >= CONTROL as usize && self.guards.allow(offset, len)
    }

    /// Carries out the entries of a message, and appends the answers to `values`. Returns the
    /// operations that were refused. A malformed entry, and whatever is behind it, is not carried
    /// out; this process counts it as one refused operation.
    pub fn serve(&self, entries: &[u8], values: &mut Vec<u8>) -> Refusals {
        let mut refused = Refusals::default();
        let (mut count, mut rest) = (0, entries);
        for at in 0.. {
            let Some((word, behind)) = rest.split_first_chunk() else { break };
            match self.entry(u64::from_le_bytes(*word), behind, values) {
                Some((true, behind)) => rest = behind,
                Some((false, behind)) => {
                    refused.add(at);
                    (count, rest) = (count + 1, behind);
                }
                None => {
                    refused.add_from(at);
                    count += 1;
                    break;
                }
            }
        }
        if count > 0 {
            self.refused.fetch_add(count, Ordering::Relaxed);
        }
        refused
    }

    /// Carries out one entry. Returns whether its operation was carried out, and the bytes behind
    /// the entry; `None` if the entry is malformed.
    #[inline]
    fn entry<'e>(
        &self,
        word: u64,
        behind: &'e [u8],
        values: &mut Vec<u8>,
    ) -> Option<(bool, &'e [u8])> {
        let (operation, len, offset) = read_head(word)?;
        match operation {
            Operation::Put => {
                let (bytes, behind) = behind.split_at_checked(whole(len))?;
                let allowed = self.allows(offset, len);
                Some((allowed && self.heap.write_at(offset, &bytes[..len]).is_ok(), behind))
            }
            Operation::Get => {
                let from = values.len();
                values.resize(from + whole(len), 0);
                let into = &mut values[from..from + len];
                let allowed = self.allows(offset, len);
                Some((allowed && self.heap.read_at(offset, into).is_ok(), behind))
            }
            Operation::Atomic(change, fetches) => {
                let (operands, behind) = behind.split_at_checked(8 * change.verb.operands())?;
                let word = |at: usize| operands.get(8 * at..).and_then(|rest| rest.first_chunk());
                let operand = [0, 1].map(|at| word(at).map_or(0, |&word| u64::from_le_bytes(word)));
                let allowed = self.allows(offset, size_of::<u64>());
                let before =
                    allowed.then(|| change.apply(&self.heap, offset, operand).ok()).flatten();
                if fetches {
                    values.extend_from_slice(&before.unwrap_or(0).to_le_bytes());
                }
                Some((before.is_some(), behind))
            }
            Operation::Call => {
                let (number, behind) = behind.split_first_chunk()?;
                let (argument, behind) = behind.split_at_checked(whole(len))?;
                let functions = self.functions.read().unwrap_or_else(PoisonError::into_inner);
                let function = functions.get(u64::from_le_bytes(*number) as usize)?;
                let from = values.len();
                values.resize(from + whole(function.answers()), 0);
                let answer = &mut values[from..from + function.answers()];
                let argument = &argument[..len];
                let allowed = self.allows(offset, function.value());
                let run = || function.run((&self.heap, offset), &self.large, argument, answer);
                // The peer is answered even if the function panics; the panic has printed its
                // message already. The value is unchanged then, for the function works on a copy.
                let done = allowed && catch_unwind(AssertUnwindSafe(run)).unwrap_or(false);
                Some((done, behind))
            }
        }
    }
}
