//! Fields: a word, or the payload of a message.

use std::borrow::Cow;

use bytes::{Bytes, BytesMut};
use zerocopy::IntoBytes as _;

use super::payload::Payload;
use super::plain::{ORDER, Plain, values};
use super::shape::{Shape, type_name};
use super::word::Word;

/// A value that can be the last field of a message: a [`Word`], or the payload.
///
/// Payloads are [`Bytes`], which are received without a copy, `BytesMut`, `String`, and `Vec<T>`,
/// `Box<[T]>` and structs of [plain data](Plain).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither a word nor the payload of a message",
    label = "this can't travel in a message",
    note = "a word is an integer of up to 64 bits, a float, a `bool`, a `char`, or a type with \
            `#[derive(Word)]`",
    note = "a payload, which is the last field, is `Bytes`, `String`, `Vec<T>` or `Box<[T]>`"
)]
pub trait Field: Sized {
    /// The shape of the type, by which endpoints compare their handlers.
    const SHAPE: Shape;
    /// The number of words of a value: one, or none if the value is the payload.
    const WORDS: usize;

    /// Returns the name of the type, for errors.
    fn type_name() -> Cow<'static, str> {
        type_name::<Self>()
    }

    /// Encodes the value into its words.
    fn put(&self, words: &mut [u64]);

    /// Returns the payload that the value is; nothing if the value is a word.
    fn payload(&self) -> &[u8];

    /// Decodes a value from its words and the payload, or returns `None` if they are no value of
    /// this type.
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
    ($($(for<$T:ident>)? [$name:ty]: $shape:expr, $bytes:expr, $take:expr;)+) => {$(
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
const fn row<T: Plain>() -> Shape {
    Shape::of("row of").and(T::KIND).and(ORDER).with(Shape(size_of::<T>() as u64))
}

payloads! {
    [Bytes]: row::<u8>(), |bytes| bytes, |payload| Some(payload.take());
    [BytesMut]: row::<u8>(), |bytes| bytes, |payload| Some(payload.as_slice().into());
    [String]: Shape::of("text"), |text| text.as_bytes(), text;
    for<T> [Vec<T>]: row::<T>(), |row| row.as_slice().as_bytes(), |payload| values(payload.as_slice());
    for<T> [Box<[T]>]: row::<T>(), |row| row.as_bytes(), |payload| {
        values(payload.as_slice()).map(Vec::into_boxed_slice)
    };
}

fn text(payload: &mut Payload<'_>) -> Option<String> {
    std::str::from_utf8(payload.as_slice()).ok().map(str::to_owned)
}

/// Plain data by itself, for the derive of [`Plain`].
#[doc(hidden)]
pub mod single {
    use super::{ORDER, Payload, Plain, Shape};

    pub const fn shape<T: Plain>() -> Shape {
        Shape::of("one").and(T::KIND).and(ORDER).with(Shape(size_of::<T>() as u64))
    }

    pub fn payload<T: Plain>(value: &T) -> &[u8] {
        value.as_bytes()
    }

    pub fn take<T: Plain>(words: &[u64], payload: &Payload<'_>) -> Option<T> {
        if words.is_empty() { T::read_from_bytes(payload.as_slice()).ok() } else { None }
    }
}
