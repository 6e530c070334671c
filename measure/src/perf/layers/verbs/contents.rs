//! The contents of messages, the buffers that they are sent from, and the memory that they land in.
//!
//! A message is a piece of the pattern, whose last word is replaced by one that is the message's
//! own. Messages with successive numbers are different pieces. So no message is taken for another,
//! or for what was in the memory before.

use std::collections::VecDeque;

use anyhow::Context;
use doorbell_core::nic::MOST_INLINE;
use doorbell_verbs::{AccessError, Buf, Data, Inline, Memory, Registered, RemoteMemory, Segment};

use super::end::End;
use crate::perf::shared::pattern::Pattern;

/// The contents of each message, by its number.
pub struct Contents {
    pattern: Pattern,
    size: usize,
    /// How many pieces of the pattern are in use.
    pieces: u64,
}

/// The number of bytes of a message's last word: eight, or fewer if the message is shorter.
const fn word_of(size: usize) -> usize {
    if size < 8 { size } else { 8 }
}

impl Contents {
    pub fn new(size: usize, pieces: u64) -> Self {
        Self { pattern: Pattern::new(size), size, pieces }
    }

    #[inline]
    fn piece(&self, number: u64) -> &[u8] {
        self.pattern.of(number % self.pieces, self.size)
    }

    /// Whether messages consist of a few whole words, which are compared without a copy.
    #[inline]
    fn are_words(&self) -> bool {
        (8..=MOST_INLINE).contains(&self.size) && self.size.is_multiple_of(8)
    }

    /// The words of the message of a number, as they lie in memory.
    #[inline]
    fn words(&self, number: u64, word: u64) -> impl Iterator<Item = u64> {
        let body = &self.piece(number)[..self.size - size_of_val(&word)];
        let body = body.as_chunks().0.iter().map(|bytes| u64::from_ne_bytes(*bytes));
        body.chain([word.to_le()])
    }

    /// Writes the message of a number, with `word` as its last word, to the beginning of `to`.
    #[inline]
    fn fill(&self, number: u64, word: u64, to: &mut [u8]) {
        let to = &mut to[..self.size];
        to.copy_from_slice(self.piece(number));
        set_word(to, word);
    }

    /// The message of a number that is two words.
    #[inline]
    fn pair(&self, number: u64, word: u64) -> [u8; 16] {
        let mut both = [0; 16];
        let (body, end) = both.split_at_mut(8);
        body.copy_from_slice(&self.piece(number)[..8]);
        end.copy_from_slice(&word.to_le_bytes());
        both
    }

    /// Returns whether bytes are the message with this number and this word. Unless `wholly`,
    /// compares the word alone.
    #[inline]
    pub fn is(&self, number: u64, word: u64, found: &[u8], wholly: bool) -> bool {
        if found.len() != self.size {
            return false;
        }
        if let (true, Ok(found)) = (wholly, found.try_into()) {
            // Fast path: latencies are usually measured with messages of 16 bytes.
            return u128::from_ne_bytes(found) == u128::from_ne_bytes(self.pair(number, word));
        }
        let (body, end) = found.split_at(self.size - word_of(self.size));
        end == &word.to_le_bytes()[..end.len()]
            && (!wholly || *body == self.piece(number)[..body.len()])
    }
}

#[inline]
fn set_word(message: &mut [u8], word: u64) {
    let at = message.len() - word_of(message.len());
    let end = &mut message[at..];
    end.copy_from_slice(&word.to_le_bytes()[..end.len()]);
}

/// Where messages come from: short ones are copied into their requests, longer ones are in buffers
/// that their completions bring back.
pub struct Source {
    contents: Contents,
    /// The buffers that are not in use, that of the next message first. Buffers come back in the
    /// order in which they were sent.
    buffers: VecDeque<Buf>,
}

impl Source {
    /// Makes a source with buffers for `count` messages at a time.
    pub fn new(size: usize, count: u64) -> Self {
        let contents = Contents::new(size, count);
        let filled = |number| {
            let mut bytes = vec![0; size];
            contents.fill(number, 0, &mut bytes);
            Buf::from(bytes)
        };
        let buffers = (0..if size > MOST_INLINE { count } else { 0 }).map(filled).collect();
        Self { contents, buffers }
    }

    /// Whether messages are copied, so that nothing comes back.
    #[inline]
    pub fn copies(&self) -> bool {
        self.contents.size <= MOST_INLINE
    }

    /// Returns whether `count` more messages can be made.
    #[inline]
    pub fn has(&self, count: u64) -> bool {
        self.copies() || self.buffers.len() as u64 >= count
    }

    /// The bytes of a message.
    #[inline]
    pub fn size(&self) -> usize {
        self.contents.size
    }

    /// The message of a number, if messages are a word.
    #[inline(always)]
    pub fn word(&self, word: u64) -> anyhow::Result<Data> {
        Inline::new(&word.to_le_bytes()).map(Data::from).context("a word is not too long")
    }

    /// The message of a number, if messages are two words.
    #[inline(always)]
    pub fn pair(&self, number: u64, word: u64) -> anyhow::Result<Data> {
        let pair = self.contents.pair(number, word);
        Inline::new(&pair).map(Data::from).context("two words are not too long")
    }

    /// The message of a number, the next one; none if all buffers are under way.
    #[inline]
    pub fn next(&mut self, number: u64, word: u64) -> Option<Data> {
        // Fast path: for the shortest messages the compiler knows the length.
        match self.contents.size {
            8 => return self.word(word).ok(),
            16 => return self.pair(number, word).ok(),
            _ => {}
        }
        if self.copies() {
            let mut bytes = [0; MOST_INLINE];
            self.contents.fill(number, word, &mut bytes);
            return Inline::new(&bytes[..self.contents.size]).map(Data::from);
        }
        let mut buffer = self.buffers.pop_front()?;
        set_word(&mut buffer, word);
        Some(buffer.into())
    }

    #[inline]
    pub fn give_back(&mut self, memory: impl Into<Memory>) {
        if let Memory::Buf(buffer) = memory.into()
            && buffer.len() == self.contents.size
        {
            self.buffers.push_back(buffer);
        }
    }
}

/// How messages lie side by side in memory, each at a multiple of a cache line.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    size: usize,
    stride: usize,
    places: u64,
}

impl Layout {
    /// Lays out `places` messages of `size` bytes.
    pub fn new(size: usize, places: u64) -> Self {
        Self { size, stride: size.next_multiple_of(64).max(64), places }
    }

    /// The bytes of a message.
    #[inline]
    pub fn size(&self) -> usize {
        self.size
    }

    /// The place of a message.
    #[inline]
    pub fn place(&self, number: u64) -> u64 {
        number % self.places
    }

    #[inline]
    fn at(&self, number: u64) -> usize {
        self.place(number) as usize * self.stride
    }

    /// Returns the place of a message in the other end's memory, which has the same layout.
    #[inline]
    pub fn part_of(&self, theirs: &RemoteMemory, number: u64) -> Result<RemoteMemory, AccessError> {
        theirs.at(self.at(number) as u64, self.size as u64)
    }

    fn len(&self) -> usize {
        self.stride * self.places as usize
    }
}

/// Registered memory for messages of the other end.
pub struct Landing {
    pub memory: Registered,
    contents: Contents,
    layout: Layout,
    copy: Box<[u8]>,
}

impl Landing {
    /// Registers memory with this layout, for messages made of `pieces` pieces of the pattern.
    pub fn new(end: &End, layout: Layout, pieces: u64) -> anyhow::Result<Self> {
        let memory = end.memory(layout.len())?;
        let contents = Contents::new(layout.size, pieces);
        Ok(Self { memory, contents, layout, copy: vec![0; layout.size].into() })
    }

    /// Fills each place with the message that has the place's number.
    pub fn fill(&mut self) -> Result<(), AccessError> {
        for number in 0..self.layout.places {
            self.contents.fill(number, number + 1, &mut self.copy);
            self.memory.write_at(self.layout.at(number), &self.copy)?;
        }
        Ok(())
    }

    /// The place of a message.
    #[inline]
    pub fn segment(&self, number: u64) -> Result<Segment, AccessError> {
        let at = self.layout.at(number);
        self.memory.slice(at..at + self.layout.size)
    }

    /// Returns the last word in the place of the message with this number, or all of a message that
    /// is shorter than a word.
    #[inline]
    pub fn word(&self, number: u64) -> u64 {
        let (mut word, size) = ([0; 8], self.layout.size);
        let len = word_of(size);
        let at = self.layout.at(number) + size - len;
        // The memory is as long as its layout, so the place is within it.
        if self.contents.are_words() {
            let read = self.memory.load(at);
            debug_assert!(read.is_ok());
            return u64::from_le(read.unwrap_or_default());
        }
        let read = self.memory.read_at(at, &mut word[..len]);
        debug_assert_eq!(read, Ok(()));
        u64::from_le_bytes(word)
    }

    /// Returns whether the place of the message `place` holds the message `number`, which ends with
    /// `word`. Unless `wholly`, only the word is compared.
    #[inline]
    pub fn holds(&mut self, place: u64, (number, word): (u64, u64), wholly: bool) -> bool {
        if !wholly {
            let bits = 8 * word_of(self.layout.size) as u32;
            return bits == 0 || (self.word(place) ^ word) << (64 - bits) == 0;
        }
        let at = self.layout.at(place);
        if self.contents.are_words() {
            let mut words = self.contents.words(number, word).zip((at..).step_by(8));
            return words.all(|(word, at)| self.memory.load(at) == Ok(word));
        }
        self.memory.read_at(at, &mut self.copy).is_ok()
            && self.contents.is(number, word, &self.copy, true)
    }
}
