//! Arguments: words, and types that are such words.

use std::fmt;
use std::ops::Deref;

/// The most words that a message has as arguments without their taking the place of payload.
pub const MOST_WORDS: usize = 16;

/// Up to sixteen words.
///
/// ```
/// use doorbell_am::Words;
///
/// let words = Words::new(&[1, 2, 3]).expect("no more than sixteen");
/// assert_eq!(words[..], [1, 2, 3]);
/// assert!(Words::new(&[0; 17]).is_none());
/// ```
#[derive(Clone, Copy)]
pub struct Words {
    words: [u64; MOST_WORDS],
    len: usize,
}

impl Words {
    /// None.
    pub const NONE: Self = Self { words: [0; MOST_WORDS], len: 0 };

    /// A copy of these, unless they are too many.
    #[inline]
    pub fn new(words: &[u64]) -> Option<Self> {
        let mut copy = Self::NONE;
        copy.words.get_mut(..words.len())?.copy_from_slice(words);
        copy.len = words.len();
        Some(copy)
    }
}

/// Puts words into as many bytes, eight of each, lowest first.
#[inline]
pub(crate) fn put_words(words: &[u64], bytes: &mut [u8]) {
    for (bytes, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
        *bytes = word.to_le_bytes();
    }
}

/// The words that lie in bytes, as [`put_words`] puts them.
#[inline]
pub(crate) fn each_word(bytes: &[u8]) -> impl ExactSizeIterator<Item = u64> {
    bytes.as_chunks::<8>().0.iter().map(|&word| u64::from_le_bytes(word))
}

impl Deref for Words {
    type Target = [u64];

    #[inline]
    fn deref(&self) -> &[u64] {
        &self.words[..self.len]
    }
}

impl fmt::Debug for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self[..]).finish()
    }
}

impl PartialEq for Words {
    fn eq(&self, other: &Self) -> bool {
        self[..] == other[..]
    }
}

/// Room for the words of any arguments: few as a rule, for which nothing is allocated. It is filled where
/// it lies, for to move it costs more than to fill it.
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

/// What tells a type of arguments from others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape(pub(crate) u64);

impl Shape {
    /// That of a type of this name.
    pub const fn of(name: &str) -> Self {
        // FNV-1a, <http://www.isthe.com/chongo/tech/comp/fnv/>.
        Self(0xCBF2_9CE4_8422_2325).and(name)
    }

    /// The same with more to it.
    pub(crate) const fn and(self, name: &str) -> Self {
        let Self(mut hash) = self;
        let mut at = 0;
        while at < name.len() {
            hash = (hash ^ name.as_bytes()[at] as u64).wrapping_mul(0x0100_0000_01B3);
            at += 1;
        }
        Self((hash ^ 0xFF).wrapping_mul(0x0100_0000_01B3))
    }
}

/// What can be the arguments of a message: a number of words.
///
/// Numbers are, and tuples and arrays of them, and [`Words`] and `Vec<u64>` for those who count for
/// themselves. Of more than sixteen, those beyond take the place of payload, and eight bytes besides. A
/// type of your own is made one by saying which words it is:
///
/// ```
/// use doorbell_am::{Arguments, Shape};
///
/// struct Pixel { x: u32, y: u32, colour: u64 }
///
/// impl Arguments for Pixel {
///     const SHAPE: Shape = Shape::of("Pixel");
///
///     fn count(&self) -> usize {
///         2
///     }
///
///     fn put(&self, words: &mut [u64]) {
///         words.copy_from_slice(&[u64::from(self.x) << 32 | u64::from(self.y), self.colour]);
///     }
///
///     fn take(words: &[u64]) -> Option<Self> {
///         let &[place, colour] = words else { return None };
///         Some(Self { x: (place >> 32) as u32, y: place as u32, colour })
///     }
/// }
/// ```
pub trait Arguments: Sized {
    /// What tells it from other types of arguments, when endpoints compare their handlers.
    const SHAPE: Shape;

    /// How many words.
    fn count(&self) -> usize;

    /// Puts itself into so many words.
    fn put(&self, words: &mut [u64]);

    /// What these words are, if they are any.
    fn take(words: &[u64]) -> Option<Self>;
}

impl Arguments for Words {
    const SHAPE: Shape = Shape::of("words");

    #[inline]
    fn count(&self) -> usize {
        self.len()
    }

    #[inline]
    fn put(&self, words: &mut [u64]) {
        words.copy_from_slice(self);
    }

    #[inline]
    fn take(words: &[u64]) -> Option<Self> {
        Self::new(words)
    }
}

impl Arguments for Vec<u64> {
    const SHAPE: Shape = Shape::of("words");

    #[inline]
    fn count(&self) -> usize {
        self.len()
    }

    #[inline]
    fn put(&self, words: &mut [u64]) {
        words.copy_from_slice(self);
    }

    #[inline]
    fn take(words: &[u64]) -> Option<Self> {
        Some(words.to_vec())
    }
}

impl Arguments for () {
    const SHAPE: Shape = Shape::of("");

    #[inline]
    fn count(&self) -> usize {
        0
    }

    #[inline]
    fn put(&self, _: &mut [u64]) {}

    #[inline]
    fn take(words: &[u64]) -> Option<Self> {
        words.is_empty().then_some(())
    }
}

/// What is one word.
pub trait Word: Copy {
    /// What tells it from other words, when endpoints compare their handlers.
    const KIND: &'static str;

    /// As a word.
    fn word(self) -> u64;

    /// What the word is, if it is one of these.
    fn from_word(word: u64) -> Option<Self>;
}

macro_rules! words_of_integers {
    ($($number:ident)+) => {$(
        #[allow(clippy::cast_lossless, reason = "of some it is, and of others not")]
        impl Word for $number {
            const KIND: &'static str = stringify!($number);

            #[inline]
            fn word(self) -> u64 {
                self as u64
            }

            #[inline]
            fn from_word(word: u64) -> Option<Self> {
                let number = word as Self;
                (number as u64 == word).then_some(number)
            }
        }
    )+};
}

words_of_integers! { u8 u16 u32 u64 usize i8 i16 i32 i64 }

impl Word for bool {
    const KIND: &'static str = "bool";

    #[inline]
    fn word(self) -> u64 {
        self.into()
    }

    #[inline]
    fn from_word(word: u64) -> Option<Self> {
        match word {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl Word for f64 {
    const KIND: &'static str = "f64";

    #[inline]
    fn word(self) -> u64 {
        self.to_bits()
    }

    #[inline]
    fn from_word(word: u64) -> Option<Self> {
        Some(Self::from_bits(word))
    }
}

impl Word for f32 {
    const KIND: &'static str = "f32";

    #[inline]
    fn word(self) -> u64 {
        self.to_bits().into()
    }

    #[inline]
    fn from_word(word: u64) -> Option<Self> {
        u32::try_from(word).ok().map(Self::from_bits)
    }
}

impl<W: Word> Arguments for W {
    const SHAPE: Shape = Shape::of(W::KIND);

    #[inline]
    fn count(&self) -> usize {
        1
    }

    #[inline]
    fn put(&self, words: &mut [u64]) {
        words[0] = self.word();
    }

    #[inline]
    fn take(words: &[u64]) -> Option<Self> {
        let &[word] = words else { return None };
        W::from_word(word)
    }
}

impl<W: Word, const N: usize> Arguments for [W; N] {
    const SHAPE: Shape = {
        let (mut shape, mut at) = (Shape::of(""), 0);
        while at < N {
            shape = shape.and(W::KIND);
            at += 1;
        }
        shape
    };

    #[inline]
    fn count(&self) -> usize {
        N
    }

    #[inline]
    fn put(&self, words: &mut [u64]) {
        for (word, value) in words.iter_mut().zip(self) {
            *word = value.word();
        }
    }

    #[inline]
    fn take(words: &[u64]) -> Option<Self> {
        let words: &[u64; N] = words.try_into().ok()?;
        let mut values = [W::from_word(0)?; N];
        for (value, &word) in values.iter_mut().zip(words) {
            *value = W::from_word(word)?;
        }
        Some(values)
    }
}

macro_rules! tuples {
    ($($count:literal: $($name:ident)+)+) => {$(
        impl<$($name: Word),+> Arguments for ($($name,)+) {
            const SHAPE: Shape = Shape::of("")$(.and($name::KIND))+;

            #[inline]
            fn count(&self) -> usize {
                $count
            }

            #[inline]
            #[allow(non_snake_case)]
            fn put(&self, words: &mut [u64]) {
                let ($($name,)+) = *self;
                words.copy_from_slice(&[$($name.word()),+]);
            }

            #[inline]
            #[allow(non_snake_case)]
            fn take(words: &[u64]) -> Option<Self> {
                let &[$($name),+] = words else { return None };
                Some(($($name::from_word($name)?,)+))
            }
        }
    )+};
}

tuples! {
    1: A
    2: A B
    3: A B C
    4: A B C D
    5: A B C D E
    6: A B C D E F
    7: A B C D E F G
    8: A B C D E F G H
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there_and_back<A: Arguments + PartialEq + fmt::Debug>(arguments: A, expected: &[u64]) {
        let (mut there, mut again) = (Room::new(), Room::new());
        let words = there.of(&arguments);
        assert_eq!(*words, *expected);
        let mut bytes = vec![0; 8 * words.len()];
        put_words(words, &mut bytes);
        assert_eq!(A::take(again.read(&bytes)), Some(arguments));
    }

    #[test]
    fn arguments_are_words_and_words_are_arguments_again() {
        there_and_back((), &[]);
        there_and_back(7_u8, &[7]);
        there_and_back(-1_i32, &[u64::MAX]);
        there_and_back((true, 2.0_f64), &[1, 2.0_f64.to_bits()]);
        there_and_back([1_u16; 16], &[1; 16]);
        there_and_back([1_u16; 17], &[1; 17]);
        there_and_back([1_u16; 1000], &[1; 1000]);
        there_and_back(vec![5; 100], &[5; 100]);
        there_and_back(Words::new(&[3, 2, 1]).expect("few"), &[3, 2, 1]);
    }

    #[test]
    fn what_is_no_such_type_is_none() {
        assert_eq!(u8::take(&[256]), None);
        assert_eq!(i32::take(&[1 << 31]), None);
        assert_eq!(bool::take(&[2]), None);
        assert_eq!(u64::take(&[]), None);
        assert_eq!(<(u64, u64)>::take(&[1]), None);
        assert_eq!(<[u64; 2]>::take(&[1, 2, 3]), None);
        assert_eq!(<()>::take(&[1]), None);
    }
}
