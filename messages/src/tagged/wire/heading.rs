//! What stands before the body of a message.

/// The length of a message and its properties, in one word.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Heading {
    /// The length of the whole body.
    pub len: usize,
    /// Whether the sender holds no other message.
    pub last: bool,
    /// Whether the body is to be pulled.
    pub long: bool,
}

impl Heading {
    const LAST: u64 = 1;
    const LONG: u64 = 2;

    pub fn word(self) -> u64 {
        let flag = |is: bool, flag| if is { flag } else { 0 };
        (self.len as u64) << 8 | flag(self.last, Self::LAST) | flag(self.long, Self::LONG)
    }

    pub fn from_word(word: u64) -> Self {
        let is = |flag| word & flag != 0;
        let len = usize::try_from(word >> 8).unwrap_or(usize::MAX);
        Self { len, last: is(Self::LAST), long: is(Self::LONG) }
    }
}
