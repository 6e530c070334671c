//! Words, of eight bytes each.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;

/// The most words of arguments that do not take the place of payload in a message.
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
    /// An empty list of words.
    pub const NONE: Self = Self { words: [0; MOST_WORDS], len: 0 };

    /// A copy of these words, or `None` if they are more than sixteen.
    #[inline]
    pub fn new(words: &[u64]) -> Option<Self> {
        let mut copy = Self::NONE;
        copy.words.get_mut(..words.len())?.copy_from_slice(words);
        copy.len = words.len();
        Some(copy)
    }
}

/// Any number of words, for programs that count their arguments at run time.
///
/// ```
/// use doorbell_am::{ManyWords, RequestId};
///
/// const SORT: RequestId<ManyWords> = RequestId::new(0, "sort");
/// let numbers = ManyWords(vec![3, 1, 2]);
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct ManyWords(pub Vec<u64>);

impl From<Vec<u64>> for ManyWords {
    fn from(words: Vec<u64>) -> Self {
        Self(words)
    }
}

/// Encodes words as eight bytes each, the lowest first.
#[inline]
pub(crate) fn put_words(words: &[u64], bytes: &mut [u8]) {
    for (bytes, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
        *bytes = word.to_le_bytes();
    }
}

/// Decodes the words that [`put_words`] has encoded.
#[inline]
pub(crate) fn each_word(bytes: &[u8]) -> impl ExactSizeIterator<Item = u64> {
    bytes.as_chunks::<8>().0.iter().map(|&word| u64::from_le_bytes(word))
}

impl Deref for Words {
    type Target = [u64];

    #[inline]
    fn deref(&self) -> &[u64] {
        self.words.get(..self.len).unwrap_or_default()
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

impl Eq for Words {}

impl Hash for Words {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self[..].hash(hasher);
    }
}

impl Default for Words {
    fn default() -> Self {
        Self::NONE
    }
}
