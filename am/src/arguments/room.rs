//! Room for the words of a message that is being sent, or taken apart.

use crate::arguments::Arguments;
use crate::wire::{Content, MOST_WORDS, each_word};

/// Room for the words of any arguments: few as a rule, for which nothing is allocated. It is filled
/// where it lies, for to move it costs more than to fill it.
pub(crate) struct Room {
    few: [u64; MOST_WORDS],
    many: Vec<u64>,
}

impl Room {
    #[inline]
    pub const fn new() -> Self {
        Self { few: [0; MOST_WORDS], many: Vec::new() }
    }

    /// The words of arguments.
    #[inline]
    pub fn of<A: Arguments>(&mut self, arguments: &A) -> &[u64] {
        let words = self.for_words(arguments.count());
        arguments.put(words);
        words
    }

    /// What a message of these arguments carries.
    #[inline]
    pub fn content<'c, A: Arguments>(&'c mut self, arguments: &'c A) -> Content<'c> {
        Content { words: self.of(arguments), payload: arguments.payload() }
    }

    /// What a message of these arguments carries, which have no payload of their own, with a
    /// payload.
    #[inline]
    pub fn content_with<'c, A: Arguments>(
        &'c mut self,
        arguments: &A,
        payload: &'c [u8],
    ) -> Content<'c> {
        const {
            assert!(
                !A::HAS_PAYLOAD,
                "these arguments have a payload of their own: no other can be sent beside it"
            );
        }
        Content { words: self.of(arguments), payload }
    }

    /// Those that lie in bytes, lowest first. Eight bytes are one word.
    #[inline]
    pub fn read(&mut self, bytes: &[u8]) -> &[u64] {
        let words = self.for_words(bytes.len() / 8);
        words.iter_mut().zip(each_word(bytes)).for_each(|(there, word)| *there = word);
        words
    }

    #[inline]
    fn for_words(&mut self, count: usize) -> &mut [u64] {
        if count > MOST_WORDS { self.for_many(count) } else { &mut self.few[..count] }
    }

    #[cold]
    fn for_many(&mut self, count: usize) -> &mut [u64] {
        self.many = vec![0; count];
        &mut self.many
    }
}
