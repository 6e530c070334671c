//! What each word of a region may hold.
//!
//! Every value is written once, by one NIC, and values rise. Each NIC writes to words of its own in
//! a peer's region, in the order in which it begins. So a write that has succeeded leaves its value
//! or a later one, and one that has failed, or was dropped, may have been carried out or not.

use std::collections::HashSet;

/// The words of a cell.
pub const CELL: usize = 8;
/// The cells that each NIC has in each region.
pub const CELLS: usize = 4;

/// The values that one word may have.
#[derive(Clone, Default)]
struct Word {
    /// The values that the word may have now.
    may: Vec<u64>,
    /// The values that were ever written to the word, in order.
    ever: Vec<u64>,
}

/// The contents that one region may have.
pub struct Model {
    words: Vec<Word>,
    last: u64,
    counter: Counter,
}

/// The values that the counter behind the words may have, which every NIC adds one to.
#[derive(Default)]
struct Counter {
    /// The counter's least value, and its greatest.
    least: u64,
    most: u64,
    /// The values that were found in the counter before an addition.
    found: HashSet<u64>,
    /// How often its value was known for sure. Of additions that were begun before the last time,
    /// those that were carried out are counted in.
    epoch: u64,
}

/// The words that a reader may find: those that could be there when it began, and those that were
/// written since.
pub struct Sight {
    first: usize,
    seen: Vec<(Vec<u64>, usize)>,
}

/// Returns the first word of a cell of a NIC's.
pub fn place(writer: usize, cell: usize) -> usize {
    (writer * CELLS + cell) * CELL
}

impl Model {
    pub fn new(nics: usize) -> Self {
        let zero = Word { may: vec![0], ever: vec![0] };
        Self { words: vec![zero; nics * CELLS * CELL], last: 0, counter: Counter::default() }
    }

    /// Returns the number of words, the counter behind them left out.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Returns a value that nobody has written yet, and that its bytes tell from others: all eight
    /// differ from those of the value before.
    fn fresh(&mut self) -> u64 {
        self.last += 0x0101_0101_0101_0101;
        self.last
    }

    /// Notes that words are about to be written, and returns what with.
    pub fn begins(&mut self, first: usize, count: usize) -> Vec<u64> {
        let value = self.fresh();
        for word in &mut self.words[first..][..count] {
            word.may.push(value);
            word.ever.push(value);
        }
        vec![value; count]
    }

    /// Notes that a write has succeeded.
    pub fn written(&mut self, first: usize, values: &[u64]) {
        for (word, value) in self.words[first..].iter_mut().zip(values) {
            word.may.retain(|may| may >= value);
            assert!(!word.may.is_empty(), "a write that succeeded was undone");
        }
    }

    pub fn looks(&self, first: usize, count: usize) -> Sight {
        let words = self.words[first..][..count].iter();
        Sight { first, seen: words.map(|word| (word.may.clone(), word.ever.len())).collect() }
    }

    /// Checks what a reader has found.
    pub fn saw(&self, sight: &Sight, found: &[u64]) {
        let words = self.words[sight.first..].iter().zip(&sight.seen).zip(found);
        for (index, ((word, (may, ever)), found)) in words.enumerate() {
            let is_known = may.contains(found) || word.ever[*ever..].contains(found);
            let place = sight.first + index;
            assert!(is_known, "word {place} was {found:#x}, and may be {may:#x?} or later");
        }
    }

    /// Checks what all words hold at a moment when nobody writes, from which on that is known.
    pub fn settles(&mut self, found: &[u64], counter: u64) {
        self.saw(&self.looks(0, self.len()), found);
        for (word, found) in self.words.iter_mut().zip(found) {
            word.may = vec![*found];
        }
        let Counter { least, most, epoch, .. } = self.counter;
        assert!((least..=most).contains(&counter), "{counter} is not in {least}..={most}");
        let found = HashSet::new();
        self.counter = Counter { least: counter, most: counter, found, epoch: epoch + 1 };
    }

    /// Notes what the owner has written itself, while nobody else could.
    pub fn owned(&mut self, first: usize, count: usize) -> u64 {
        let value = self.fresh();
        for word in &mut self.words[first..][..count] {
            word.may = vec![value];
            word.ever.push(value);
        }
        value
    }

    /// Notes that an addition begins, and returns when.
    pub fn adds(&mut self) -> u64 {
        self.counter.most += 1;
        self.counter.epoch
    }

    /// Notes what an addition has found that began at `epoch`.
    pub fn added(&mut self, found: u64, epoch: u64) {
        let counter = &mut self.counter;
        if epoch != counter.epoch {
            return;
        }
        assert!(found < counter.most, "{found} was found, of {} at the most", counter.most);
        assert!(counter.found.insert(found), "two additions have found {found}");
        counter.least += 1;
    }

    pub fn counted(&self) -> u64 {
        self.counter.most
    }
}
