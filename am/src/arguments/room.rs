//! Room on the stack for the words of a message.

use crate::arguments::Arguments;
use crate::wire::{Content, MOST_WORDS, each_word};

/// Room for the words of a message, which are few as a rule, so that nothing is allocated. The room
/// is filled in place, since moving it costs more than filling it.
pub(crate) struct Room {
    few: [u64; MOST_WORDS],
    many: Vec<u64>,
}

impl Room {
    #[inline]
    pub const fn new() -> Self {
        Self { few: [0; MOST_WORDS], many: Vec::new() }
    }

    /// Encodes arguments as words.
    #[inline]
    pub fn of<A: Arguments>(&mut self, arguments: &A) -> &[u64] {
        let words = self.for_words(arguments.count());
        arguments.put(words);
        words
    }

    /// Encodes arguments as the content of a message.
    #[inline]
    pub fn content<'c, A: Arguments>(&'c mut self, arguments: &'c A) -> Content<'c> {
        Content { words: self.of(arguments), payload: arguments.payload() }
    }

    /// Encodes arguments as the content of a message with a payload beside them. The arguments must
    /// have no payload of their own.
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

    /// Decodes words from bytes, eight each, the lowest first.
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
