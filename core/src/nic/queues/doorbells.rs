//! Doorbells, which programs ring and the NIC answers.
//!
//! There is a bit for each queue pair, and above these a summary with a bit for each word of bells.
//! A NIC finds the few that were rung among ten thousand by three loads, and ringing neither waits
//! nor overflows: the queue says how much there is to do, and the bell only that there is
//! something.

use crate::sync::{AtomicU64, AtomicUsize, Ordering};

/// A doorbell for each index below a capacity.
///
/// Anybody may ring, and no ring is lost, even when two threads answer at the same time.
///
/// A ring sets the bell's bit and then the summary's; an answer clears the summary's and then the
/// bell's. So there is no moment at which a bell is set for good and the summary is not.
pub(crate) struct Doorbells {
    bells: Box<[AtomicU64]>,
    /// A bit for each word of `bells` that has a bit set, or had one.
    summary: Box<[AtomicU64]>,
    /// How many words of the summary stand for indices that are in use.
    used: AtomicUsize,
}

impl Doorbells {
    /// Makes doorbells for the indices below `capacity`, none of them rung.
    pub fn new(capacity: usize) -> Self {
        let words = capacity.div_ceil(BITS);
        let summary = zeros(words.div_ceil(BITS));
        let used = AtomicUsize::new(summary.len());
        Self { bells: zeros(words), summary, used }
    }

    /// Notes that no index from `indices` on is in use, so that nobody looks there. Only the thread
    /// that answers does so, before any of the indices below is rung.
    pub fn use_up_to(&self, indices: usize) {
        let used = indices.div_ceil(BITS * BITS).min(self.summary.len());
        self.used.store(used, Ordering::Relaxed);
    }

    /// The words of the summary that may have a bit set.
    #[inline]
    fn in_use(&self) -> &[AtomicU64] {
        let used = self.used.load(Ordering::Relaxed);
        self.summary.get(..used).unwrap_or(&self.summary)
    }

    /// Has `index` answered, by a thread that sees all that was written before.
    ///
    /// A ring costs an atomic operation, or two if the neighbours of its bell are all silent. It
    /// does not wake a NIC that sleeps. If the NIC looks at [`any`](Self::any) once more after it
    /// has said that it goes to sleep, and the program looks whether the NIC sleeps after ringing,
    /// each needs a fence of [`SeqCst`](Ordering::SeqCst) between the two, or both may see the
    /// past.
    ///
    /// # Panics
    /// When `index` is not below the capacity, in whole words of 64.
    #[inline]
    pub fn ring(&self, index: u32) {
        let (word, bit) = split(index as usize);
        // The bit must be set even if it is found set. A load may be executed before the stores to
        // the queue that precede it, unless a fence prevents that, which costs as much. Then the
        // bit that was seen set may be cleared, and the queue be looked at, before those stores
        // arrive.
        self.bells[word].fetch_or(bit, Ordering::AcqRel);
        let (word, bit) = split(word);
        // The summary's bit need not be set if it is found set. Suppose that an answer has cleared
        // the summary and this load does not see that yet. If that answer had cleared the bell
        // before it was set here, then the operation above, which acquires, would have read what
        // the clearing released, and this load would see the summary cleared as well. So the bell
        // was set before, and that answer finds it.
        if self.summary[word].load(Ordering::Relaxed) & bit == 0 {
            // This releases the bell that was set: a thread that takes the summary's bit finds the
            // bell.
            self.summary[word].fetch_or(bit, Ordering::Release);
        }
    }

    /// Whether a bell may have been rung. A ring of this very moment is perhaps not seen yet.
    #[inline]
    pub fn any(&self) -> bool {
        self.in_use().iter().any(|summary| summary.load(Ordering::Relaxed) != 0)
    }

    /// Calls `rung` for each index that was rung, in ascending order, after silencing its bell.
    ///
    /// An index that is rung again meanwhile is called for now or the next time, so this comes to
    /// an end.
    #[inline]
    pub fn answer(&self, mut rung: impl FnMut(u32)) {
        for (at, summary) in self.in_use().iter().enumerate() {
            // The word is loaded first, since a swap would take its cache line away from those who
            // ring.
            if summary.load(Ordering::Relaxed) == 0 {
                continue;
            }
            for word in ones(summary.swap(0, Ordering::Acquire)) {
                let word = at * BITS + word;
                // Acquires what was written before the rings, and releases to later ones that the
                // summary is cleared.
                for bit in ones(self.bells[word].swap(0, Ordering::AcqRel)) {
                    rung((word * BITS + bit) as u32);
                }
            }
        }
    }
}

/// How many bells a word holds, and how many words of bells a word of the summary stands for.
const BITS: usize = u64::BITS as usize;

/// Returns the word in which a bit lies, and the bit within it.
#[inline]
const fn split(index: usize) -> (usize, u64) {
    (index / BITS, 1 << (index % BITS))
}

fn zeros(words: usize) -> Box<[AtomicU64]> {
    (0..words).map(|_| AtomicU64::new(0)).collect()
}

/// Iterates over the positions of the bits that are set, the lowest first.
#[inline]
fn ones(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lowest = (word != 0).then(|| word.trailing_zeros() as usize);
        word &= word.wrapping_sub(1);
        lowest
    })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use proptest::prelude::*;
    use std::sync::atomic::AtomicU32;
    use std::thread;

    use super::*;

    fn answered(doorbells: &Doorbells) -> Vec<u32> {
        let mut answered = Vec::new();
        doorbells.answer(|index| answered.push(index));
        answered
    }

    #[test]
    fn a_bell_is_answered_once_however_often_it_was_rung() {
        let doorbells = Doorbells::new(100);
        assert!(!doorbells.any());
        doorbells.ring(70);
        doorbells.ring(70);
        assert!(doorbells.any());
        assert_eq!(answered(&doorbells), [70]);
        assert!(!doorbells.any());
        assert_eq!(answered(&doorbells), []);
    }

    #[test]
    fn the_first_and_the_last_bell_of_each_word_are_told_apart() {
        let doorbells = Doorbells::new(65_536);
        let all = [0, 1, 63, 64, 4095, 4096, 8191, 8192, 65_472, 65_535];
        all.iter().rev().for_each(|&index| doorbells.ring(index));
        assert_eq!(answered(&doorbells), all);
        assert_eq!(answered(&doorbells), []);
    }

    #[test]
    fn a_bell_that_is_rung_while_it_is_answered_is_answered_again() {
        let doorbells = Doorbells::new(10);
        doorbells.ring(3);
        doorbells.answer(|index| doorbells.ring(index));
        assert!(doorbells.any());
        assert_eq!(answered(&doorbells), [3]);
    }

    #[test]
    fn doorbells_without_bells_have_nothing_to_answer() {
        let doorbells = Doorbells::new(0);
        assert!(!doorbells.any());
        assert_eq!(answered(&doorbells), []);
    }

    #[test]
    #[should_panic(expected = "index out of bounds")]
    fn a_bell_beyond_the_capacity_cannot_be_rung() {
        Doorbells::new(64).ring(64);
    }

    #[test]
    fn no_post_is_missed_when_threads_ring_as_fast_as_they_can() {
        const POSTS: u32 = 20_000;
        let doorbells = Doorbells::new(10_000);
        let indices = [5, 6, 70, 9_999];
        let posted = [const { AtomicU32::new(0) }; 4];
        let mut seen = [0; 4];
        thread::scope(|scope| {
            for (index, posted) in indices.iter().zip(&posted) {
                let doorbells = &doorbells;
                scope.spawn(move || {
                    for post in 1..=POSTS {
                        posted.store(post, Ordering::Relaxed);
                        doorbells.ring(*index);
                    }
                });
            }
            while seen != [POSTS; 4] {
                doorbells.answer(|index| {
                    let queue = indices.iter().position(|&known| known == index).unwrap();
                    seen[queue] = posted[queue].load(Ordering::Relaxed);
                });
                thread::yield_now();
            }
        });
    }

    proptest! {
        #[test]
        fn all_bells_that_were_rung_are_answered_in_order(
            rung in proptest::collection::btree_set(0..20_000_u32, 0..300),
        ) {
            let doorbells = Doorbells::new(20_000);
            rung.iter().rev().for_each(|&index| doorbells.ring(index));
            prop_assert_eq!(doorbells.any(), !rung.is_empty());
            prop_assert_eq!(answered(&doorbells), Vec::from_iter(rung));
            prop_assert!(!doorbells.any());
        }
    }
}

/// Every interleaving of a few rings and answers, by loom's model of memory.
///
/// They fail with any weaker order for the bells, but not with relaxed ones for the summary: loom
/// never lets one read-modify-write overtake another of the same thread, and hardware may.
#[cfg(all(test, loom))]
mod interleavings {
    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    /// The bells of four queues: two in a word, the others in words of their own, the last of which
    /// is under another word of the summary.
    const BELLS: [u32; 4] = [0, 1, 64, 4096];

    /// Doorbells, and for each of those bells a queue that only counts what was posted.
    struct Nic {
        doorbells: Doorbells,
        posted: [AtomicU64; 4],
    }

    impl Nic {
        fn new() -> Self {
            let posted = std::array::from_fn(|_| AtomicU64::new(0));
            Self { doorbells: Doorbells::new(4097), posted }
        }

        fn post(&self, queue: usize, count: u64) {
            self.posted[queue].store(count, Ordering::Relaxed);
            self.doorbells.ring(BELLS[queue]);
        }

        fn answer(&self, seen: &mut [u64; 4]) {
            self.doorbells.answer(|index| {
                let queue = BELLS.iter().position(|&bell| bell == index).unwrap();
                seen[queue] = self.posted[queue].load(Ordering::Relaxed);
                assert!(seen[queue] > 0, "answered before what was posted is there");
            });
        }
    }

    /// Posts each program's work from a thread of its own while another answers, and then asserts
    /// that one more answer leaves nothing that was not seen.
    ///
    /// All else happened before that last answer, so it finds every bell that the summary speaks
    /// for. It misses a post if the summary lost the bell, or if the other answer took the bell and
    /// found the queue as it was before.
    fn all_is_seen(programs: &'static [&'static [(usize, u64)]], answers: usize) {
        all_is_seen_within(None, programs, answers);
    }

    /// The same with only so many preemptions, where all of them are too many to try.
    fn all_is_seen_within(
        preemptions: Option<usize>,
        programs: &'static [&'static [(usize, u64)]],
        answers: usize,
    ) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = preemptions;
        model.check(move || {
            let nic = Arc::new(Nic::new());
            let programs = programs.iter().map(|posts| {
                let nic = nic.clone();
                let program = thread::spawn(move || {
                    posts.iter().for_each(|&(queue, count)| nic.post(queue, count));
                });
                (program, posts[posts.len() - 1])
            });
            let programs = Vec::from_iter(programs);
            let other = nic.clone();
            let answerer = thread::spawn(move || {
                let mut seen = [0; 4];
                (0..answers).for_each(|_| other.answer(&mut seen));
                seen
            });
            let mut expected = [0; 4];
            for (program, (queue, count)) in programs {
                program.join().unwrap();
                expected[queue] = count;
            }
            let mut seen = answerer.join().unwrap();
            nic.answer(&mut seen);
            assert_eq!(seen, expected);
        });
    }

    #[test]
    fn two_bells_of_one_word_are_both_answered() {
        all_is_seen(&[&[(0, 1)], &[(1, 1)]], 1);
    }

    #[test]
    fn two_bells_of_two_words_are_both_answered() {
        all_is_seen(&[&[(0, 1)], &[(2, 1)]], 1);
    }

    #[test]
    fn two_bells_under_two_words_of_the_summary_are_both_answered() {
        all_is_seen(&[&[(0, 1)], &[(3, 1)]], 1);
    }

    #[test]
    fn a_bell_that_is_rung_again_is_answered_again() {
        all_is_seen(&[&[(0, 1), (0, 2)]], 2);
    }

    #[test]
    fn a_bell_that_is_rung_again_beside_another_is_answered_again() {
        all_is_seen_within(Some(3), &[&[(0, 1), (0, 2)], &[(1, 1)]], 1);
    }
}
