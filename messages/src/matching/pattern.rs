//! Which messages a receive takes.

/// The number of a sender among those of an endpoint. Numbers are not used again.
pub type Source = u64;

/// The match information of a message: 64 bits that its sender chooses, and the sender.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Envelope {
    pub source: Source,
    pub bits: u64,
}

/// The messages that a receive takes: those whose bits equal the pattern's where the mask has ones,
/// from one source or from any.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Pattern {
    /// The source, or `None` for any.
    pub source: Option<Source>,
    bits: u64,
    mask: u64,
}

impl Pattern {
    /// Returns whether the pattern takes messages of a sender.
    pub fn is_of(&self, source: Source) -> bool {
        self.source.is_none_or(|only| only == source)
    }

    /// The messages whose bits equal `bits` where `mask` has ones.
    pub fn new(source: Option<Source>, bits: u64, mask: u64) -> Self {
        Self { source, bits: bits & mask, mask }
    }

    /// Returns the bits that messages have where the mask has ones.
    pub fn bits(&self) -> u64 {
        self.bits
    }

    /// Returns the mask, whose ones say which bits of a message are compared.
    pub fn mask(&self) -> u64 {
        self.mask
    }

    /// The pattern that takes no message: bits are asked for that its mask leaves out.
    pub(super) const NOTHING: Self = Self { source: None, bits: 1, mask: 0 };

    /// Returns whether the pattern takes a message.
    #[inline]
    pub fn takes(&self, message: Envelope) -> bool {
        message.bits & self.mask == self.bits && self.source.is_none_or(|of| of == message.source)
    }

    pub(super) fn class(&self) -> Class {
        Class { mask: self.mask, any_source: self.source.is_none() }
    }

    pub(super) fn key(&self) -> Key {
        Key { bits: self.bits, source: self.source }
    }
}

/// A class of patterns that have the same mask and either all name a source or all take any. The
/// patterns of a class differ only in the values that they ask for. So a message has one [`Key`]
/// for the whole class, by which the patterns that take the message are found at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Class {
    mask: u64,
    any_source: bool,
}

impl Class {
    pub fn key_of(&self, message: Envelope) -> Key {
        let source = if self.any_source { None } else { Some(message.source) };
        Key { bits: message.bits & self.mask, source }
    }
}

/// The values that a pattern asks for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Key {
    bits: u64,
    source: Option<Source>,
}
