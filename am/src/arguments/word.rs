//! Words: values that each travel as eight bytes.

/// A value that travels as one word of eight bytes: an integer, a float, a `bool`, or a type of a
/// program's own.
///
/// A struct of one word, and an `enum` whose variants have no fields, are words by a derive:
///
/// ```
/// use doorbell_am::Word;
///
/// #[derive(Word, Clone, Copy)]
/// # #[doorbell(crate = "doorbell_am")]
/// struct Key(u64);
///
/// #[derive(Word, Clone, Copy, PartialEq, Debug)]
/// # #[doorbell(crate = "doorbell_am")]
/// enum Colour {
///     Red,
///     Green = 7,
/// }
///
/// assert_eq!(Colour::Green.word(), 7);
/// assert_eq!(Colour::from_word(0), Some(Colour::Red));
/// assert_eq!(Colour::from_word(1), None);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no word of a message",
    label = "this is not one word",
    note = "a word is an integer of up to 64 bits, a float, a `bool`, a `char`, or a type with \
            `#[derive(Word)]`; no tuple, array, `Option` or struct of several fields is one",
    note = "only the last field may be a payload: `Bytes`, `String`, `Vec<T>`, `Box<[T]>`"
)]
pub trait Word: Copy {
    /// The name by which endpoints tell this word from others when they compare their handlers.
    const KIND: &'static str;

    /// Encodes the value as a word.
    fn word(self) -> u64;

    /// Decodes a word, or returns `None` if it is no value of this type.
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

words_of_integers! { u8 u16 u32 u64 usize i8 i16 i32 i64 isize }

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

impl Word for char {
    const KIND: &'static str = "char";

    #[inline]
    fn word(self) -> u64 {
        u32::from(self).into()
    }

    #[inline]
    fn from_word(word: u64) -> Option<Self> {
        Self::from_u32(u32::try_from(word).ok()?)
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
