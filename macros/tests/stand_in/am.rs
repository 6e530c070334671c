// The traits that the derives implement, as they are in `doorbell::am`. A test that has this file
// as its module `am`, and `extern crate self as doorbell`, needs no other crate for them.

use std::borrow::Cow;

use bytes::{Bytes, BytesMut};
use zerocopy::{FromBytes, Immutable, IntoBytes};

pub use doorbell_macros::{Arguments, Plain, Word};

#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be what a message carries",
    label = "this can't travel in a message",
    note = "words can, `Bytes`, `String`, `Vec<T>` and `Box<[T]>` of plain data, tuples of words of which \
            the last may be one of those, and structs with `#[derive(Arguments)]`"
)]
pub trait Arguments: Sized {
    /// What tells this type from others, when endpoints compare their handlers.
    const SHAPE: Shape;
    /// Whether values have a payload, so that no other payload can go beside them.
    const HAS_PAYLOAD: bool = false;

    /// The name of the type, for errors.
    fn type_name() -> Cow<'static, str> {
        type_name::<Self>()
    }

    /// How many words the value is.
    fn count(&self) -> usize;

    /// Puts the value into as many words as it is.
    fn put(&self, words: &mut [u64]);

    /// The payload of the value, of which a copy is sent.
    #[inline]
    fn payload(&self) -> &[u8] {
        &[]
    }

    /// The value that was received as these words and that payload, or `None` if they are no value
    /// of this type.
    fn take(words: &[u64], payload: &mut Payload<'_>) -> Option<Self>;
}

impl<F: Field> Arguments for F {
    const SHAPE: Shape = F::SHAPE;
    const HAS_PAYLOAD: bool = F::WORDS == 0;

    fn type_name() -> Cow<'static, str> {
        F::type_name()
    }

    #[inline]
    fn count(&self) -> usize {
        F::WORDS
    }

    #[inline]
    fn put(&self, words: &mut [u64]) {
        Field::put(self, words);
    }

    #[inline]
    fn payload(&self) -> &[u8] {
        Field::payload(self)
    }

    #[inline]
    fn take(words: &[u64], payload: &mut Payload<'_>) -> Option<Self> {
        <F as Field>::take(words, payload)
    }
}

/// A value that can be the last field of a message: a [`Word`], or the payload.
///
/// Payloads are [`Bytes`], which are received without a copy, `BytesMut`, `String`, and `Vec<T>`,
/// `Box<[T]>` and structs of [plain data](Plain).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither a word nor the payload of a message",
    label = "this can't travel in a message",
    note = "a word is an integer of up to 64 bits, a float, a `bool`, or a type with `#[derive(Word)]`",
    note = "a payload, which is the last field, is `Bytes`, `String`, `Vec<T>` or `Box<[T]>`"
)]
pub trait Field: Sized {
    /// What tells this type from other types, when endpoints compare their handlers.
    const SHAPE: Shape;
    /// How many words a value is: one, or none if it is the payload.
    const WORDS: usize;

    /// The name of the type, for errors.
    fn type_name() -> Cow<'static, str> {
        type_name::<Self>()
    }

    /// Puts the value into as many words as it is.
    fn put(&self, words: &mut [u64]);

    /// The payload that the value is; nothing if it is a word.
    fn payload(&self) -> &[u8];

    /// The value that was received as these words and that payload, or `None` if they are no value
    /// of this type.
    fn take(words: &[u64], payload: &mut Payload<'_>) -> Option<Self>;
}

impl<W: Word> Field for W {
    const SHAPE: Shape = Shape::of(W::KIND);
    const WORDS: usize = 1;

    #[inline]
    fn put(&self, words: &mut [u64]) {
        words[0] = self.word();
    }

    #[inline]
    fn payload(&self) -> &[u8] {
        &[]
    }

    #[inline]
    fn take(words: &[u64], _: &mut Payload<'_>) -> Option<Self> {
        let &[word] = words else { return None };
        W::from_word(word)
    }
}

/// Declares types that are payloads: their shapes, their bytes, and how they are made of a payload.
macro_rules! payloads {
    ($([$($T:ident)?] $name:ty: $shape:expr, $bytes:expr, $take:expr;)+) => {$(
        impl$(<$T: Plain>)? Field for $name {
            const SHAPE: Shape = $shape;
            const WORDS: usize = 0;

            #[inline]
            fn put(&self, _: &mut [u64]) {}

            #[inline]
            fn payload(&self) -> &[u8] {
                let bytes: fn(&Self) -> &[u8] = $bytes;
                bytes(self)
            }

            #[inline]
            fn take(words: &[u64], payload: &mut Payload<'_>) -> Option<Self> {
                let take: fn(&mut Payload<'_>) -> Option<Self> = $take;
                if words.is_empty() { take(payload) } else { None }
            }
        }
    )+};
}

/// The shape of a row of plain data.
const fn row(kind: &str) -> Shape {
    Shape::of("row of").and(kind).and(ORDER)
}

payloads! {
    [] Bytes: row("u8"), |bytes| bytes, |payload| Some(payload.take());
    [] BytesMut: row("u8"), |bytes| bytes, |payload| Some(payload.as_slice().into());
    [] String: Shape::of("text"), |text| text.as_bytes(), text;
    [T] Vec<T>: row(T::KIND), |row| row.as_slice().as_bytes(), |payload| values(payload.as_slice());
    [T] Box<[T]>: row(T::KIND), |row| row.as_bytes(), |payload| {
        values(payload.as_slice()).map(Vec::into_boxed_slice)
    };
}

fn text(payload: &mut Payload<'_>) -> Option<String> {
    std::str::from_utf8(payload.as_slice()).ok().map(str::to_owned)
}

/// Plain data by itself, for the derive of [`Plain`].
#[doc(hidden)]
pub mod single {
    use zerocopy::{FromBytes, IntoBytes};

    use super::{ORDER, Payload, Plain, Shape};

    pub const fn shape<T: Plain>() -> Shape {
        Shape::of("one").and(T::KIND).and(ORDER)
    }

    pub fn payload<T: Plain>(value: &T) -> &[u8] {
        value.as_bytes()
    }

    pub fn take<T: Plain>(words: &[u64], payload: &Payload<'_>) -> Option<T> {
        if words.is_empty() { T::read_from_bytes(payload.as_slice()).ok() } else { None }
    }
}

/// A value that travels as one word of eight bytes: an integer, a float, a `bool`, or a type of a
/// program's own.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no word of a message",
    label = "this is not one word",
    note = "a word is an integer of up to 64 bits, a float, a `bool`, or a type with `#[derive(Word)]`",
    note = "only the last field may be a payload: `Bytes`, `String`, `Vec<T>`, `Box<[T]>`"
)]
pub trait Word: Copy {
    /// The name by which endpoints tell this word from others when they compare their handlers.
    const KIND: &'static str;

    /// The value as a word.
    fn word(self) -> u64;

    /// The value that a word is, or `None` if it is no value of this type.
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

/// A type that is sent as its bytes lie in memory: a number, or a struct of numbers without gaps.
/// `Vec<T>` and `Box<[T]>` of plain data are payloads, and so is a struct by itself.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no plain data",
    note = "numbers are plain data, and structs of them with `#[derive(Plain, FromBytes, IntoBytes, \
            Immutable, Clone, Copy)]` and `#[repr(C)]`"
)]
pub trait Plain: FromBytes + IntoBytes + Immutable + Copy + 'static {
    /// The name by which endpoints tell this type from others when they compare their handlers.
    const KIND: &'static str;
}

macro_rules! plain_numbers {
    ($($number:ident)+) => {$(
        impl Plain for $number {
            const KIND: &'static str = stringify!($number);
        }
    )+};
}

plain_numbers! { u8 u16 u32 u64 u128 i8 i16 i32 i64 i128 f32 f64 }

/// The name of this machine's order of bytes.
const ORDER: &str = if cfg!(target_endian = "little") { "little" } else { "big" };

/// The values whose bytes these are, or `None` if they are not a whole number of values.
fn values<T: Plain>(bytes: &[u8]) -> Option<Vec<T>> {
    let size = size_of::<T>();
    if size == 0 || !bytes.len().is_multiple_of(size) {
        return None;
    }
    let mut values = T::new_vec_zeroed(bytes.len() / size).ok()?;
    values.as_mut_slice().as_mut_bytes().copy_from_slice(bytes);
    Some(values)
}

/// A hash of a type of arguments. Two endpoints compare shapes instead of types.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Shape(u64);

impl Shape {
    /// The shape of a type of this name.
    pub const fn of(name: &str) -> Self {
        // FNV-1a, <http://www.isthe.com/chongo/tech/comp/fnv/>.
        Self(0xCBF2_9CE4_8422_2325).and(name)
    }

    /// The shape of a type that has, behind what this shape describes, a part of this name.
    #[must_use]
    pub const fn and(self, name: &str) -> Self {
        let Self(mut hash) = self;
        let mut at = 0;
        while at < name.len() {
            hash = step(hash, name.as_bytes()[at]);
            at += 1;
        }
        Self(step(hash, 0xFF))
    }

    /// The shape of a type that has, behind what this shape describes, a part of that shape.
    #[must_use]
    pub const fn with(self, Self(part): Self) -> Self {
        let Self(mut hash) = self;
        let (bytes, mut at) = (part.to_le_bytes(), 0);
        while at < bytes.len() {
            hash = step(hash, bytes[at]);
            at += 1;
        }
        Self(step(hash, 0xFE))
    }
}

/// Adds a byte to a hash.
const fn step(hash: u64, byte: u8) -> u64 {
    (hash ^ byte as u64).wrapping_mul(0x0100_0000_01B3)
}

/// The name of a type as a program writes it: without the modules that the compiler puts in front.
fn type_name<T>() -> Cow<'static, str> {
    let full = std::any::type_name::<T>();
    if !full.contains("::") {
        return full.into();
    }
    let mut name = String::with_capacity(full.len());
    for part in full.split("::") {
        // What is behind the last character that no path has is the path's next segment.
        let path = |at: char| at.is_alphanumeric() || at == '_';
        name.truncate(name.trim_end_matches(path).len());
        name.push_str(part);
    }
    name.into()
}

/// The payload of a message.
pub struct Payload<'m>(&'m [u8]);

impl<'m> Payload<'m> {
    pub fn new(bytes: &'m [u8]) -> Self {
        Self(bytes)
    }

    pub fn as_slice(&self) -> &[u8] {
        self.0
    }

    pub fn take(&mut self) -> Bytes {
        Bytes::copy_from_slice(std::mem::take(&mut self.0))
    }
}
